"""A producer of which anything was sent again behind the program's back is given up, although the commit went well."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

from master_dataset.kafka.client_settings import producer_settings
from master_dataset.kafka.connection import KafkaConnection
from speed_layer.alerts import sender
from speed_layer.alerts.sender import FencedError, ProducerDiscardedError, TransactionalSender
from tests.support.alert_signatures import signatures_of
from tests.support.alerting import WorldLog, at_ms, rule_history_of

RULE = {"kind": "threshold", "id": "any", "metric": "total_transactions_count", "window": "hour", "above": 0}


class FakeProducer:
    """A producer whose statistics and refusals a test decides. `calls`: in order, without polls."""

    made: "FakeProducer"

    def __init__(self, settings: dict[str, Any]) -> None:
        FakeProducer.made = self
        self.settings, self.calls = settings, list[str]()
        self.faults = 0
        self.is_full = False
        self.refuses: dict[str, KafkaError] = {}
        self.hidden: Callable[[str], int] = lambda _: 0

    def poll(self, _: float) -> None:
        broker = {"txretries": self.faults, "disconnects": 0, "req_timeouts": 0}
        self.settings["stats_cb"](json.dumps({"brokers": {"1": broker}}))

    def flush(self, _: float) -> int:
        self._call("flush")
        return 0

    def produce(self, *_: object, **__: object) -> None:
        self._call("produce")
        if self.is_full:
            raise BufferError

    def __getattr__(self, name: str) -> Callable[..., None]:
        return lambda *_, **__: self._call(name)

    def _call(self, name: str) -> None:
        self.calls.append(name)
        self.faults += self.hidden(name)
        if name in self.refuses:
            raise KafkaException(self.refuses[name])


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> tuple[TransactionalSender, FakeProducer]:
    monkeypatch.setattr(sender, "Producer", FakeProducer)
    return TransactionalSender(KafkaConnection("nowhere:1"), 0, signatures_of()), FakeProducer.made


def test_alerts_are_flushed_before_positions_are_sent_and_both_before_the_commit(
    made: tuple[TransactionalSender, FakeProducer],
) -> None:
    sending, producer = made

    sending.start()
    sending.send([], {"pos_transactions": 7}, None)

    assert producer.calls == [
        "init_transactions",
        "begin_transaction",
        "flush",
        "send_offsets_to_transaction",
        "commit_transaction",
    ]


@pytest.mark.parametrize("call", ["begin_transaction", "flush", "send_offsets_to_transaction", "commit_transaction"])
def test_what_was_sent_again_in_secret_gives_the_producer_up(
    made: tuple[TransactionalSender, FakeProducer], call: str
) -> None:
    sending, producer = made
    sending.send([], {"pos_transactions": 7}, None)
    producer.hidden = lambda name: int(name == call)

    with pytest.raises(ProducerDiscardedError):
        sending.send([], {"pos_transactions": 8}, None)


def test_what_was_sent_again_between_two_transactions_is_no_reason(
    made: tuple[TransactionalSender, FakeProducer],
) -> None:
    sending, producer = made
    sending.send([], {"pos_transactions": 7}, None)
    producer.faults += 1

    sending.send([], {"pos_transactions": 8}, None)

    assert producer.calls.count("commit_transaction") == 2


@pytest.mark.parametrize(
    ("code", "kind"), [(KafkaError.PRODUCER_FENCED, FencedError), (KafkaError.UNKNOWN, ProducerDiscardedError)]
)
def test_a_call_that_fails_is_never_made_again_with_the_same_producer(
    made: tuple[TransactionalSender, FakeProducer], code: int, kind: type[Exception]
) -> None:
    sending, producer = made
    producer.refuses["commit_transaction"] = KafkaError(code)

    with pytest.raises(kind):
        sending.send([], {"pos_transactions": 7}, None)

    assert producer.calls.count("commit_transaction") == 1


def test_a_client_that_is_fenced_can_be_given_up_without_another_word(
    made: tuple[TransactionalSender, FakeProducer],
) -> None:
    sending, producer = made
    producer.refuses["close"] = KafkaError(KafkaError.PRODUCER_FENCED)

    sending.discard()

    assert producer.calls == ["purge", "close"]


@pytest.fixture
def broker() -> Iterator[KafkaConnection]:
    """librdkafka's own, within this process."""
    owner = Producer({"bootstrap.servers": "nowhere:1", "test.mock.num.brokers": 1, "log_level": 0})
    owner.list_topics("alerts", timeout=30)
    brokers = owner.list_topics("pos_transactions", timeout=30).brokers.values()
    yield KafkaConnection(",".join(f"{each.host}:{each.port}" for each in brokers))
    owner.flush(0)


@pytest.mark.parametrize("room", [{"queue.buffering.max.messages": 5}, {"queue.buffering.max.kbytes": 2}])
def test_a_transaction_of_more_than_the_client_holds_at_once_is_sent_whole(
    monkeypatch: pytest.MonkeyPatch, broker: KafkaConnection, room: dict[str, int]
) -> None:
    monkeypatch.setattr(sender, "producer_settings", lambda *said: producer_settings(*said) | room | {"log_level": 0})
    reading = Consumer({**broker.client(), "group.id": "galatea.alerts", "log_level": 0})
    [alert] = WorldLog("pos_transactions", rule_history_of(RULE)).sold(at_ms("2026-03-07 10:00"), 1)
    sending = TransactionalSender(broker, 0, signatures_of())
    sending.start()

    sending.send([alert] * 300, {"pos_transactions": 7}, reading.consumer_group_metadata())

    _, end = reading.get_watermark_offsets(TopicPartition("alerts", 0), 30)
    assert end >= 300


def test_a_client_that_makes_no_room_is_given_up_when_the_transaction_is_out_of_time(
    made: tuple[TransactionalSender, FakeProducer], monkeypatch: pytest.MonkeyPatch
) -> None:
    sending, producer = made
    monkeypatch.setattr(sender, "TRANSACTION_MS", 0)
    [alert] = WorldLog("pos_transactions", rule_history_of(RULE)).sold(at_ms("2026-03-07 10:00"), 1)
    producer.is_full = True

    with pytest.raises(ProducerDiscardedError):
        sending.send([alert], {"pos_transactions": 7}, None)

    assert "commit_transaction" not in producer.calls
