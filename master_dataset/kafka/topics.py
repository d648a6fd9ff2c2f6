"""The topics of the sources, as Spark and the admin client see them."""

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
"""Spark's word for the first offset that a partition still has."""

_HEADERS = "coalesce(headers, array())"  # Spark's Arrow writer takes a time that is quadratic in NULLs of a list
_TOPIC_EXISTS = 36
_GRAVE = 2
"""The driver's least level of messages: it does without a broker that is lost, and need not say so every second."""
_TIMEOUT_SECONDS = 30
_ASK_AGAIN_MS, _TIMES_ASKED = 10_000, 18
"""How long Spark waits for the end of a partition, and how often. Java's client asks a leader that is lost, and no
other, until its time is over, a minute unless said; then Spark asks again, and finds the new leader."""

_WAIT_MS = 5
"""How long the broker may hold a question for more than there is. Spark asks only for what is there, and then for both
ends of the partition over the same connection: these would wait, by Kafka's default half a second for each partition.
"""


def _may_pass(error: Exception) -> bool:
    """A topic that was made a moment ago may have no leader yet."""
    return isinstance(error, KafkaException) and error.args[0].retriable()


@dataclass(frozen=True)
class Intake:
    """How topics are read. `starting_offsets`: the JSON that Spark's source takes. `per_batch`: records, at most.

    `tasks`: no more than these read a micro-batch. Each generates its code anew, which costs more than a small batch.
    """

    bootstrap: str
    starting_offsets: str
    per_batch: int
    tasks: int


def record_stream(spark: "SparkSession", topics: Sequence[str], intake: Intake) -> "DataFrame":
    """The committed records of topics as a stream: key, value, topic, partition, offset, timestamp, headers.

    Lost data is a named stop, never a skip. Without `minPartitions` a partition is one task in offset order (R3).
    """
    return (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", intake.bootstrap)
        .option("kafka.isolation.level", "read_committed")
        .option("kafka.fetch.max.wait.ms", _WAIT_MS)
        .option("kafka.request.timeout.ms", _ASK_AGAIN_MS)
        .option("kafka.default.api.timeout.ms", _ASK_AGAIN_MS)
        .option("fetchOffset.numRetries", _TIMES_ASKED)
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
    """The committed records of a topic from these offsets on and before those, with the columns of `record_stream`.

    Of what the topic no longer has, nothing: it is only looked back at.
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
    """Topic to partition to offset, as Spark's source takes its starting offsets: every partition must be named."""
    return json.dumps(
        {topic: {str(number): offset for number, offset in own.items()} for topic, own in offsets.items()}
    )


class Topics:
    """The topics of the sources on one cluster: made once, checked at every start, never altered."""

    def __init__(self, bootstrap: str) -> None:
        """`bootstrap`: host:port of any broker."""
        self._admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": _GRAVE})

    def create(self, topics: Iterable[str], partitions: int, replication: int, retention_ms: int) -> None:
        """Create what is missing, `replication` copies each. BrokerUnavailableError if the cluster does not answer.

        A record is acknowledged, and seen by readers, when a majority of the copies has it.
        """
        config = {
            "message.timestamp.type": "LogAppendTime",  # R1
            "retention.ms": str(retention_ms),
            "min.insync.replicas": str(majority(replication)),
            "max.message.bytes": str(4 * 1024 * 1024),  # so that a value that is too large can be kept as a dead letter
        }
        wanted = [NewTopic(topic, partitions, replication, config=config) for topic in topics]
        for topic, future in self._admin.create_topics(wanted, operation_timeout=_TIMEOUT_SECONDS).items():
            try:
                future.result()
            except KafkaException as error:
                if error.args[0].code() != _TOPIC_EXISTS:
                    message = f"the topic `{topic}` could not be created: {error.args[0].str()}"
                    raise BrokerUnavailableError(message, do="galatea doctor") from error

    def check(self, topic: str, partitions: int) -> None:
        """OperatorError unless the topic stamps records itself and has as many partitions as when it was made."""
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
            raise OperatorError(message, do=f"set GALATEA_KAFKA_PARTITIONS={found}, or make a new topic")

    def partitions(self, topic: str) -> list[int]:
        """The partition numbers of a topic."""
        metadata = self._admin.list_topics(topic, timeout=_TIMEOUT_SECONDS).topics[topic]
        if metadata.error is not None:
            raise BrokerUnavailableError(
                f"the topic `{topic}` cannot be read: {metadata.error.str()}", do="galatea status"
            )
        return sorted(metadata.partitions)

    def end_offsets(self, topic: str) -> dict[int, int]:
        """Partition to the offset behind its last record."""
        return self._offsets(topic, OffsetSpec.latest())  # type: ignore[no-untyped-call]

    def committed_ends(self, topic: str) -> dict[int, int]:
        """Partition to the offset before which every transaction is decided: nobody can be asked to read further."""
        return self._offsets(topic, OffsetSpec.latest(), IsolationLevel.READ_COMMITTED)  # type: ignore[no-untyped-call]

    def offsets_since(self, topic: str, epoch_ms: int) -> dict[int, int]:
        """Partition to the first offset stamped at or after the time, or its end where there is none.

        The end is read first: a record that arrives in between lies behind it and is read either way.
        """
        ends = self.end_offsets(topic)
        since = self._offsets(topic, OffsetSpec.for_timestamp(epoch_ms))
        return {partition: since[partition] if since[partition] >= 0 else end for partition, end in ends.items()}

    @stamina.retry(on=_may_pass, timeout=_TIMEOUT_SECONDS)
    def _offsets(
        self, topic: str, spec: OffsetSpec, isolation: IsolationLevel = IsolationLevel.READ_UNCOMMITTED
    ) -> dict[int, int]:
        asked = {TopicPartition(topic, partition): spec for partition in self.partitions(topic)}
        found = self._admin.list_offsets(asked, isolation_level=isolation, request_timeout=_TIMEOUT_SECONDS)
        return {place.partition: future.result().offset for place, future in found.items()}
