"""Kafka as the alert processor reads it: one partition of every source, assigned and read_committed.

The committed position of each topic carries the ids of all topics as metadata, written in the same transaction. So the
processor notices a topic that was recreated, and a position that Kafka has lost.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import NamedTuple, TypeVar

import msgspec
import structlog
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicCollection, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from master_dataset.errors import BrokerUnavailableError, OperatorError
from master_dataset.kafka.connection import KafkaConnection
from master_dataset.kafka.record import headers_of_message
from speed_layer.alerts.fold import LogRecord
from views.alerts.alert import ALERTS_TOPIC, PROCESSOR_GROUP
from views.alerts.signatures import AlertSignatures, RecordPlace

POLL_RECORDS = 500
POLL_SECONDS = 0.2
CALL_SECONDS = 20.0
LONGEST_TRANSACTION_SECONDS = 45.0
"""The broker aborts a transaction that is open for 30 s, and looks for such transactions every 10 s."""
_LOST = (KafkaError.OFFSET_OUT_OF_RANGE, KafkaError._AUTO_OFFSET_RESET)  # noqa: SLF001 - its name
Answer = TypeVar("Answer")
log = structlog.get_logger()


class RecordsLostError(OperatorError):
    """The next records to read were deleted from a topic."""

    def __init__(self, topic: str, partition: int) -> None:
        """Keep the topic, so that a reader that catches up can continue."""
        self.topic = topic
        what = f"records of `{topic}/{partition}` were deleted before alerts had read them"
        super().__init__(what, do="see docs/how-to/alerts.md, When records are gone")


class TopicIdentity(NamedTuple):
    """`id` changes when a topic is recreated. The number of partitions decides in which one a store's events are."""

    id: str
    partitions: int


class CommittedPositions(NamedTuple):
    """The committed positions of one partition.

    Attributes:
        positions: Topic to offset, for topics that have a position.
        ids: Topic to its id when the position was committed; without a position that an operator has set.
        known_topics: Every topic that was read when any of the positions was committed.
    """

    positions: dict[str, int]
    ids: Mapping[str, str]
    known_topics: Collection[str]


def encode_topic_ids(topic_ids: Mapping[str, TopicIdentity]) -> str:
    """The metadata of a position. It names all topics, as Kafka drops the position of a topic that is deleted."""
    return msgspec.json.encode({topic: each.id for topic, each in topic_ids.items()}).decode()


def parse_committed(partitions: Iterable[TopicPartition]) -> CommittedPositions:
    """Kafka's response for one partition of each topic."""
    positions, ids, known_topics = dict[str, int](), dict[str, str](), set[str]()
    for each in partitions:
        if each.offset >= 0:
            positions[each.topic] = each.offset
            with suppress(msgspec.DecodeError):  # another tool's metadata
                noted = msgspec.json.decode(each.metadata or "{}", type=dict[str, str])
                known_topics |= noted.keys()
                ids |= {topic: id_ for topic, id_ in noted.items() if topic == each.topic}
    return CommittedPositions(positions, ids, known_topics)


class SourceRecord(NamedTuple):
    """A record of a source. `entry` is None at the end of the partition; `next_offset` is the offset after it."""

    topic: str
    next_offset: int
    entry: LogRecord | None


class _AlertId(msgspec.Struct):
    alert_id: str


class PartitionReader:
    """Reads one partition of each topic. Every method raises BrokerUnavailableError."""

    def __init__(self, kafka: KafkaConnection, topics: Sequence[str], partition: int, opened_ms: int = 0) -> None:
        """`topics`: of the sources, and of corrections. `opened_ms`: its records count as received then or later."""
        self.topics, self.partition, self._opened_ms = topics, partition, opened_ms
        self._consumer = Consumer(
            {
                **kafka.client(),
                "group.id": PROCESSOR_GROUP,
                "client.id": "galatea-alerts",
                "enable.auto.commit": False,
                "enable.auto.offset.store": False,
                "isolation.level": "read_committed",
                "enable.partition.eof": True,
                "auto.offset.reset": "error",
                "fetch.wait.max.ms": 100,
                "reconnect.backoff.max.ms": 1000,
                "log_level": 2,
                "error_cb": lambda _: None,
            }
        )
        self._admin = AdminClient({**kafka.client(), "log_level": 2})

    @property
    def group(self) -> object:
        """The group metadata with which a transaction commits positions."""
        return self._consumer.consumer_group_metadata()

    def committed(self) -> CommittedPositions:
        """The committed position of each topic."""
        partitions = [TopicPartition(topic, self.partition) for topic in self.topics]
        return parse_committed(self._call(lambda: self._consumer.committed(partitions, CALL_SECONDS)))

    def topic_ids(self) -> dict[str, TopicIdentity]:
        """The id and the number of partitions of each topic."""
        futures = self._call(lambda: self._admin.describe_topics(TopicCollection(list(self.topics))))
        found = {topic: self._call(partial(future.result, CALL_SECONDS)) for topic, future in futures.items()}
        return {topic: TopicIdentity(str(each.topic_id), len(each.partitions)) for topic, each in found.items()}

    def bounds(self, topic: str) -> tuple[int, int]:
        """The first offset and the end offset."""
        partition = TopicPartition(topic, self.partition)
        return self._call(lambda: self._consumer.get_watermark_offsets(partition, CALL_SECONDS))

    def log_end(self, topic: str) -> int:
        """The end offset, behind open transactions too."""
        place = TopicPartition(topic, self.partition)
        specs = {place: OffsetSpec.latest()}  # type: ignore[no-untyped-call]
        listed = self._call(lambda: self._admin.list_offsets(specs, request_timeout=CALL_SECONDS))
        return int(self._call(lambda: listed[place].result(CALL_SECONDS)).offset)

    def seek(self, positions: Mapping[str, int]) -> None:
        """Read on from these positions."""
        self._consumer.assign([TopicPartition(topic, self.partition, at) for topic, at in positions.items()])

    def poll(self) -> list[SourceRecord]:
        """The next records, or none after a short wait. RecordsLostError."""
        messages = self._call(lambda: self._consumer.consume(POLL_RECORDS, POLL_SECONDS))
        return [read for message in messages if (read := self._read(message)) is not None]

    def known_alerts(self, beat: Callable[[], None], signatures: AlertSignatures) -> Iterator[tuple[str, int]]:
        """Read the topic of alerts to its end: id and receipt time (ms) of each committed alert.

        Alerts that retention deletes meanwhile are missing. What is not ours by its signature prevents no alert.
        """
        at, end = self.bounds(ALERTS_TOPIC)
        self.seek({ALERTS_TOPIC: at})
        while at < end:
            beat()
            try:
                polled = self.poll()
            except RecordsLostError:
                at = self.bounds(ALERTS_TOPIC)[0]
                self.seek({ALERTS_TOPIC: at})
                continue
            for read in polled:
                at = max(at, read.next_offset)
                if read.entry is not None and (id_ := self._alert_id(read.entry, signatures)):
                    yield id_, read.entry.received_ms

    def close(self) -> None:
        """Leave the broker."""
        self._consumer.close()

    def _alert_id(self, entry: LogRecord, signatures: AlertSignatures) -> str | None:
        """None if another program wrote the record; it does not prevent an alert."""
        place = RecordPlace(ALERTS_TOPIC, self.partition, entry.offset)
        if not signatures.is_ours(place, entry.value or b"", entry.headers):
            return None
        try:
            return msgspec.json.decode(entry.value, type=_AlertId).alert_id if entry.value else None
        except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
            log.warning("alerts.unreadable", partition=self.partition, offset=entry.offset, error=str(error))
            return None

    def _read(self, message: Message) -> SourceRecord | None:
        topic, offset = message.topic() or "", message.offset() or 0
        error = message.error()
        if error is None:
            headers = headers_of_message(message)
            entry = LogRecord(offset, max(message.timestamp()[1], self._opened_ms), message.value(), headers)
            return SourceRecord(topic, offset + 1, entry)
        if error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001 - its name
            return SourceRecord(topic, offset, None)
        if error.code() in _LOST:
            raise RecordsLostError(topic, self.partition)
        return None

    def _call(self, call: Callable[[], Answer]) -> Answer:
        try:
            return call()
        except KafkaException as error:
            raise BrokerUnavailableError(f"alerts cannot read: {error}", do="galatea status") from error


def committed_positions(kafka: KafkaConnection, topics: Sequence[str], partitions: int) -> Mapping[str, dict[int, int]]:
    """Topic to partition to the position that the alert processor has committed, if any. BrokerUnavailableError."""
    consumer = Consumer({**kafka.client(), "group.id": PROCESSOR_GROUP, "enable.auto.commit": False, "log_level": 2})
    try:
        asked = [TopicPartition(topic, number) for topic in topics for number in range(partitions)]
        committed = consumer.committed(asked, CALL_SECONDS)
    except KafkaException as error:
        raise BrokerUnavailableError(f"the positions of alerts are unknown: {error}", do="galatea status") from error
    finally:
        consumer.close()
    found: dict[str, dict[int, int]] = {}
    for each in committed:
        if each.offset >= 0:
            found.setdefault(each.topic, {})[each.partition] = each.offset
    return found


class TransactionLag(NamedTuple):
    """How far open transactions hold back read_committed readers. `records` includes aborted ones and markers."""

    records: int
    seconds: float

    @property
    def is_too_long(self) -> bool:
        """Whether the broker should have aborted the transaction by now."""
        return self.seconds > LONGEST_TRANSACTION_SECONDS


class TransactionMonitor:
    """Measures from check to check for how long the same open transaction holds back readers."""

    def __init__(self) -> None:
        """Start before the first check."""
        self._since: dict[int, tuple[int, float]] = {}

    def check(self, ends: Mapping[int, int], stable_ends: Mapping[int, int], now: float) -> TransactionLag:
        """Compare the end offsets with the last stable offsets, by partition. `now` is in seconds.

        A last stable offset that has moved since the previous check belongs to a different transaction.
        """
        before, self._since = self._since, {}
        for partition, end in ends.items():
            stable = stable_ends.get(partition, end)
            if stable < end:
                seen, since = before.get(partition, (stable, now))
                self._since[partition] = (stable, since if seen == stable else now)
        longest = max((now - since for _, since in self._since.values()), default=0.0)
        return TransactionLag(sum(ends[each] - stable for each, (stable, _) in self._since.items()), longest)
