"""The alert processor against a real broker: each alert once, and of two only one continues."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from master_dataset.errors import BrokerUnavailableError
from speed_layer.alerts.sender import FencedError, ProducerDiscardedError, TransactionalSender
from speed_layer.alerts.source import PartitionReader, encode_topic_ids
from tests.support.alert_signatures import signatures_of
from tests.support.alerting import WorldLog, at_ms, rule_history_of
from tests.system.drills.alert_readers import read_alerts
from tests.system.drills.alerts import Plan, play
from tests.system.drills.drilled_broker import DrilledBroker, settings_for
from tests.system.drills.naive_processor import KEPT, PLAIN

RULE = {"kind": "threshold", "id": "any", "metric": "total_transactions_count", "window": "hour", "above": 0}


ATTEMPTS = 5
"""Whether an attack comes at its moment depends on the machine: a naive processor is attacked until one does."""


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[DrilledBroker]:
    """A broker by itself."""
    with DrilledBroker(settings_for(tmp_path)) as started:
        yield started


@pytest.mark.nightly
def test_a_processor_that_is_killed_twenty_times_emits_each_alert_once(broker: DrilledBroker) -> None:
    played = play(broker, Plan(kills=20, alerts=1500, seed=20261122))

    assert played.is_well, played
    assert played.crashed > 5


@pytest.mark.nightly
def test_delayed_and_lost_commits_zombies_and_twins_change_no_alert(broker: DrilledBroker) -> None:
    played = play(broker, Plan(kills=6, alerts=500, seed=1, proxied=6, zombies=1, twins=1, pause=6.0))

    assert played.is_well, played
    assert played.end_attacks == 5
    assert played.late.keys().isdisjoint({"0"})
    assert sum(played.late.values()) > 0
    assert played.fenced > 0


@pytest.mark.nightly
@pytest.mark.parametrize(("kind", "kills", "proxied"), [(KEPT, 6, 3), (PLAIN, 10, 0)])
def test_a_naive_alert_processor_fails_the_same_attacks(tmp_path: Path, kind: str, kills: int, proxied: int) -> None:
    for seed in range(1, ATTEMPTS + 1):
        with DrilledBroker(settings_for(tmp_path / str(seed))) as broker:
            played = play(broker, Plan(kills=kills, alerts=300, seed=seed, proxied=proxied, naive=kind))
        if played.twice:
            break

    assert not played.is_well
    assert played.twice > 0


def test_second_alert_processor_fences_the_first(broker: DrilledBroker) -> None:
    alerts = WorldLog("pos_transactions", rule_history_of(RULE)).sold(at_ms("2026-03-07 10:00"), 1)
    group = PartitionReader(broker.kafka, ["pos_transactions"], 0).group
    first, second = (TransactionalSender(broker.kafka, 0, signatures_of()) for _ in range(2))
    first.start()
    second.start()

    with pytest.raises((FencedError, ProducerDiscardedError)):
        first.send(alerts, {"pos_transactions": 7}, group)
    with suppress(
        ProducerDiscardedError
    ):  # on a busy machine a connection may end meanwhile; what is committed is asked for
        second.send(alerts, {"pos_transactions": 8}, group)

    assert [each["alert_id"] for each in read_alerts(broker.kafka)] == [alerts[0].alert_id]
    assert PartitionReader(broker.kafka, ["pos_transactions"], 0).committed().positions == {"pos_transactions": 8}


def test_the_real_broker_tells_a_topic_made_anew_from_the_one_that_was_read(broker: DrilledBroker) -> None:
    admin = AdminClient({**broker.kafka.client(), "log_level": 0})
    inlet, sending = (
        PartitionReader(broker.kafka, ["pos_transactions", "people_counts"], 0),
        TransactionalSender(broker.kafka, 0, signatures_of()),
    )
    before = inlet.topic_ids()
    sending.start()
    sending.metadata = encode_topic_ids(before)
    with suppress(ProducerDiscardedError):
        sending.send([], {"pos_transactions": 0, "people_counts": 0}, inlet.group)
    admin.delete_topics(["pos_transactions"], operation_timeout=30)["pos_transactions"].result()
    admin.create_topics([NewTopic("pos_transactions", 2, 1)])["pos_transactions"].result()
    after = before
    while after["pos_transactions"] == before["pos_transactions"]:
        with suppress(BrokerUnavailableError):  # it may not know of the new one yet
            after = inlet.topic_ids()

    known = inlet.committed()

    assert after["people_counts"] == before["people_counts"]
    assert known.ids["people_counts"] == before["people_counts"].id
    assert known.ids.get("pos_transactions", before["pos_transactions"].id) != after["pos_transactions"].id
    assert set(known.known_topics) == {"pos_transactions", "people_counts"}
