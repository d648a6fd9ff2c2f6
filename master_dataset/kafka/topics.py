"""Kafka topics: create and check them, their offsets, and reading them with Spark."""

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, NoReturn

import stamina
from confluent_kafka import IsolationLevel, KafkaError, KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    OffsetSpec,
    ResourceType,
)

from master_dataset.errors import OperatorError
from master_dataset.kafka.client_errors import ClientErrors
from master_dataset.kafka.client_settings import COMPRESSION, LARGEST_BATCH, majority
from master_dataset.kafka.growth import Partitions
from master_dataset.parsing.parse import STAMPED_AT

if TYPE_CHECKING:
    from concurrent.futures import Future

    from pyspark.sql import DataFrame, SparkSession

    from master_dataset.kafka.connection import KafkaConnection

EARLIEST = -2
"""What Spark calls the first offset that a partition still has."""

TIMESTAMPS, BROKERS_TIME = "message.timestamp.type", "LogAppendTime"
_POLLED = 32
"""Records that Spark's client holds decompressed at a time, of Kafka's default of 500: each may have megabytes."""
_HEADERS = "coalesce(headers, array())"  # the time of Spark's Arrow writer is quadratic in the NULLs of a list
_TOPIC_EXISTS = 36
_INVALID_PARTITIONS = 37
_NO_LEADER = (5, 6, 74, 75, 78)
"""Of one partition in an answer; the client does not mark these as retriable.

No leader, another one, another term of it than the client or the broker knows of, and one that does not know the end
yet. A broker that starts tells clients of its new term before it accepts it.
"""
_UNKNOWN_TOPIC = 3
_CRITICAL = 2
"""Lowest log level of the driver: it would log a lost broker every second."""
_TIMEOUT_SECONDS = 30
_REACH_SECONDS = 10
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
    """A topic or a partition that was just created may have no leader yet."""
    return isinstance(error, KafkaException) and (error.args[0].retriable() or error.args[0].code() in _NO_LEADER)


def _is_not_listed_yet(error: Exception) -> bool:
    return _is_transient(error) or (isinstance(error, KafkaException) and error.args[0].code() == _UNKNOWN_TOPIC)


class _TopicError(KafkaException):
    """Why one topic cannot be read, perhaps among others that can."""

    def __init__(self, error: KafkaError, topic: str) -> None:
        super().__init__(error)
        self.topic = topic


@dataclass(frozen=True)
class Intake:
    """How a stream reads topics of a cluster.

    Attributes:
        kafka: The cluster.
        partitions: Those of the topics.
        readable: How many of them are read, the first ones.
        starting_offsets: JSON for Spark's source, such as `offsets_json`.
        per_batch: Records of a micro-batch, at most.
        tasks: Of a micro-batch, at most; each compiles its code again, which costs more than a small batch.
    """

    kafka: "KafkaConnection"
    partitions: Partitions
    readable: int
    starting_offsets: str
    per_batch: int
    tasks: int


def record_stream(spark: "SparkSession", topics: Sequence[str], intake: Intake) -> "DataFrame":
    """Return the committed records of topics as a stream.

    Records that were deleted before they were read stop the stream. A partition is read by one task, in the order of
    offsets (R3).

    Returns:
        A streaming frame: key, value, topic, partition, offset, timestamp, headers. The timestamp is when the record
        was received: the broker's, or when its partition was opened. If partitions were added, the broker's is also
        in `STAMPED_AT`.
    """
    assigned = {topic: list(range(intake.readable)) for topic in topics}
    return (
        spark.readStream.format("kafka")
        .options(**intake.kafka.spark())
        .option("kafka.isolation.level", "read_committed")
        .option("kafka.fetch.max.wait.ms", _WAIT_MS)
        .option("kafka.max.poll.records", _POLLED)
        .option("kafka.request.timeout.ms", _OFFSET_TIMEOUT_MS)
        .option("kafka.default.api.timeout.ms", _OFFSET_TIMEOUT_MS)
        .option("fetchOffset.numRetries", _OFFSET_RETRIES)
        .option("assign", json.dumps(assigned))
        .option("startingOffsets", intake.starting_offsets)
        .option("maxOffsetsPerTrigger", intake.per_batch)
        .option("failOnDataLoss", "true")
        .option("includeHeaders", "true")
        .load()
        .selectExpr(*_record_columns(intake.partitions))
        .coalesce(intake.tasks)
    )


def _record_columns(partitions: Partitions) -> Sequence[str]:
    received = f"{partitions.received_sql()} AS timestamp"
    columns = ("key", "value", "topic", "partition", "offset", received, f"{_HEADERS} AS headers")
    return (*columns, f"timestamp AS {STAMPED_AT}") if partitions.growths else columns


def record_span(
    spark: "SparkSession",
    kafka: "KafkaConnection",
    partitions: Partitions,
    topic: str,
    span: tuple[Mapping[int, int], Mapping[int, int]],
) -> "DataFrame":
    """Return the committed records of a topic between offsets, with the columns of `record_stream`.

    Records that the topic no longer has are left out.

    Args:
        spark: The session.
        kafka: The cluster.
        partitions: Those of the topics.
        topic: The topic.
        span: Partition to its first offset, and to the offset after the last; only these partitions are read.
    """
    since, until = span
    return (
        spark.read.format("kafka")
        .options(**kafka.spark())
        .option("kafka.isolation.level", "read_committed")
        .option("kafka.fetch.max.wait.ms", _WAIT_MS)
        .option("kafka.max.poll.records", _POLLED)
        .option("assign", json.dumps({topic: sorted(since)}))
        .option("startingOffsets", offsets_json({topic: since}))
        .option("endingOffsets", offsets_json({topic: until}))
        .option("failOnDataLoss", "false")
        .option("includeHeaders", "true")
        .load()
        .selectExpr(*_record_columns(partitions))
    )


def offsets_json(offsets: Mapping[str, Mapping[int, int]]) -> str:
    """Return topic to partition to offset as JSON for Spark's source. Every partition must be named."""
    return json.dumps(
        {topic: {str(number): offset for number, offset in own.items()} for topic, own in offsets.items()}
    )


def _await_created(future: "Future[None]") -> None:
    """Wait until a topic exists. KafkaException if it could not be created."""
    try:
        future.result()
    except KafkaException as error:
        if error.args[0].code() != _TOPIC_EXISTS:
            raise


def _await_added(future: "Future[None]") -> None:
    """Wait until partitions are added. KafkaException if they could not be; that they are there is no error."""
    try:
        future.result(_TIMEOUT_SECONDS)
    except KafkaException as error:
        if error.args[0].code() != _INVALID_PARTITIONS:
            raise


@dataclass(frozen=True)
class TopicSettings:
    """What a topic of ours needs. A record is acknowledged, and visible to readers, once a majority of copies has it.

    Attributes:
        partitions: Number of partitions.
        replication: Copies of each record.
        retention_ms: How long records are kept.
        compression: What the broker stores, whatever it receives.
    """

    partitions: int
    replication: int
    retention_ms: int
    compression: str = COMPRESSION

    @property
    def config(self) -> Mapping[str, str]:
        """The options of the topic."""
        return {
            TIMESTAMPS: BROKERS_TIME,  # R1
            "retention.ms": str(self.retention_ms),
            "min.insync.replicas": str(majority(self.replication)),
            "max.message.bytes": str(LARGEST_BATCH),
            "compression.type": self.compression,
        }


@dataclass(frozen=True)
class TopicChange:
    """One topic that is missing, or has other options or fewer partitions.

    Attributes:
        topic: Its name.
        options: Those to set; all of them for a new topic.
        grows_from: The number of partitions that it has; 0: it is missing. None: it has as many as wanted.
    """

    topic: str
    options: Mapping[str, str]
    grows_from: int | None = None

    @property
    def is_new(self) -> bool:
        """Whether it is missing."""
        return self.grows_from == 0


class TopicLog(NamedTuple):
    """What a topic holds. `id`: another one if it is created again. `ends`: partition to the offset after its last."""

    id: str
    ends: Mapping[int, int]


class Topics:
    """The topics of one cluster.

    Every method raises BrokerUnavailableError, also if only an option of the client is wrong: then BrokerAccessError.
    """

    def __init__(self, kafka: "KafkaConnection") -> None:
        """`kafka`: the cluster. OperatorError if the client does not accept the options."""
        self._errors = ClientErrors(kafka)
        self._admin: AdminClient = self._errors.connect(AdminClient, {"log_level": _CRITICAL})

    def create(self, topics: Iterable[str], wanted: TopicSettings) -> None:
        """Create or alter topics, so that they are as wanted. OperatorError as `planned`."""
        self.apply(self.planned(topics, wanted), wanted)

    def planned(self, topics: Iterable[str], wanted: TopicSettings) -> Sequence[TopicChange]:
        """Return what `apply` has to change so that these topics are as wanted.

        Raises:
            OperatorError: A topic has more partitions, or a number that cannot be multiplied, or records with the
                sender's time.
        """
        with self._translated("list the topics"):
            known = self._admin.list_topics(timeout=_TIMEOUT_SECONDS).topics
        changes = []
        for topic in topics:
            if topic not in known:
                changes.append(TopicChange(topic, wanted.config, grows_from=0))
                continue
            options, found = self._differing(topic, wanted), len(known[topic].partitions)
            if wanted.partitions % found:
                message = f"the topic `{topic}` has {found} partitions, which cannot become {wanted.partitions}"
                raise OperatorError(message, do=f"set GALATEA_KAFKA_PARTITIONS to {found} or a multiple of it")
            grows_from = found if found < wanted.partitions else None
            if options or grows_from:
                changes.append(TopicChange(topic, options, grows_from))
        return changes

    def _differing(self, topic: str, wanted: TopicSettings) -> Mapping[str, str]:
        found = self._config(topic)
        options = {name: value for name, value in wanted.config.items() if found[name] != value}
        if TIMESTAMPS in options and any(self.end_offsets(topic).values()):
            self._refuse_senders_time(topic)
        return options

    def apply(self, changes: Iterable[TopicChange], wanted: TopicSettings) -> None:
        """Create topics and alter options; return when new ones are listed. What has been done meanwhile is no error.

        Partitions are added by `add_partitions`.
        """
        changes = list(changes)
        missing = [
            NewTopic(each.topic, wanted.partitions, wanted.replication, config=dict(each.options))
            for each in changes
            if each.is_new
        ]
        if missing:
            for topic, future in self._admin.create_topics(missing, operation_timeout=_TIMEOUT_SECONDS).items():
                with self._translated(f"create the topic `{topic}`"):
                    _await_created(future)
                    self._await_listed(topic)
        altered = [
            ConfigResource(
                ResourceType.TOPIC,
                each.topic,
                incremental_configs=[
                    ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
                    for name, value in each.options.items()
                ],
            )
            for each in changes
            if not each.is_new and each.options
        ]
        if altered:
            for resource, future in self._admin.incremental_alter_configs(altered).items():
                with self._translated(f"alter the topic `{resource.name}`"):
                    future.result(_TIMEOUT_SECONDS)

    def counts(self, topics: Iterable[str]) -> dict[str, int]:
        """Return how many partitions each of these topics has that exists."""
        with self._translated("list the topics"):
            known = self._admin.list_topics(timeout=_TIMEOUT_SECONDS).topics
        return {topic: len(known[topic].partitions) for topic in topics if topic in known}

    def add_partitions(self, topics: Iterable[str], partitions: int) -> None:
        """Add partitions to topics that have fewer; return when every broker that is asked knows them."""
        fewer = [topic for topic, count in self.counts(topics).items() if count < partitions]
        requests = [NewPartitions(topic, partitions) for topic in fewer]
        if requests:
            for topic, future in self._admin.create_partitions(requests, operation_timeout=_TIMEOUT_SECONDS).items():
                with self._translated(f"add partitions to the topic `{topic}`"):
                    _await_added(future)

    def brokers(self) -> int:
        """Return how many brokers the cluster has."""
        with self._translated("connect"):
            return len(self._admin.list_topics(timeout=_REACH_SECONDS).brokers)

    def check(self, topic: str, partitions: Collection[int]) -> None:
        """Check that the broker stamps the records of a topic, and that it has one of these numbers of partitions.

        Raises:
            OperatorError: One of the two is not the case.
        """
        if self._config(topic)[TIMESTAMPS] != BROKERS_TIME:
            self._refuse_senders_time(topic)
        self._check_partitions(topic, partitions)

    def _refuse_senders_time(self, topic: str) -> NoReturn:
        message = f"the topic `{topic}` keeps the sender's time; the cut needs the broker's (LogAppendTime)"
        raise OperatorError(message, do=f"set message.timestamp.type=LogAppendTime on `{topic}` before it has records")

    def _config(self, topic: str) -> Mapping[str, str | None]:
        resource = ConfigResource(ResourceType.TOPIC, topic)
        with self._translated(f"read the configuration of the topic `{topic}`"):
            described = self._admin.describe_configs([resource], request_timeout=_TIMEOUT_SECONDS)
            return {name: entry.value for name, entry in described[resource].result().items()}

    def _check_partitions(self, topic: str, partitions: Collection[int]) -> None:
        found = len(self.partitions(topic))
        if found not in partitions:
            known = " or ".join(map(str, sorted(partitions)))
            message = f"the topic `{topic}` has {found} partitions instead of {known}; keys would move"
            raise OperatorError(message, do="see docs/how-to/add-partitions.md")

    def cluster_id(self) -> str:
        """Return the id that the cluster was formatted with."""
        with self._translated("describe the cluster"):
            described = self._admin.describe_cluster(request_timeout=_TIMEOUT_SECONDS)
            return str(described.result(_TIMEOUT_SECONDS).cluster_id)

    def ids(self, topics: Iterable[str]) -> dict[str, str]:
        """Return the id of each of these topics that exists. A topic that is created again has another one."""
        with self._translated("list the topics"):
            known = self._admin.list_topics(timeout=_TIMEOUT_SECONDS).topics
            wanted = [topic for topic in topics if topic in known]
            if not wanted:
                return {}
            described = self._admin.describe_topics(TopicCollection(wanted), request_timeout=_TIMEOUT_SECONDS)
            return {topic: str(future.result(_TIMEOUT_SECONDS).topic_id) for topic, future in described.items()}

    def logs(self, topics: Collection[str]) -> dict[str, TopicLog]:
        """Return the id and the ends of each of these topics that exists, in three requests however many there are."""
        with self._translated("list the topics"):
            known = self._admin.list_topics(timeout=_REACH_SECONDS).topics
            wanted = [topic for topic in topics if topic in known]
            if not wanted:
                return {}
            described = self._admin.describe_topics(TopicCollection(wanted), request_timeout=_REACH_SECONDS)
            specs = {
                TopicPartition(topic, number): OffsetSpec.latest()  # type: ignore[no-untyped-call]
                for topic in wanted
                for number in known[topic].partitions
            }
            ends: dict[str, dict[int, int]] = {topic: {} for topic in wanted}
            for at, future in self._admin.list_offsets(specs, request_timeout=_REACH_SECONDS).items():
                ends[at.topic][at.partition] = future.result(_REACH_SECONDS).offset
            return {
                topic: TopicLog(str(future.result(_REACH_SECONDS).topic_id), ends[topic])
                for topic, future in described.items()
            }

    def reach(self) -> None:
        """Check that the cluster lets this client in."""
        with self._translated("connect"):
            self._admin.list_topics(timeout=_REACH_SECONDS)

    def partitions(self, topic: str) -> list[int]:
        """Return the partition numbers of a topic."""
        with self._translated(f"read the topic `{topic}`"):
            return self._partitions(topic)

    def first_offsets(self, topic: str) -> dict[int, int]:
        """Return partition to the offset of the first record that it still has."""
        return self._offsets(topic, OffsetSpec.earliest())  # type: ignore[no-untyped-call]

    def end_offsets(self, topic: str) -> dict[int, int]:
        """Return partition to the offset after its last record."""
        return self._offsets(topic, OffsetSpec.latest())  # type: ignore[no-untyped-call]

    def last_offsets(self, topic: str, records: int) -> dict[int, int]:
        """Return partition to the offset where its last `records` records begin, or its first if it has fewer."""
        firsts, ends = self.first_offsets(topic), self.end_offsets(topic)
        return {partition: max(first, ends[partition] - records) for partition, first in firsts.items()}

    def committed_ends(self, topic: str) -> dict[int, int]:
        """Return partition to the offset before which every transaction is decided, as far as readers can get."""
        return self._offsets(topic, OffsetSpec.latest(), IsolationLevel.READ_COMMITTED)  # type: ignore[no-untyped-call]

    def all_committed_ends(self, topics: Collection[str]) -> dict[str, dict[int, int]]:
        """Return what `committed_ends` does for each of these topics, with one request for each leader of them."""
        if not topics:
            return {}
        with self._translated(f"read the offsets of the topics {', '.join(f'`{topic}`' for topic in topics)}"):
            return self._listed_offsets(topics, OffsetSpec.latest(), IsolationLevel.READ_COMMITTED)  # type: ignore[no-untyped-call]

    def offsets_since(self, topic: str, epoch_ms: int) -> dict[int, int]:
        """Return partition to the first offset stamped at or after a time; its end if there is none.

        The end is read first: a record that arrives in between is after it, and is read in any case.
        """
        ends = self.end_offsets(topic)
        since = self._offsets(topic, OffsetSpec.for_timestamp(epoch_ms))
        return {partition: since[partition] if since[partition] >= 0 else end for partition, end in ends.items()}

    def _offsets(
        self, topic: str, spec: OffsetSpec, isolation: IsolationLevel = IsolationLevel.READ_UNCOMMITTED
    ) -> dict[int, int]:
        with self._translated(f"read the offsets of the topic `{topic}`"):
            return self._listed_offsets([topic], spec, isolation)[topic]

    @stamina.retry(on=_is_transient, timeout=_TIMEOUT_SECONDS)
    def _listed_offsets(
        self, topics: Collection[str], spec: OffsetSpec, isolation: IsolationLevel
    ) -> dict[str, dict[int, int]]:
        numbers = self._numbers(topics)
        specs = {TopicPartition(topic, number): spec for topic, own in numbers.items() for number in own}
        found: dict[str, dict[int, int]] = {topic: {} for topic in numbers}
        listed = self._admin.list_offsets(specs, isolation_level=isolation, request_timeout=_TIMEOUT_SECONDS)
        for each, future in listed.items():
            found[each.topic][each.partition] = future.result().offset
        return found

    def _partitions(self, topic: str) -> list[int]:
        return self._numbers([topic])[topic]

    def _numbers(self, topics: Collection[str]) -> dict[str, list[int]]:
        """The partition numbers of each topic, in one request if all of them are listed."""
        known = self._admin.list_topics(timeout=_TIMEOUT_SECONDS).topics if len(topics) > 1 else {}
        numbers = {}
        for topic in topics:
            # Why a topic is not among all of them is only said if it is asked for: it may be missing, or a right.
            metadata = known.get(topic) or self._admin.list_topics(topic, timeout=_TIMEOUT_SECONDS).topics[topic]
            if metadata.error is not None:
                raise _TopicError(metadata.error, topic)
            numbers[topic] = sorted(metadata.partitions)
        return numbers

    @stamina.retry(on=_is_not_listed_yet, timeout=_TIMEOUT_SECONDS)
    def _await_listed(self, topic: str) -> None:
        """The controller acknowledges a new topic before a broker lists it."""
        self._partitions(topic)

    @contextmanager
    def _translated(self, what: str) -> Iterator[None]:
        """Raise the driver's errors as ours, with the reason that the driver reports only to its callback."""
        try:
            yield
        except KafkaException as error:
            self._admin.poll(0)
            what = f"read the topic `{error.topic}`" if isinstance(error, _TopicError) else what
            raise self._errors.translated(error, what) from error
