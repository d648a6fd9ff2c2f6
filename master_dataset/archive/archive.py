"""Archive every record: events in the table of their source, all other records as dead letters.

One streaming query per source. A micro-batch is written in this order: events, dead letters, positions. Each commit
carries the query and the number of its micro-batch. Only the first micro-batch of a query can have been written before
it started, by a process that crashed. Whatever the tables already hold of it is then left out. The position is written
last, so every position that is read is safely in the tables (R2).

Several processes may share the sources: the query of each is in one of them. If two of them run it for a moment,
because one was suspended, the tables refuse a commit of a micro-batch that they have already.
"""

from contextlib import contextmanager
from dataclasses import dataclass
from tempfile import TemporaryDirectory
from threading import Lock
from typing import TYPE_CHECKING, Any, Protocol

import structlog
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from master_dataset.archive.data_writer import DataWriter, write_files
from master_dataset.delta.checkpoint import (
    MICRO_BATCH,
    adopt,
    checkpoints_in,
    drop_incomplete,
    fsync_plan,
    furthest,
    last_plan,
    read_ends,
    unfinished_marks,
)
from master_dataset.delta.tables import CONFLICTS, DEAD_LETTERS, BatchId, MasterTables
from master_dataset.errors import CheckpointInUseError, DependencyUnavailableError, OperatorError
from master_dataset.failpoints import Failpoint, failpoint
from master_dataset.kafka.partition_progress import Progress
from master_dataset.kafka.topics import EARLIEST, Intake, offsets_json, record_stream
from master_dataset.kafka.trace_contexts import TraceContexts, trace_contexts
from master_dataset.object_store import spark_uri
from master_dataset.parsing.rows import DEAD_LETTER, EVENT
from master_dataset.tracing import Attributes, MicroBatchSpan, micro_batch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from collections.abc import Set as AbstractSet
    from datetime import datetime

    from pyspark.accumulators import Accumulator

    from master_dataset.kafka.connection import KafkaConnection
    from master_dataset.kafka.growth import Partitions
    from master_dataset.registry.terms_history import TermsUntil
    from master_dataset.source import Source

FEW_RECORDS = 20_000
"""A second of work."""
_MOST_REPEATED = 3
_ENDED = "another process archives this topic from now on"
log = structlog.get_logger()


class Positions(Protocol):
    """Where the archive records its progress."""

    def record(self, topic: str, partition: int, position: int, received_at: "datetime") -> None:
        """Everything before the offset `position` is archived. A smaller position than the recorded one is ignored."""

    def read(self) -> "Mapping[str, Mapping[int, int]]":
        """Topic to partition to position."""


class ArchiveMonitor(Protocol):
    """Is notified of what has been archived, for metrics and alarms."""

    def on_batch(self, topic: str, progress: Progress, *, repeats: bool) -> None:
        """A micro-batch is in the tables, and its positions are not recorded yet.

        `repeats`: some or all of its events had already been written before a crash.
        """


@dataclass(frozen=True)
class Trigger:
    """How often a micro-batch starts, and the maximum number of its records."""

    seconds: float
    records: int


@dataclass(frozen=True)
class Topic:
    """Where the records of a source are. `partitions`: those of the topics, of which the open ones are read."""

    kafka: "KafkaConnection"
    partitions: "Partitions"


class _Writes:
    """The micro-batches of one query, one after the other, until it is to write no more."""

    def __init__(self) -> None:
        self._lock, self._has_ended = Lock(), False
        self.refusal: OperatorError | None = None  # what ended the query, if an operator has to act

    @contextmanager
    def begin(self) -> "Iterator[None]":
        """Around a micro-batch. RuntimeError if there is to be none, so that Spark does not note it as written."""
        with self._lock:
            if self._has_ended:
                raise RuntimeError(_ENDED)
            yield

    def end(self) -> None:
        """Let no micro-batch begin from now on, and return once none is being written."""
        self._has_ended = True
        with self._lock:
            pass


class Archive:
    """Writes the master dataset of one deployment: of a source, only while no other process does."""

    def __init__(
        self,
        spark: SparkSession,
        tables: MasterTables,
        positions: Positions,
        terms: "Callable[[], TermsUntil]",
        monitor: ArchiveMonitor | None = None,
    ) -> None:
        """`terms` is called in Spark's workers, once per task; it must be picklable."""
        self._spark, self._tables, self._positions, self._terms = spark, tables, positions, terms
        self._monitor = monitor
        self._traces: dict[str, Accumulator[TraceContexts] | None] = {}  # by topic
        self._written_to: set[str] = set()  # topics whose query has written a micro-batch in this process
        self._planned: dict[str, int] = {}  # topic to the last micro-batch that another process may have begun
        self._queries: dict[str, StreamingQuery] = {}  # by topic
        self._writes: dict[str, _Writes] = {}  # by topic
        self._repeated: dict[str, int] = {}  # by topic: queries one after the other that another process ended

    @property
    def topics(self) -> "AbstractSet[str]":
        """The topics whose query this process runs."""
        return self._queries.keys()

    def roll_back_incomplete(self, folders: "Mapping[Source[Any], str]") -> None:
        """Remove whatever a power cut left half-written, of all sources and of the tables that they share.

        Call it before tables are read and while no other process archives.
        """
        self._tables.roll_back_incomplete(DEAD_LETTERS)  # first: commits are looked for in it
        self._tables.roll_back_incomplete(CONFLICTS)
        for source, folder in folders.items():
            self._roll_back(source, folder)

    def _roll_back(self, source: "Source[Any]", folder: str) -> None:
        """Of one source: its own table, and what its last micro-batch wrote to the table of dead letters."""
        for checkpoint in checkpoints_in(folder):
            drop_incomplete(checkpoint)
        marks = unfinished_marks(folder)
        self._tables.roll_back_incomplete(source.topic, marks)
        self._tables.roll_back_micro_batches(DEAD_LETTERS, marks)

    def start(self, source: "Source[Any]", topic: Topic, folder: str, trigger: Trigger) -> StreamingQuery:
        """Start the query of a source, where another process may have ended.

        Args:
            source: The source to archive; its tables are created if they are missing.
            topic: Where its records are.
            folder: URI of the folder with its checkpoints. Without one the query starts at the recorded positions.
            trigger: Interval and size of micro-batches.
        """
        self._roll_back(source, folder)
        checkpoint = adopt(folder, furthest(folder))
        self._tables.create(source)
        self._written_to.discard(source.topic)
        self._planned[source.topic] = last_plan(checkpoint)
        writes = self._writes[source.topic] = _Writes()
        tasks = self._spark.sparkContext.defaultParallelism
        starts, number = self._starting_offsets(source, topic.partitions.open), topic.partitions.open
        intake = Intake(topic.kafka, topic.partitions, number, starts, trigger.records, tasks)
        records = record_stream(self._spark, [source.topic], intake)
        self._traces[source.topic] = trace_contexts(self._spark)

        def write(batch: DataFrame, number: int) -> None:
            fsync_plan(checkpoint, number)
            try:
                with writes.begin():
                    self.write_batch(source, batch.coalesce(1) if _has_few(checkpoint, number) else batch, number)
            except OperatorError as refusal:
                if not isinstance(refusal, DependencyUnavailableError):  # else the next process tries again
                    writes.refusal = refusal  # Spark passes on only its text
                raise
            self._repeated.pop(source.topic, None)

        query = self._queries[source.topic] = (
            records.writeStream.queryName(f"archive_{source.topic}")
            .option("checkpointLocation", spark_uri(checkpoint))
            .trigger(processingTime=f"{trigger.seconds} seconds")
            .foreachBatch(write)
            .start()
        )
        return query

    def rehearse(self, source: "Source[Any]", topic: Topic, starting_offsets: str) -> None:
        """Read and parse records as `start` does, and forget them, so that Spark has loaded what that needs.

        `starting_offsets`: as of `Intake`; only a few records follow them.
        """
        open_, tasks = topic.partitions.open, self._spark.sparkContext.defaultParallelism
        intake = Intake(topic.kafka, topic.partitions, open_, starting_offsets, FEW_RECORDS, tasks)
        without_files = DataWriter(source, self._terms, files={})

        def parse(batch: DataFrame, _: int) -> None:
            write_files(batch, without_files)

        with TemporaryDirectory() as checkpoint:
            query = (
                record_stream(self._spark, [source.topic], intake)
                .writeStream.queryName("rehearsal")
                .option("checkpointLocation", spark_uri(checkpoint))
                .trigger(availableNow=True)
                .foreachBatch(parse)
                .start()
            )
            query.awaitTermination()

    def stop(self, topic: str) -> None:
        """End the query of a topic, and return once this process writes nothing of it any more."""
        if (query := self._queries.pop(topic, None)) is None:
            return
        self._writes.pop(topic).end()  # first: Spark would interrupt a micro-batch, and not wait for it
        query.stop()
        log.info("archive.stopped", source=topic)

    def _has_repeated(self, topic: str) -> bool:
        """Whether another process has ended the query of this topic too often without any progress in between."""
        self._repeated[topic] = self._repeated.get(topic, 0) + 1
        return self._repeated[topic] > _MOST_REPEATED

    def check(self) -> None:
        """Raise what has ended a query, if one has ended.

        One that another process runs too, because that was suspended, is only stopped, a few times: if it is still to
        run here, it can go on behind what the other one has written.

        Raises:
            OperatorError: An operator has to act.
            StreamingQueryException, RuntimeError: Anything else; the process should start again.
        """
        for topic, query in list(self._queries.items()):
            if not query.isActive:
                try:
                    query.awaitTermination()
                except StreamingQueryException as error:
                    refusal = self._writes[topic].refusal
                    if not isinstance(refusal, CheckpointInUseError) or self._has_repeated(topic):
                        raise refusal or error from None
                    self.stop(topic)
                    continue
                raise RuntimeError(f"the query of `{topic}` has ended")

    def _starting_offsets(self, source: "Source[Any]", partitions: int) -> str:
        """Without a checkpoint: the recorded positions, which were written after everything before them was archived.

        Records archived beyond a position are archived twice. Batch drops equal positions together with duplicates.
        """
        positions = self._positions.read().get(source.topic, {})
        return offsets_json({source.topic: {number: positions.get(number, EARLIEST) for number in range(partitions)}})

    def write_batch(self, source: "Source[Any]", records: DataFrame, number: int) -> None:
        """Archive a micro-batch of records.

        Args:
            source: Whose records they are.
            records: With the columns of `record_stream`.
            number: Spark's number of the micro-batch.
        """
        attributes: Attributes = {
            "messaging.system": "kafka",
            "messaging.operation.name": "archive",
            "messaging.operation.type": "process",
            "messaging.destination.name": source.topic,
            "galatea.micro_batch": number,
        }
        with MICRO_BATCH.labels("archive").time(), micro_batch(f"archive {source.topic}", attributes) as span:
            query = self._spark.sparkContext.getLocalProperty("sql.streaming.queryId") or ""
            try:
                partitions = self._write_records(source, records, BatchId(query, number))
            finally:
                self._note_traces(source, span)
            span.attributes["messaging.batch.message_count"] = sum(each.received for each in partitions.values())
            for partition, each in partitions.items():
                self._positions.record(source.topic, partition, each.offset + 1, each.received_at)
            failpoint(Failpoint.ARCHIVE_RECORDED)
            self._written_to.add(source.topic)
        events = sum(each.events for each in partitions.values())
        log.info("archive.committed", source=source.topic, batch=number, events=events, **span.log_ids)

    def _note_traces(self, source: "Source[Any]", span: MicroBatchSpan) -> None:
        if (traces := self._traces.get(source.topic)) is not None:
            span.links, traces.value = traces.value, frozenset()

    def _write_records(self, source: "Source[Any]", records: DataFrame, batch: BatchId) -> Progress:
        """Write what the tables do not hold yet, until it is on the disk. Returns what the micro-batch contains."""
        failpoint(Failpoint.ARCHIVE_BEGUN)
        names = {EVENT: source.topic, DEAD_LETTER: DEAD_LETTERS}
        held = [name for name in names.values() if self._may_hold(source, name, batch)]
        for name in held:  # a roll back looks for the newest commit of a mark alone
            self._tables.fsync(name, batch)
        known = frozenset(place for name in held for place in self._tables.written(records, name, source.topic))
        files = {kind: self._tables.writer(source, name) for kind, name in names.items()}
        writer = DataWriter(source, self._terms, files, known, self._traces.get(source.topic))
        written = write_files(records, writer)

        def commit(kind: str) -> None:
            if written.files[kind].num_rows:  # many micro-batches have none; an empty commit takes a second
                repeats = names[kind] in held
                self._tables.commit(source, names[kind], written.files[kind], batch, repeats=repeats)

        commit(EVENT)
        failpoint(Failpoint.ARCHIVE_EVENTS)
        commit(DEAD_LETTER)
        failpoint(Failpoint.ARCHIVE_DEAD_LETTERS)
        for kind, name in names.items():
            if written.files[kind].num_rows or name in held:
                self._tables.fsync(name, batch)
        if self._monitor is not None:
            self._monitor.on_batch(source.topic, written.progress, repeats=source.topic in held)
        return written.progress

    def _may_hold(self, source: "Source[Any]", name: str, batch: BatchId) -> bool:
        """Whether a process that crashed has written this micro-batch to the table, or a part of it."""
        may_be_begun = batch.number <= self._planned.get(source.topic, batch.number)
        return may_be_begun and source.topic not in self._written_to and self._tables.holds(name, batch)


def _has_few(checkpoint: str, number: int) -> bool:
    """Whether one task writes the micro-batch: several would write more files than are worth the time."""
    if not number:
        return False
    before, after = (
        sum(end for partitions in read_ends(checkpoint, each).values() for end in partitions.values())
        for each in (number - 1, number)
    )
    return after - before <= FEW_RECORDS
