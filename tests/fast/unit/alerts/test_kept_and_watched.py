"""What the alert processor keeps, and how it is watched."""

import os
import sys
import time
from pathlib import Path

import pytest

from deploy.services.alerts import READY, WatchedProcess
from master_dataset.registry.stores import Store
from speed_layer.alerts.snapshots import Snapshots
from speed_layer.alerts.source import TopicIdentity
from speed_layer.alerts.state import State
from views.alerts.rule_history import RuleHistory, StoredVersion, rule_version, store_version
from views.alerts.rule_validation import parse_rule

SAYS = """
import os, sys, time
for number in (0, 255, 1, 0):
    os.write(int(sys.argv[1]), bytes([number]))
time.sleep(600)
"""
DEADLINE_SECONDS = 60.0
LOGS = {"queue_events": TopicIdentity("a topic", 2)}
RULE = parse_rule({"kind": "level", "id": "queue", "of": "queue", "above": 4, "minutes": 3})


def test_a_snapshot_ahead_of_what_is_committed_or_of_other_topics_is_not_there(tmp_path: Path) -> None:
    snapshots = Snapshots(tmp_path)
    snapshots.save({"queue_events": 7}, {"queue_events": State()}, LOGS)

    assert snapshots.load({"queue_events": 7}, LOGS) is not None
    assert snapshots.load({"queue_events": 6}, LOGS) is None
    assert snapshots.load({"queue_events": 7, "people_counts": 0}, LOGS) is None


@pytest.mark.parametrize("now", [TopicIdentity("made anew", 2), TopicIdentity("a topic", 3)])
def test_a_snapshot_of_a_topic_made_anew_or_of_other_partitions_is_not_there(
    tmp_path: Path, now: TopicIdentity
) -> None:
    snapshots = Snapshots(tmp_path)
    snapshots.save({"queue_events": 7}, {"queue_events": State()}, LOGS)

    assert snapshots.load({"queue_events": 7}, {"queue_events": now}) is None


def test_a_version_holds_for_records_received_from_its_moment_on() -> None:
    gone = StoredVersion(200, "rule", "default/queue", 2, "")
    store = Store(id="1", timezone="UTC")

    rule_history = RuleHistory([gone, rule_version(RULE, 1, 100), store_version(store, 1, 0)], 300)

    assert [len(rule_history.at(log_ms).rules) for log_ms in (99, 100, 199, 200)] == [0, 1, 1, 0]
    assert [each.version for each in rule_history.at(150).by_topic["queue_events"]] == [1]
    assert rule_history.complete_before_ms == 300


def test_a_processor_with_a_partition_that_makes_no_progress_is_stuck() -> None:
    child = WatchedProcess([sys.executable, "-c", SAYS], dict(os.environ), heartbeats=3)
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not child.ready:
        assert not child.is_stuck(DEADLINE_SECONDS)
        assert time.monotonic() < deadline

    while not child.is_stuck(0.5):
        assert time.monotonic() < deadline
    running = child.ended()
    child.end()

    assert READY == 255
    assert running is None
    assert child.ended() is not None
