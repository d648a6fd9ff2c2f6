"""Every record in flight gets a delivery status, whatever the broker answers."""

import asyncio
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
from confluent_kafka import TIMESTAMP_CREATE_TIME, TIMESTAMP_LOG_APPEND_TIME, KafkaError, KafkaException
from structlog.testing import capture_logs

from master_dataset.kafka.client_settings import BufferLimits
from master_dataset.kafka.connection import KafkaConnection, PasswordLogin
from master_dataset.kafka.producer import (
    AsyncProducer,
    Delivery,
    DeliveryStatus,
    ProducerRecord,
    async_producer_settings,
)
from tests.support.secured_servers import HOST, rejecting, serving

MOST_RECORDS, MOST_BYTES = BufferLimits()
TOPIC = "pos_transactions"
A_BROKER = {  # librdkafka's own, within this process
    **async_producer_settings(KafkaConnection("nowhere:1")),
    "test.mock.num.brokers": 1,
}
NO_BROKER = {**async_producer_settings(KafkaConnection("127.0.0.1:1")), "delivery.timeout.ms": 300}
ONE = ProducerRecord(b"1", b"{}")
Report = Callable[[Any, Any], None]


class Message:
    """What a report says of a record: as with LogAppendTime."""

    def __init__(self, offset: int) -> None:
        self.at = offset

    def partition(self) -> int:
        return 3

    def offset(self) -> int:
        return self.at

    def timestamp(self) -> tuple[int, int]:
        return TIMESTAMP_LOG_APPEND_TIME, 1_800_000_000_123


class Producer:
    """Stands in for librdkafka where a fault cannot be had otherwise: its reports are scripted."""

    def __init__(self, settings: dict[str, Any]) -> None:
        self.error_cb: Callable[[Any], None] = settings["error_cb"]
        self.waiting: list[tuple[bytes, Report]] = []
        self.says: Callable[[bytes], Any] = lambda _: None
        self.refuses: Exception | None = None
        self.purged = False
        self.at_once = MOST_RECORDS
        self.offsets: list[int] = []
        """Of the next reports; 7 for the others."""

    def produce(self, _topic: str, value: bytes, _key: bytes, *, on_delivery: Report) -> None:
        if self.refuses:
            raise self.refuses
        self.waiting.append((value, on_delivery))

    def poll(self, _seconds: float) -> None:
        time.sleep(0.005)
        self._tell(self.at_once)

    def purge(self) -> None:
        self.purged = True

    def flush(self, _seconds: float) -> None:
        self._tell(len(self.waiting))

    def _tell(self, count: int) -> None:
        for _ in range(min(count, len(self.waiting))):
            value, report = self.waiting.pop(0)  # in one step: somebody else may be sending
            report(self.says(value), Message(self.offsets.pop(0) if self.offsets else 7))


class Producers:
    """All drivers that a producer created."""

    def __init__(self) -> None:
        self.made: list[Producer] = []

    def __call__(self, settings: dict[str, Any]) -> Producer:
        self.made.append(Producer(settings))
        return self.made[-1]


@pytest.fixture
def producers() -> Producers:
    return Producers()


@pytest.fixture
def producer(producers: Producers) -> Iterator[AsyncProducer]:
    made = AsyncProducer({}, producers)
    yield made
    made.close()


def statuses(producer: AsyncProducer, records: Sequence[ProducerRecord]) -> list[DeliveryStatus]:
    return [each.status for each in deliveries(producer, records)]


def deliveries(producer: AsyncProducer, records: Sequence[ProducerRecord]) -> Sequence[Delivery]:
    async def sent() -> Sequence[Delivery]:
        return await producer.send(TOPIC, records).deliveries(30)

    return asyncio.run(sent())


def test_what_a_broker_has_taken_is_acknowledged() -> None:
    producer = AsyncProducer(A_BROKER)

    found = statuses(producer, [ONE] * 1000)

    producer.close()
    assert found == [DeliveryStatus.ACKNOWLEDGED] * 1000


def test_an_acknowledged_record_has_the_place_and_the_time_that_the_broker_gave_it(producer: AsyncProducer) -> None:
    assert deliveries(producer, [ONE]) == [Delivery(DeliveryStatus.ACKNOWLEDGED, 3, 7, 1_800_000_000_123)]


def test_the_time_of_a_sender_is_no_time_of_receipt(producer: AsyncProducer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Message, "timestamp", lambda _: (TIMESTAMP_CREATE_TIME, 1_800_000_000_123))

    assert deliveries(producer, [ONE]) == [Delivery(DeliveryStatus.ACKNOWLEDGED, 3, 7, None)]


def test_a_record_that_is_confirmed_without_its_place_is_unconfirmed(
    producer: AsyncProducer, producers: Producers
) -> None:
    producers.made[0].offsets = [-1001]

    assert statuses(producer, [ONE, ONE]) == [DeliveryStatus.UNCONFIRMED, DeliveryStatus.ACKNOWLEDGED]


def test_while_no_broker_is_there_records_are_unconfirmed_in_time() -> None:
    producer = AsyncProducer(NO_BROKER)
    began = time.monotonic()

    found = statuses(producer, [ONE, ONE])

    producer.close()
    assert found == [DeliveryStatus.UNCONFIRMED] * 2
    assert time.monotonic() - began < 5


def test_a_login_that_kafka_rejects_is_logged_once_in_a_while() -> None:
    login = PasswordLogin("PLAIN", "galatea", "canary-1f3a")
    with serving(handler=rejecting()) as port, capture_logs() as logs:
        options = async_producer_settings(KafkaConnection(f"{HOST}:{port}", login=login))
        producer = AsyncProducer({**options, "delivery.timeout.ms": 1000})

        found = statuses(producer, [ONE])

        producer.close()
    assert found == [DeliveryStatus.UNCONFIRMED]
    assert [each["event"] for each in logs] == ["producer.rejected"]
    assert "Invalid username or password" in logs[0]["error"]
    assert "canary" not in repr(logs)


def test_a_record_that_the_broker_never_takes_is_too_large() -> None:
    producer = AsyncProducer({**A_BROKER, "message.max.bytes": 1000})

    found = statuses(producer, [ONE, ProducerRecord(b"1", b"x" * 2000), ONE])

    producer.close()
    assert found == [DeliveryStatus.ACKNOWLEDGED, DeliveryStatus.TOO_LARGE, DeliveryStatus.ACKNOWLEDGED]


@pytest.mark.parametrize(
    ("code", "status"),
    [
        (KafkaError._MSG_TIMED_OUT, DeliveryStatus.UNCONFIRMED),  # noqa: SLF001 - named so by librdkafka
        (KafkaError.NOT_ENOUGH_REPLICAS_AFTER_APPEND, DeliveryStatus.UNCONFIRMED),
        (KafkaError.NOT_LEADER_FOR_PARTITION, DeliveryStatus.UNCONFIRMED),
        (KafkaError.UNKNOWN_TOPIC_OR_PART, DeliveryStatus.UNCONFIRMED),
        (KafkaError.MSG_SIZE_TOO_LARGE, DeliveryStatus.TOO_LARGE),
    ],
)
def test_each_record_has_the_fate_that_its_own_report_says(
    producer: AsyncProducer, producers: Producers, code: int, status: DeliveryStatus
) -> None:
    producers.made[0].says = lambda value: KafkaError(code, retriable=True) if value == b"odd" else None

    assert statuses(producer, [ONE, ProducerRecord(b"1", b"odd"), ONE]) == [
        DeliveryStatus.ACKNOWLEDGED,
        status,
        DeliveryStatus.ACKNOWLEDGED,
    ]


def test_what_is_not_reported_in_time_is_unconfirmed_and_the_rest_is_known(
    producer: AsyncProducer, producers: Producers
) -> None:
    broker = producers.made[0]

    def the_last(_: bytes) -> None:
        broker.at_once = 0

    broker.at_once, broker.says = 1, the_last

    async def sent_too_slowly() -> Sequence[Delivery]:
        return await producer.send(TOPIC, [ONE, ONE]).deliveries(0.5)

    found = [each.status for each in asyncio.run(sent_too_slowly())]

    assert found == [DeliveryStatus.ACKNOWLEDGED, DeliveryStatus.UNCONFIRMED]


def test_what_was_reported_or_refused_is_no_longer_in_flight_although_the_rest_is(
    producer: AsyncProducer, producers: Producers, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker, odd = producers.made[0], ProducerRecord(b"1", b"odd")
    produce = broker.produce

    def refuse_odd(topic: str, value: bytes, key: bytes, *, on_delivery: Report) -> None:
        if value == odd.value:
            raise BufferError
        produce(topic, value, key, on_delivery=on_delivery)

    def the_last(_: bytes) -> None:
        broker.at_once = 0

    monkeypatch.setattr(broker, "produce", refuse_odd)
    broker.at_once, broker.says = 1, the_last

    async def sent() -> tuple[BufferLimits, Sequence[Delivery], BufferLimits]:
        sending = producer.send(TOPIC, [ONE, odd, ONE])
        await sending.deliveries(0.5)
        one_left = producer.in_flight
        broker.says, broker.at_once = lambda _: None, MOST_RECORDS
        return one_left, await sending.deliveries(30), producer.in_flight

    one_left, found, none_left = asyncio.run(sent())

    assert one_left == BufferLimits(1, ONE.size)
    assert [each.status for each in found] == [
        DeliveryStatus.ACKNOWLEDGED,
        DeliveryStatus.UNCONFIRMED,
        DeliveryStatus.ACKNOWLEDGED,
    ]
    assert none_left == BufferLimits(0, 0)


@pytest.mark.parametrize("refusal", [BufferError(), KafkaException(KafkaError(KafkaError._QUEUE_FULL))])  # noqa: SLF001
def test_what_the_producer_does_not_take_is_unconfirmed(
    producer: AsyncProducer, producers: Producers, refusal: Exception
) -> None:
    producers.made[0].refuses = refusal

    assert statuses(producer, [ONE]) == [DeliveryStatus.UNCONFIRMED]


@pytest.mark.parametrize(
    ("fitting", "more"),
    [
        ([ONE] * MOST_RECORDS, [ONE]),
        ([ProducerRecord(b"1", b"x" * 999_999)] * (MOST_BYTES // 1_000_000), [ProducerRecord(b"", b"x")]),
    ],
    ids=["records", "bytes"],
)
def test_so_much_may_be_under_way_and_not_one_more(
    producer: AsyncProducer, fitting: Sequence[ProducerRecord], more: Sequence[ProducerRecord]
) -> None:
    async def filled() -> Sequence[Delivery]:
        sent = producer.send(TOPIC, fitting)
        with pytest.raises(BufferError):
            producer.send(TOPIC, more)
        await sent.deliveries(30)
        return await producer.send(TOPIC, fitting).deliveries(30)

    assert {each.status for each in asyncio.run(filled())} == {DeliveryStatus.ACKNOWLEDGED}


def test_records_are_taken_all_or_none(producer: AsyncProducer, producers: Producers) -> None:
    async def too_many() -> None:
        with pytest.raises(BufferError):
            producer.send(TOPIC, [ONE] * (MOST_RECORDS + 1))

    asyncio.run(too_many())

    assert producers.made[0].waiting == []


def test_after_a_fatal_error_another_producer_goes_on(producer: AsyncProducer, producers: Producers) -> None:
    broken = producers.made[0]
    broken.at_once = 1
    broken.says = lambda _: KafkaError(KafkaError._FATAL, fatal=True)  # noqa: SLF001

    lost, sent_again = statuses(producer, [ONE, ONE]), statuses(producer, [ONE, ONE])

    assert (lost, sent_again) == ([DeliveryStatus.UNCONFIRMED] * 2, [DeliveryStatus.ACKNOWLEDGED] * 2)
    assert broken.purged
    assert len(producers.made) == 2


def test_at_the_end_what_is_under_way_is_still_brought() -> None:
    producer = AsyncProducer({**A_BROKER, "linger.ms": 300})

    async def ended() -> Sequence[Delivery]:
        sent = producer.send(TOPIC, [ONE, ONE])
        await asyncio.to_thread(producer.close)
        return await sent.deliveries(30)

    assert [each.status for each in asyncio.run(ended())] == [DeliveryStatus.ACKNOWLEDGED] * 2
