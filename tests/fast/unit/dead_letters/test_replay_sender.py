"""Records are sent back to their topic and acknowledged one by one, by librdkafka's mock broker."""

from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import OFFSET_INVALID, KafkaError, KafkaException, Producer

from master_dataset.dead_letters import replay
from master_dataset.dead_letters.replay import ReplayRecord, ReplaySender, SendReport
from master_dataset.errors import BrokerUnavailableError
from master_dataset.kafka.connection import KafkaConnection
from master_dataset.kafka.producer import DeliveryStatus

TOPIC = "pos_transactions"
NOWHERE = KafkaConnection("nowhere:1")
ONE = ReplayRecord(TOPIC, b"1", b"{}", [("replay_of", b"pos_transactions/0/7"), ("none", None)])


def beside_a_broker(settings: dict[str, Any]) -> Any:
    return Producer({**settings, "test.mock.num.brokers": 1})


def without_a_broker(settings: dict[str, Any]) -> Any:
    return Producer({**settings, "bootstrap.servers": "127.0.0.1:1", "delivery.timeout.ms": 300})


class Refusing:
    """Stands in for librdkafka: the second record is too large, and there is no room for a third."""

    def __init__(self, _: dict[str, Any]) -> None:
        self.requests = 0
        self.headers: list[Any] = []

    def produce(self, _topic: str, _value: bytes, _key: bytes, **_more: Any) -> None:
        self.requests += 1
        if self.requests == 2:
            raise KafkaException(KafkaError(KafkaError.MSG_SIZE_TOO_LARGE))
        if self.requests >= 3:
            raise BufferError

    def poll(self, _seconds: float) -> None:
        """Nobody says anything."""

    def flush(self, _seconds: float) -> None:
        """Nobody says anything."""


def test_each_record_gets_its_position() -> None:
    found = ReplaySender(NOWHERE, beside_a_broker).send([ONE, ONE])

    assert [each.status for each in found] == [DeliveryStatus.ACKNOWLEDGED] * 2
    assert [each.to and (each.to.topic, each.to.offset) for each in found] == [(TOPIC, 0), (TOPIC, 1)]
    assert len({each.to and each.to.partition for each in found}) == 1


def test_what_nobody_confirms_in_time_is_unconfirmed() -> None:
    assert ReplaySender(NOWHERE, without_a_broker).send([ONE]) == [SendReport(DeliveryStatus.UNCONFIRMED)]


@pytest.mark.parametrize("room", [{"queue.buffering.max.messages": 2}, {"queue.buffering.max.kbytes": 1}])
def test_of_more_than_the_client_holds_at_once_each_record_is_acknowledged(room: dict[str, int]) -> None:
    ten = [ONE._replace(value=b"x" * 400) for _ in range(10)]

    found = ReplaySender(NOWHERE, lambda settings: beside_a_broker({**settings, **room})).send(ten)

    assert [each.status for each in found] == [DeliveryStatus.ACKNOWLEDGED] * 10
    assert [each.to and each.to.offset for each in found] == list(range(10))


def test_what_the_broker_never_accepts_is_distinguished_from_what_it_did_not_confirm(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(replay, "GIVE_UP_SECONDS", 0.2)

    found = ReplaySender(NOWHERE, Refusing).send([ONE, ONE, ONE, ONE])

    assert [each.status for each in found] == [
        DeliveryStatus.UNCONFIRMED,
        DeliveryStatus.TOO_LARGE,
        DeliveryStatus.UNCONFIRMED,
        DeliveryStatus.UNCONFIRMED,
    ]
    assert [each.to for each in found] == [None] * 4


def test_what_is_confirmed_without_its_place_is_unconfirmed() -> None:
    class Confirming(Refusing):
        """Stands in for librdkafka: a record is confirmed, and nobody knows where it is."""

        def produce(self, _topic: str, _value: bytes, _key: bytes, **more: Any) -> None:
            more["on_delivery"](None, SimpleNamespace(offset=lambda: OFFSET_INVALID))

    found = ReplaySender(NOWHERE, Confirming).send([ONE])

    assert found == [SendReport(DeliveryStatus.UNCONFIRMED)]


def test_a_broker_that_is_away_or_lacks_the_topic_is_named_before_anything_is_sent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(replay, "METADATA_SECONDS", 0.3)

    with pytest.raises(BrokerUnavailableError, match="cannot send anything: Kafka at `nowhere:1` does not respond"):
        ReplaySender(NOWHERE, without_a_broker).check_topics([TOPIC])
    with pytest.raises(
        BrokerUnavailableError, match="cannot send anything to the topic `pos_transactions`: it does not exist"
    ):
        ReplaySender(NOWHERE, beside_a_broker).check_topics([TOPIC])
