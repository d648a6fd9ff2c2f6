"""A transaction that nobody ends holds readers back until the broker aborts it; then they go on, and see none of it."""

import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import pytest
from confluent_kafka import Producer

from master_dataset.errors import BrokerUnavailableError
from master_dataset.kafka.connection import KafkaConnection
from master_dataset.kafka.topics import Topics
from speed_layer.alerts.sender import ProducerDiscardedError, TransactionalSender
from speed_layer.alerts.source import PartitionReader, TransactionMonitor
from tests.support.alert_signatures import signatures_of
from tests.support.alerting import WorldLog, at_ms, rule_history_of
from tests.system.drills.alert_readers import read_alerts
from tests.system.drills.drilled_broker import DrilledBroker, settings_for
from views.alerts.alert import ALERTS_TOPIC, Alert

RULE = {"kind": "threshold", "id": "any", "metric": "total_transactions_count", "window": "hour", "above": 0}
TIMEOUT_MS = 10_000


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[DrilledBroker]:
    """A broker by itself, that looks for transactions out of time every second."""
    with DrilledBroker(settings_for(tmp_path)) as started:
        yield started


def left_open(kafka: KafkaConnection, partition: int) -> Producer:
    """One that has written within a transaction, and never says how it ends."""
    producer = Producer(
        {
            **kafka.client(),
            "transactional.id": "abandoned",
            "transaction.timeout.ms": TIMEOUT_MS,
        }
    )
    producer.init_transactions()
    producer.begin_transaction()
    producer.produce(ALERTS_TOPIC, b'{"alert_id": "abandoned"}', partition=partition)
    producer.flush()
    return producer


def tell(kafka: KafkaConnection, alerts: Sequence[Alert]) -> None:
    """As the alert processor does: with a new producer after any outcome that is not known, if it did not commit.

    A broker that has just begun may not know its coordinators yet.
    """
    inlet = PartitionReader(kafka, ["pos_transactions"], 0)
    while committed(inlet) != {"pos_transactions": 7}:
        with suppress(ProducerDiscardedError, BrokerUnavailableError):
            sender = TransactionalSender(kafka, 0, signatures_of())
            sender.start()
            sender.send(alerts, {"pos_transactions": 7}, inlet.group)


def committed(inlet: PartitionReader) -> dict[str, int]:
    """Asked until it is known."""
    while True:
        with suppress(BrokerUnavailableError):
            return inlet.committed().positions


def held(topics: Topics, held_back: TransactionMonitor) -> int:
    """How many records of alerts readers may not see yet."""
    return held_back.check(
        topics.end_offsets(ALERTS_TOPIC), topics.committed_ends(ALERTS_TOPIC), time.monotonic()
    ).records


@pytest.mark.nightly
def test_readers_wait_for_it_are_reported_as_waiting_and_continue_when_it_is_aborted(broker: DrilledBroker) -> None:
    topics, held_back = Topics(broker.kafka), TransactionMonitor()
    alerts = WorldLog("pos_transactions", rule_history_of(RULE)).sold(at_ms("2026-03-07 10:00"), 1)
    open_ = left_open(broker.kafka, 0)

    tell(broker.kafka, alerts)
    waiting, seen = held(topics, held_back), read_alerts(broker.kafka)
    while held(topics, held_back):
        time.sleep(0.5)

    assert waiting > len(alerts)
    assert seen == []
    assert [each["alert_id"] for each in read_alerts(broker.kafka)] == [each.alert_id for each in alerts]
    del open_
