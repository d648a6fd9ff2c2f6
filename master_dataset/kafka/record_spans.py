"""Read records between offsets with librdkafka, in Spark's workers.

Spark's own source reads with Kafka's Java client, which makes an object of every header. A record of 1 MB can have
millions of them, for which no process of Galatea has the memory, however often it starts again. librdkafka keeps the
headers as the bytes they are, and passes no more than 100,000 of them on. So a stream reads with Spark's source, and
what has once been begun and not ended, perhaps because of such a record, is read from here the next time.
"""

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition
from pyspark.sql.pandas.types import from_arrow_schema

from master_dataset.errors import BrokerUnavailableError, OperatorError
from master_dataset.kafka.client_errors import ClientErrors
from master_dataset.kafka.client_settings import LARGEST_BATCH
from master_dataset.kafka.record import headers_of_message
from master_dataset.kafka.topics import record_columns
from master_dataset.parsing.rows import HEADERS, INSTANT

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from master_dataset.kafka.connection import KafkaConnection
    from master_dataset.kafka.growth import Offsets, Partitions

SILENT_SECONDS = 30.0
"""How long a partition may send nothing of what it has."""
_POLL_SECONDS = 1.0
_MOST_RECORDS, _MOST_BYTES = 8_000, 4 * 2**20
"""Of a batch: as many records as Spark would pass on at once, and fewer bytes."""
_HELD_KB = 4 * 2**10
"""What the client holds of a partition beyond one answer of a broker, which may expand to 22 times its size."""
_DELETED = (KafkaError.OFFSET_OUT_OF_RANGE, KafkaError._AUTO_OFFSET_RESET)  # noqa: SLF001 - its name
_RECORDS = pa.schema(
    [
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("timestamp", INSTANT),
        ("headers", HEADERS),
    ]
)
"""The columns of Spark's source."""
_OPTIONS: Mapping[str, Any] = {
    "group.id": "spark-kafka-source",  # no position is committed; the right to it is the one that Spark's source needs
    "enable.auto.commit": False,
    "isolation.level": "read_committed",
    "enable.partition.eof": True,
    "auto.offset.reset": "error",  # never skip what was deleted unnoticed
    "fetch.wait.max.ms": 5,  # as of `record_stream`
    "fetch.max.bytes": LARGEST_BATCH,
    "fetch.message.max.bytes": LARGEST_BATCH,
    "queued.max.messages.kbytes": _HELD_KB,
    "log_level": 2,
}


class Span(NamedTuple):
    """Records of one partition from the offset `since` to before `until`."""

    topic: str
    partition: int
    since: int
    until: int


def spans_between(since: "Offsets", until: "Offsets") -> list[Span]:
    """Return what lies between two offsets of each partition. A partition without a first one begins at 0."""
    found = (
        Span(topic, partition, since.get(topic, {}).get(partition, 0), end)
        for topic, own in until.items()
        for partition, end in own.items()
    )
    return [each for each in found if each.since < each.until]


def record_spans(
    spark: "SparkSession",
    kafka: "KafkaConnection",
    partitions: "Partitions",
    spans: Sequence[Span],
    *,
    skips_deleted: bool,
) -> "DataFrame":
    """Return the committed records of some spans, with the columns of `record_stream`.

    Args:
        spark: The session.
        kafka: The cluster.
        partitions: Those of the topics.
        spans: What to read. One task reads a span, in the order of offsets.
        skips_deleted: Leave out records that the topic no longer has; otherwise the job fails.
    """
    reader = SpanReader(kafka, tuple(spans), skips_deleted=skips_deleted)
    return (
        spark.range(len(spans), numPartitions=max(1, len(spans)))
        .mapInArrow(reader, from_arrow_schema(_RECORDS))
        .selectExpr(*record_columns(partitions))
    )


@dataclass(frozen=True)
class SpanReader:
    """Runs in Spark's workers: takes the numbers of spans, returns their records.

    Attributes:
        kafka: The cluster.
        spans: By number.
        skips_deleted: As of `record_spans`.
    """

    kafka: "KafkaConnection"
    spans: Sequence[Span]
    skips_deleted: bool

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Read the spans one after the other: only one answer of a broker is then in memory.

        Raises:
            BrokerUnavailableError: A partition sends nothing.
            OperatorError: Records were deleted, and are not to be left out.
        """
        numbers = [number for batch in batches for number in batch.column("id").to_pylist()]
        if not numbers:
            return
        errors = ClientErrors(self.kafka)
        consumer = errors.connect(Consumer, _OPTIONS)
        try:
            for number in numbers:
                yield from _batches(self._records(consumer, self.spans[number]))
        except KafkaException as error:
            raise errors.translated(error, "read the topic again") from error
        finally:
            consumer.close()

    def _records(self, consumer: Consumer, span: Span) -> Iterator[Message]:
        consumer.assign([TopicPartition(span.topic, span.partition, span.since)])
        heard_at = time.monotonic()
        while True:
            message = consumer.poll(_POLL_SECONDS)
            if message is None:
                _refuse_silence(span, time.monotonic() - heard_at)
                continue
            heard_at, offset, error = time.monotonic(), message.offset() or 0, message.error()
            if error is None and offset < span.until:
                yield message
                offset += 1
            elif error is not None and error.code() in _DELETED:
                offset = self._first_offset(consumer, span)
                consumer.assign([TopicPartition(span.topic, span.partition, offset)])
            elif error is not None and error.code() != KafkaError._PARTITION_EOF:  # noqa: SLF001 - its name
                raise KafkaException(error)
            if offset >= span.until:  # of an end of the partition, it is where the next record will be
                return

    def _first_offset(self, consumer: Consumer, span: Span) -> int:
        """Where the partition begins now."""
        if not self.skips_deleted:
            message = f"records of `{span.topic}/{span.partition}` were deleted before they were read"
            raise OperatorError(message, do="restore the topic, or the deployment from a backup")
        partition = TopicPartition(span.topic, span.partition)
        first, _ = consumer.get_watermark_offsets(partition, SILENT_SECONDS)
        return int(first)


def _refuse_silence(span: Span, seconds: float) -> None:
    if seconds > SILENT_SECONDS:
        message = f"`{span.topic}/{span.partition}` has sent nothing for {SILENT_SECONDS:g} s"
        raise BrokerUnavailableError(message, do="galatea status")


def _batches(messages: Iterable[Message]) -> Iterator[pa.RecordBatch]:
    held, size = list[dict[str, Any]](), 0
    for message in messages:
        row = _row(message)
        held.append(row)
        size += len(row["key"] or b"") + len(row["value"] or b"")
        size += sum(len(each["key"]) + len(each["value"] or b"") for each in row["headers"])
        if len(held) == _MOST_RECORDS or size >= _MOST_BYTES:
            yield pa.RecordBatch.from_pylist(held, _RECORDS)
            held, size = [], 0
    if held:
        yield pa.RecordBatch.from_pylist(held, _RECORDS)


def _row(message: Message) -> dict[str, Any]:
    _, received_ms = message.timestamp()
    return {
        "key": message.key(),
        "value": message.value(),
        "topic": message.topic(),
        "partition": message.partition(),
        "offset": message.offset(),
        "timestamp": received_ms * 1000,
        "headers": [{"key": name, "value": value} for name, value in headers_of_message(message)],
    }
