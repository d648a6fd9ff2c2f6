"""Identities that are moved to disk are known for as long as those in memory are, whenever they are moved."""

from pathlib import Path
from random import Random

import pytest

from master_dataset.sources import registered_sources
from speed_layer.alerts.fold import Fold, LogRecord
from speed_layer.alerts.snapshots import Snapshots
from speed_layer.alerts.source import TopicIdentity
from speed_layer.alerts.state import MAX_NAMES
from tests.support.alerting import MARKER, WorldLog, at_ms, rule_history_of, value
from views.alerts.timings import AlertTimings

TOPIC = "pos_transactions"
TOPIC_IDS = {TOPIC: TopicIdentity("a topic", 1)}
RULE_HISTORY = rule_history_of(
    {"kind": "threshold", "id": "many", "metric": "total_transactions_count", "window": "hour", "above": 1}
)
BEGIN = at_ms("2026-03-07 09:00")
HOUR_MS = 3_600_000


def records(chance: Random) -> list[LogRecord]:
    """Receipts over three days, most of which come again within minutes, or within a day, or after it."""
    found, now = list[LogRecord](), BEGIN
    for offset in range(400):
        now += chance.choice((1_000, 60_000, HOUR_MS // 2, HOUR_MS))
        number = chance.randrange(40)
        body = value(TOPIC, now - chance.randrange(HOUR_MS), transaction_id=number, store_id="1")
        found.append(LogRecord(offset, now, body) if chance.random() < 0.9 else LogRecord(offset, now, b"", MARKER))
    return found


@pytest.mark.parametrize("seed", range(20))
def test_a_fold_whose_identities_are_moved_at_any_time_counts_what_one_in_memory_counts(
    tmp_path: Path, seed: int
) -> None:
    chance, source = Random(seed), registered_sources()[TOPIC]
    in_memory = Fold(source, 0, AlertTimings())
    snapshots = Snapshots(tmp_path)
    moved = Fold(source, 0, AlertTimings(), saved=snapshots.identities(TOPIC))
    alerts = 0
    for record in records(chance):
        expected = in_memory.step(record, RULE_HISTORY)
        alerts += len(expected)

        assert moved.step(record, RULE_HISTORY) == expected
        what = chance.random()
        if what < 0.1:
            snapshots.save({TOPIC: record.offset + 1}, {TOPIC: moved.state}, TOPIC_IDS)
        elif what < 0.15:
            snapshots.spill({TOPIC: moved.state})
        elif what < 0.2:
            snapshots.save({TOPIC: record.offset + 1}, {TOPIC: moved.state}, TOPIC_IDS)
            snapshots.close()
            snapshots = Snapshots(tmp_path)  # another process
            kept = snapshots.load({TOPIC: record.offset + 1}, TOPIC_IDS)
            assert kept is not None
            moved = Fold(source, 0, AlertTimings(), kept.states[TOPIC], saved=snapshots.identities(TOPIC))
        assert moved.state.cells == in_memory.state.cells
    assert alerts > 0


def test_what_was_saved_counts_from_there_and_nothing_that_came_after_it(tmp_path: Path) -> None:
    source, log = registered_sources()[TOPIC], records(Random(7))
    snapshots = Snapshots(tmp_path)
    fold = Fold(source, 0, AlertTimings(), saved=snapshots.identities(TOPIC))
    for record in log[:200]:
        fold.step(record, RULE_HISTORY)
    snapshots.save({TOPIC: 200}, {TOPIC: fold.state}, TOPIC_IDS)
    for record in log[200:250]:
        fold.step(record, RULE_HISTORY)

    kept = snapshots.load({TOPIC: 250}, TOPIC_IDS)  # what was folded since is abandoned

    assert kept is not None
    again = Fold(source, 0, AlertTimings(), kept.states[TOPIC], saved=snapshots.identities(TOPIC))
    for record in log[200:250]:
        again.step(record, RULE_HISTORY)
    assert again.state.digest() == fold.state.digest()


def test_a_snapshot_of_which_identities_were_spilled_is_not_there(tmp_path: Path) -> None:
    snapshots = Snapshots(tmp_path)
    fold = Fold(registered_sources()[TOPIC], 0, AlertTimings(), saved=snapshots.identities(TOPIC))
    fold.step(records(Random(1))[0], RULE_HISTORY)
    snapshots.save({TOPIC: 1}, {TOPIC: fold.state}, TOPIC_IDS)
    [identity] = _identities(records(Random(1))[:1])
    assert snapshots.identities(TOPIC).has(identity)

    snapshots.spill({TOPIC: fold.state})

    after = Snapshots(tmp_path)
    assert after.load({TOPIC: 1}, TOPIC_IDS) is None
    assert not after.identities(TOPIC).has(identity)
    assert (after.exist, set(after.topics)) == (True, {TOPIC})


def _identities(log: list[LogRecord]) -> list[bytes]:
    fold = Fold(registered_sources()[TOPIC], 0, AlertTimings())
    for record in log:
        fold.step(record, RULE_HISTORY)
    return [each for seen in fold.state.identities.values() for each in seen]


def test_a_disk_that_is_full_is_an_error_of_the_system(tmp_path: Path) -> None:
    snapshots = Snapshots(tmp_path)
    fold = Fold(registered_sources()[TOPIC], 0, AlertTimings(), saved=snapshots.identities(TOPIC))
    snapshots._database.execute("pragma max_page_count = 8")  # noqa: SLF001 - a small disk
    fold.state.identities = {0: {number.to_bytes(16) for number in range(10_000)}}

    with pytest.raises(OSError, match="full"):
        snapshots.save({TOPIC: 1}, {TOPIC: fold.state}, TOPIC_IDS)


def test_a_store_is_followed_with_a_limited_number_of_sensors() -> None:
    log = WorldLog("wifi_sightings", rule_history_of())
    ten = at_ms("2026-03-07 10:00")

    for number in range(MAX_NAMES + 5):
        log.send(ten + number, sensor_id=f"s{number}")
    log.send(ten + HOUR_MS, sensor_id="s7")
    log.send(ten + 2 * HOUR_MS, sensor_id="another")

    signs = log.fold.state.signs["1"]
    assert len(signs) == MAX_NAMES + 1
    assert (signs["s7"], signs[""], "another" in signs) == (ten + HOUR_MS, ten + 2 * HOUR_MS, False)


def test_a_store_is_followed_with_a_limited_number_of_queues() -> None:
    log = WorldLog("queue_events", rule_history_of())
    ten = at_ms("2026-03-07 10:00")

    for number in range(MAX_NAMES + 5):
        log.send(ten + number, queue=f"q{number}", kind="join", length_after=1)

    assert len(log.fold.state.levels["1"]) == MAX_NAMES
