"""Events through the real interface to a broker in memory: what the client sends is what stands in the topic."""

from collections.abc import Sequence

import pytest
import stamina

from galatea.client.ingest import Ingested
from master_dataset.kafka.producer import DeliveryStatus, ProducerRecord
from tests.support import World, receipt
from tests.support.world_api import OPERATOR_KEY, Asking
from tests.support.world_clients import client

TOPIC = "pos_transactions"


def receipts(count: int) -> Sequence[bytes]:
    return [receipt("2026-11-17T10:07:00Z", minor=250, number=number) for number in range(count)]


def sent(asking: Asking, events: Sequence[bytes]) -> Ingested:
    with stamina.set_testing(True, attempts=2):
        return client(asking, OPERATOR_KEY).ingest(TOPIC, events, attempts=2)


def test_lines_come_to_the_topic_byte_for_byte() -> None:
    asking = Asking(World())

    done = sent(asking, receipts(1200))

    assert (done.accepted, done.rejected, done.unknown) == (1200, (), ())
    assert asking.broker.values(TOPIC) == receipts(1200)


def test_an_event_that_the_parser_refuses_is_named_by_its_place() -> None:
    asking = Asking(World())
    good = receipts(1100)

    done = sent(asking, [*good[:1050], b'{"operation_id": 1}', *good[1050:]])

    [item] = done.rejected
    assert (done.accepted, item.index, item.outcome) == (1100, 1050, "rejected")
    assert item.reason
    assert item.sentence


def test_what_the_broker_did_not_confirm_is_sent_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("galatea.client.ingest.PAUSE_SECONDS", 0.0)
    asking = Asking(World())
    doubted: list[bytes] = []

    def says(record: ProducerRecord) -> DeliveryStatus:
        if b'"transaction_id": 3,' in record.value and not doubted:
            doubted.append(record.value)
            return DeliveryStatus.UNCONFIRMED
        return DeliveryStatus.ACKNOWLEDGED

    asking.broker.says = says

    done = sent(asking, receipts(5))

    assert (done.accepted, done.unknown) == (5, ())
    assert asking.broker.values(TOPIC) == [*receipts(5), *doubted]
