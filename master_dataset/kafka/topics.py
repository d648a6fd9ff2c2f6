"""Kafka topics: create and check them, their offsets, and reading them with Spark."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import stamina
from confluent_kafka import IsolationLevel, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic, OffsetSpec, ResourceType

from master_dataset.errors import BrokerUnavailableError, OperatorError
from master_dataset.kafka.client_settings import majority

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

EARLIEST = -2
"""What Spark calls the first offset that a partition still has."""

_HEADERS = "coalesce(headers, array())"  # the time of Spark's Arrow writer is quadratic in the NULLs of a list
_TOPIC_EXISTS = 36
_CRITICAL = 2
"""Lowest log level of the driver: it would log a lost broker every second."""
_TIMEOUT_SECONDS = 30
_OFFSET_TIMEOUT_MS, _OFFSET_RETRIES = 10_000, 18
"""How long Spark waits for the end offset of a partition, and how often it tries.

The Java client queries a lost leader until the timeout, one minute by default; only the next attempt finds the new
leader.
"""

_WAIT_MS = 5
"""How long the broker may hold a fetch for more records.

Spark fetches only what exists, and then queries both ends of the partition over the same connection, which would wait
for Kafka's default of half a second per partition.
"""


def _is_transient(error: Exception) -> bool:
    """A topic that was just created may have no leader yet."""
    return isinstance(error, KafkaException) and error.args[0].retriable()


@dataclass(frozen=True)
class Intake:
    """How a stream reads topics.

    `starting_offsets`: JSON for Spark's source, such as `offsets_json`. `per_batch`: records of a micro-batch, at most.
    `tasks`: of a micro-batch, at most; each compiles its code again, which costs more than a small batch.
    """

    bootstrap: str
    starting_offsets: str
    per_batch: int
    tasks: int


def record_stream(spark: "SparkSession", topics: Sequence[str], intake: Intake) -> "DataFrame":
    """Return the committed records of topics as a stream.

    Records that were deleted before they were read stop the stream. A partition is read by one task, in the order of
    offsets (R3).

    Returns:
        A streaming frame: key, value, topic, partition, offset, timestamp, headers.
    """
    return (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", intake.bootstrap)
        .option("kafka.isolation.level", "read_committed")
        .option("kafka.fetch.max.wait.ms", _WAIT_MS)
        .option("kafka.request.timeout.ms", _OFFSET_TIMEOUT_MS)
        .option("kafka.default.api.timeout.ms", _OFFSET_TIMEOUT_MS)
        .option("fetchOffset.numRetries", _OFFSET_RETRIES)
        .option("subscribe", ",".join(topics))
        .option("startingOffsets", intake.starting_offsets)
        .option("maxOffsetsPerTrigger", intake.per_batch)
        .option("failOnDataLoss", "true")
        .option("includeHeaders", "true")
        .load()
        .selectExpr("key", "value", "topic", "partition", "offset", "timestamp", f"{_HEADERS} AS headers")
        .coalesce(intake.tasks)
    )


def record_span(
    spark: "SparkSession", bootstrap: str, topic: str, since: Mapping[int, int], until: Mapping[int, int]
) -> "DataFrame":
    """Return the committed records of a topic between offsets, with the columns of `record_stream`.

    Records that the topic no longer has are left out.

    Args:
        spark: The session.
        bootstrap: `host:port` of any broker.
        topic: The topic.
        since: Partition to first offset.
        until: Partition to the offset after the last.
    """
    return (
        spark.read.format("kafka")
        .option("kafka.bootstrap.servers", bootstrap)
        .option("kafka.isolation.level", "read_committed")
        .option("kafka.fetch.max.wait.ms", _WAIT_MS)
        .option("subscribe", topic)
        .option("startingOffsets", offsets_json({topic: since}))
        .option("endingOffsets", offsets_json({topic: until}))
        .option("failOnDataLoss", "false")
        .option("includeHeaders", "true")
        .load()
        .selectExpr("key", "value", "topic", "partition", "offset", "timestamp", f"{_HEADERS} AS headers")
    )


def offsets_json(offsets: Mapping[str, Mapping[int, int]]) -> str:
    """Return topic to partition to offset as JSON for Spark's source. Every partition must be named."""
    return json.dumps(
        {topic: {str(number): offset for number, offset in own.items()} for topic, own in offsets.items()}
    )


class Topics:
    """The topics of one cluster: created once, checked at every start, never altered."""

    def __init__(self, bootstrap: str) -> None:
        """`bootstrap`: host:port of any broker."""
        self._admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": _CRITICAL})

    def create(self, topics: Iterable[str], partitions: int, replication: int, retention_ms: int) -> None:
        """Create the topics that are missing.

        A record is acknowledged, and visible to readers, once a majority of its copies is written.

        Args:
            topics: Names.
            partitions: Partitions of each.
            replication: Copies of each record.
            retention_ms: How long records are kept.

        Raises:
            BrokerUnavailableError: The cluster does not respond.
        """
        config = {
            "message.timestamp.type": "LogAppendTime",  # R1
            "retention.ms": str(retention_ms),
            "min.insync.replicas": str(majority(replication)),
            "max.message.bytes": str(4 * 1024 * 1024),  # so that a value that is too large can become a dead letter
        }
        missing = [NewTopic(topic, partitions, replication, config=config) for topic in topics]
        for topic, future in self._admin.create_topics(missing, operation_timeout=_TIMEOUT_SECONDS).items():
            try:
                future.result()
            except KafkaException as error:
                if error.args[0].code() != _TOPIC_EXISTS:
                    message = f"the topic `{topic}` could not be created: {error.args[0].str()}"
                    raise BrokerUnavailableError(message, do="galatea doctor") from error

    def check(self, topic: str, partitions: int) -> None:
        """Check that the broker stamps the records of a topic and that its number of partitions has not changed.

        Raises:
            OperatorError: One of the two is not the case.
        """
        resource = ConfigResource(ResourceType.TOPIC, topic)
        config = self._admin.describe_configs([resource])[resource].result(_TIMEOUT_SECONDS)
        if config["message.timestamp.type"].value != "LogAppendTime":
            message = f"the topic `{topic}` keeps the sender's time; the cut needs the broker's (LogAppendTime)"
            raise OperatorError(
                message, do=f"set message.timestamp.type=LogAppendTime on `{topic}` before it has records"
            )
        found = len(self.partitions(topic))
        if found != partitions:
            message = f"the topic `{topic}` has {found} partitions and the setting says {partitions}; keys would move"
            raise OperatorError(message, do=f"set GALATEA_KAFKA_PARTITIONS={found}, or create a new topic")

    def partitions(self, topic: str) -> list[int]:
        """Return the partition numbers of a topic. BrokerUnavailableError if it cannot be read."""
        metadata = self._admin.list_topics(topic, timeout=_TIMEOUT_SECONDS).topics[topic]
        if metadata.error is not None:
            raise BrokerUnavailableError(
                f"the topic `{topic}` cannot be read: {metadata.error.str()}", do="galatea status"
            )
        return sorted(metadata.partitions)

    def end_offsets(self, topic: str) -> dict[int, int]:
        """Return partition to the offset after its last record."""
        return self._offsets(topic, OffsetSpec.latest())  # type: ignore[no-untyped-call]

    def committed_ends(self, topic: str) -> dict[int, int]:
        """Return partition to the offset before which every transaction is decided, as far as readers can get."""
        return self._offsets(topic, OffsetSpec.latest(), IsolationLevel.READ_COMMITTED)  # type: ignore[no-untyped-call]

    def offsets_since(self, topic: str, epoch_ms: int) -> dict[int, int]:
        """Return partition to the first offset stamped at or after a time; its end if there is none.

        The end is read first: a record that arrives in between is after it, and is read in any case.
        """
        ends = self.end_offsets(topic)
        since = self._offsets(topic, OffsetSpec.for_timestamp(epoch_ms))
        return {partition: since[partition] if since[partition] >= 0 else end for partition, end in ends.items()}

    @stamina.retry(on=_is_transient, timeout=_TIMEOUT_SECONDS)
    def _offsets(
        self, topic: str, spec: OffsetSpec, isolation: IsolationLevel = IsolationLevel.READ_UNCOMMITTED
    ) -> dict[int, int]:
        specs = {TopicPartition(topic, partition): spec for partition in self.partitions(topic)}
        found = self._admin.list_offsets(specs, isolation_level=isolation, request_timeout=_TIMEOUT_SECONDS)
        return {each.partition: future.result().offset for each, future in found.items()}
