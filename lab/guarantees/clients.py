"""Kafka clients of the experiments: consumers, producers that send one record per request, and group members."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import stamina
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

from master_dataset.kafka.connection import KafkaConnection
from master_dataset.kafka.consumer import ConsumerLimits, Handler, KeyedConsumer

PATIENCE_SECONDS = 60.0
COMMITTED, UNCOMMITTED = "read_committed", "read_uncommitted"
_BEGINNING = {
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.NOT_COORDINATOR,
}
Options = Mapping[str, str | int | bool]


class ReceivedRecord(NamedTuple):
    """A record as it was read."""

    partition: int
    offset: int
    key: bytes
    value: bytes

    @property
    def number(self) -> int:
        """The value as a number."""
        return int(self.value)


def consumer(kafka: KafkaConnection, group: str, options: Options | None = None) -> Consumer:
    """Return a consumer without auto-commit that reports the end of a partition."""
    usual = {
        **kafka.client(),
        "group.id": group,
        "enable.auto.commit": False,
        "enable.partition.eof": True,
        "auto.offset.reset": "earliest",
        "fetch.wait.max.ms": 20,
        "log_level": 0,
    }
    return Consumer({**usual, **(options or {})})


def read(kafka: KafkaConnection, topic: str, isolation: str = COMMITTED) -> list[list[ReceivedRecord]]:
    """Read everything in the topic now, by partition. The broker reports the end, because offsets may have gaps."""
    reader = consumer(kafka, "galatea-prove-reader", {"isolation.level": isolation})
    try:
        numbers = sorted(reader.list_topics(topic, timeout=PATIENCE_SECONDS).topics[topic].partitions)
        reader.assign([TopicPartition(topic, number, OFFSET_BEGINNING) for number in numbers])
        found: dict[int, list[ReceivedRecord]] = {number: [] for number in numbers}
        for message in until_end(reader, len(numbers)):
            place = message.partition() or 0, message.offset() or 0
            seen = ReceivedRecord(*place, message.key() or b"", message.value() or b"")
            found[seen.partition].append(seen)
        return list(found.values())
    finally:
        reader.close()


def numbers(kafka: KafkaConnection, topic: str, isolation: str = COMMITTED) -> list[list[int]]:
    """Read the numbers in the topic, by partition."""
    return [[seen.number for seen in partition] for partition in read(kafka, topic, isolation)]


def until_end(reader: Consumer, partitions: int = 1) -> Iterator[Message]:
    """Yield every record until the end of all partitions is reached. Raises TimeoutError if nothing more arrives."""
    ended: set[int] = set()
    while len(ended) < partitions:
        message = reader.poll(PATIENCE_SECONDS)
        if message is None:
            raise TimeoutError(f"the broker has given nothing for {PATIENCE_SECONDS:.0f} s")
        error = message.error()
        if error is None:
            yield message
        elif error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001 - its public name
            ended.add(message.partition() or 0)
        elif not error.retriable():
            raise KafkaException(error)


def resumed(kafka: KafkaConnection, group: str, topic: str, options: Options | None = None) -> Consumer:
    """Return a consumer of partition 0 at the committed offset of a group, without being a member of it.

    The group would wait for a killed member; a consumer that assigns partitions itself continues at once.
    """
    reader = consumer(kafka, group, options)
    reader.list_topics(topic, timeout=PATIENCE_SECONDS)  # fetches the leader now; otherwise it does so a second later
    reader.assign([TopicPartition(topic, 0, committed(reader, topic))])
    return reader


def _may_pass(error: Exception) -> bool:
    """The group's coordinator may still be loading."""
    return isinstance(error, KafkaException) and (error.args[0].retriable() or error.args[0].code() in _BEGINNING)


@stamina.retry(on=_may_pass, attempts=None, timeout=PATIENCE_SECONDS, wait_initial=0.05)
def committed(reader: Consumer, topic: str) -> int:
    """Return the committed offset of the group in partition 0, or its beginning."""
    [place] = reader.committed([TopicPartition(topic, 0)], timeout=PATIENCE_SECONDS)
    return place.offset if place.offset >= 0 else OFFSET_BEGINNING


def commit(reader: Consumer, message: Message) -> None:
    """Commit this record and all before it, and wait for the broker."""
    reader.commit(message=message, asynchronous=False)


_PATIENCE_SECONDS = 120
_QUIET = {"log_level": 0, "error_cb": lambda _error: None}
"""Broken connections are expected in experiments."""


def _silent_logger() -> logging.Logger:
    logger = logging.getLogger("galatea.guarantees")
    logger.addHandler(logging.NullHandler())
    logger.propagate = False
    return logger


_SILENT = _silent_logger()


@dataclass
class SendReport:
    """What the producer reported. `ok`: delivered; `failed`: given up, which means unknown; `seconds`: for all."""

    ok: list[int] = field(default_factory=list)
    failed: list[int] = field(default_factory=list)
    seconds: float = 0.0


def producer(kafka: KafkaConnection, **more: object) -> Producer:
    """Return a producer that sends one record per request and retries after 50 ms.

    `more`: librdkafka options with `_` for `.`, such as `enable_idempotence`.
    """
    options = {
        **kafka.client(),
        "linger.ms": 0,
        "batch.num.messages": 1,
        "retry.backoff.ms": 50,
        "retry.backoff.max.ms": 50,
        "reconnect.backoff.ms": 10,
        "reconnect.backoff.max.ms": 100,
        "partitioner": "murmur2_random",
    }
    named = {name if name.endswith("_cb") else name.replace("_", "."): value for name, value in more.items()}
    return Producer({**options, **_QUIET, **named}, logger=_SILENT)


def send(sender: Producer, topic: str, numbers: Iterable[int], *, block: int = 0) -> SendReport:
    """Send numbers in order and wait for every report, also after each `block` records unless it is 0."""
    sent, began = SendReport(), time.monotonic()

    def reported(error: KafkaError | None, message: Message) -> None:
        (sent.failed if error else sent.ok).append(int(message.value() or b""))

    for count, number in enumerate(numbers, 1):
        sender.produce(topic, str(number).encode(), on_delivery=reported)
        sender.poll(0)
        if block and count % block == 0:
            flush(sender)
    flush(sender)
    sent.seconds = time.monotonic() - began
    return sent


class Sender:
    """A producer to one topic that hands numbers over and waits for nothing. `ok`: how many were acknowledged."""

    def __init__(self, kafka: KafkaConnection, topic: str, **more: str | float | bool) -> None:
        """`more`: as for `producer`."""
        self.topic, self.ok = topic, 0
        self.producer = producer(kafka, **more)

    def send(self, numbers_: Iterable[int]) -> None:
        """Hand them over."""
        for number in numbers_:
            self.producer.produce(self.topic, str(number).encode(), on_delivery=self._reported)

    def send_each(self, numbers_: Iterable[int]) -> None:
        """Send them one by one: a new leader may refuse the first, and retries reorder (P09)."""
        for number in numbers_:
            self.send([number])
            flush(self.producer)

    def _reported(self, error: KafkaError | None, _message: Message) -> None:
        self.ok += error is None


def high_watermark(kafka: KafkaConnection, topic: str) -> int:
    """Return how many records of partition 0 every copy in step has."""
    reader = consumer(kafka, "galatea-prove-reader")
    try:
        return int(reader.get_watermark_offsets(TopicPartition(topic, 0), timeout=30)[1])
    finally:
        reader.close()


def flush(sender: Producer) -> None:
    """Wait for every delivery report. Raises TimeoutError if one is missing."""
    if sender.flush(_PATIENCE_SECONDS):
        raise TimeoutError(f"the broker has not answered for {_PATIENCE_SECONDS} s")


QUIET_SECONDS, LOOK_SECONDS = 30.0, 0.01
"""Give up after this time without progress; the counts then show what is missing."""


@asynccontextmanager
async def member(
    settings: dict[str, Any],
    topic: str,
    handler: Handler,
    limits: ConsumerLimits,
    connect: Callable[[dict[str, Any]], Any] = Consumer,
) -> AsyncIterator[KeyedConsumer]:
    """Run a member of a group meanwhile. `settings`: server and group. Raises what `KeyedConsumer.run` raises."""
    consuming = KeyedConsumer({"log_level": 0, **settings}, [topic], handler, limits, connect)
    running = asyncio.ensure_future(consuming.run())
    try:
        yield consuming
    finally:
        consuming.stop()
        await running


async def until(condition: Callable[[], bool], done: Callable[[], int]) -> None:
    """Wait until the condition holds, or `done` makes no more progress."""
    seen, since = -1, time.monotonic()
    while not condition() and time.monotonic() - since < QUIET_SECONDS:
        await asyncio.sleep(LOOK_SECONDS)
        if (now := done()) != seen:
            seen, since = now, time.monotonic()
