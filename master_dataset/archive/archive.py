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
from threading import Lock
from typing import TYPE_CHECKING, Any, Protocol

import structlog
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.streaming.query import StreamingQuery

from master_dataset.delta.checkpoint import (
    MICRO_BATCH,
    adopt,
    checkpoints_in,
    drop_incomplete,
    fsync_plan,
    furthest,
    last_plan,
    unfinished_marks,
)
from master_dataset.delta.tables import CONFLICTS, DEAD_LETTERS, BatchId, MasterTables
from master_dataset.errors import CheckpointInUseError, DependencyUnavailableError, OperatorError
from master_dataset.failpoints import Failpoint, failpoint
from master_dataset.kafka.partition_progress import Progress, ProgressParam, count_received, progress_of
from master_dataset.kafka.topics import EARLIEST, Intake, offsets_json, record_stream
from master_dataset.kafka.trace_contexts import TraceContexts, trace_contexts, trace_contexts_of
from master_dataset.object_store import spark_uri
from master_dataset.parsing.rows import output_schema, rows
from master_dataset.tracing import Attributes, MicroBatchSpan, micro_batch

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Callable, Iterator, Mapping
    from collections.abc import Set as AbstractSet
    from datetime import datetime

    import pyarrow as pa
    from pyspark.accumulators import Accumulator

    from master_dataset.kafka.connection import KafkaConnection
    from master_dataset.kafka.growth import Partitions
    from master_dataset.registry.registry import TermsOf
    from master_dataset.source import Source

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
        terms: "Callable[[], TermsOf]",
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
        parsed, progress = self.parse(source, record_stream(self._spark, [source.topic], intake))

        def write(batch: DataFrame, number: int) -> None:
            fsync_plan(checkpoint, number)
            try:
                with writes.begin():
                    self.write_batch(source, batch, number, progress)
            except OperatorError as refusal:
                if not isinstance(refusal, DependencyUnavailableError):  # else the next process tries again
                    writes.refusal = refusal  # Spark passes on only its text
                raise
            self._repeated.pop(source.topic, None)

        query = self._queries[source.topic] = (
            parsed.writeStream.queryName(f"archive_{source.topic}")
            .option("checkpointLocation", spark_uri(checkpoint))
            .trigger(processingTime=f"{trigger.seconds} seconds")
            .foreachBatch(write)
            .start()
        )
        return query

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

    def parse(self, source: "Source[Any]", records: DataFrame) -> "tuple[DataFrame, Accumulator[Progress]]":
        """Parse every record, lazily.

        Returns:
            The parsed rows, and an accumulator. Each time the rows are computed, it adds what they contain.
        """
        progress = self._spark.sparkContext.accumulator({}, ProgressParam())
        traces = self._traces[source.topic] = trace_contexts(self._spark)
        parser = _parser(source, self._terms, progress, traces)
        return records.mapInArrow(parser, from_arrow_schema(output_schema(source))), progress

    def write_batch(
        self, source: "Source[Any]", batch: DataFrame, number: int, progress: "Accumulator[Progress]"
    ) -> None:
        """Archive a micro-batch of parsed records.

        They are parsed once and kept until all of them are written, so that each is an event or a dead letter even if
        its store is registered meanwhile. If an executor is lost with some of them, Spark parses these again; nothing
        is recorded then, and the next process writes what is missing.

        Args:
            source: Whose records they are.
            batch: The rows of `parse`.
            number: Spark's number of the micro-batch.
            progress: The accumulator of `parse`.

        Raises:
            RuntimeError: Records were parsed again while they were written.
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
            parsed = batch.persist()
            try:
                partitions = self._write_parsed(source, parsed, BatchId(query, number), progress)
            finally:
                parsed.unpersist()
                self._note_traces(source, span)
            span.attributes["messaging.batch.message_count"] = sum(each.received for each in partitions.values())
            for partition, each in partitions.items():
                self._positions.record(source.topic, partition, each.offset + 1, each.received_at)
            failpoint(Failpoint.ARCHIVE_RECORDED)
            self._written_to.add(source.topic)
        events = sum(each.events for each in partitions.values())
        log.info("archive.kept", source=source.topic, batch=number, events=events, **span.log_ids)

    def _note_traces(self, source: "Source[Any]", span: MicroBatchSpan) -> None:
        if (traces := self._traces.get(source.topic)) is not None:
            span.links, traces.value = traces.value, frozenset()

    def _write_parsed(
        self, source: "Source[Any]", parsed: DataFrame, written: BatchId, progress: "Accumulator[Progress]"
    ) -> Progress:
        """Write what the tables do not hold yet, until it is on the disk. Returns what the micro-batch contains."""
        failpoint(Failpoint.ARCHIVE_BEGUN)
        held = [name for name in (source.topic, DEAD_LETTERS) if self._may_hold(source, name, written)]
        for name in held:  # a roll back looks for the newest commit of a mark alone
            self._tables.fsync(name, written)
        progress.value = {}
        parsed.count()  # parses all of it; later steps read what is kept
        partitions = progress.value
        has_events = any(each.events for each in partitions.values())
        has_dead_letters = any(each.dead_letters for each in partitions.values())
        missing = parsed
        for name in held:
            missing = self._tables.without_written(self._spark, missing, name, source.topic)
        events, dead_letters = (missing.where(f"kind = '{kind}'") for kind in ("event", "dead_letter"))
        if has_events and not (
            held and events.isEmpty()
        ):  # many micro-batches have none; an empty commit takes a second
            self._tables.append_events(source, events, written, repeats=source.topic in held)
        failpoint(Failpoint.ARCHIVE_EVENTS)
        if has_dead_letters and not (held and dead_letters.isEmpty()):
            self._tables.append_dead_letters(source, dead_letters, written, repeats=DEAD_LETTERS in held)
        failpoint(Failpoint.ARCHIVE_DEAD_LETTERS)
        if progress.value is not partitions:  # each addition makes a new one
            raise RuntimeError(f"Records of `{source.topic}` were parsed again while they were written.")
        for name, has_any in ((source.topic, has_events), (DEAD_LETTERS, has_dead_letters)):
            if has_any or name in held:
                self._tables.fsync(name, written)
        if self._monitor is not None:
            self._monitor.on_batch(source.topic, partitions, repeats=source.topic in held)
        return partitions

    def _may_hold(self, source: "Source[Any]", name: str, batch: BatchId) -> bool:
        """Whether a process that crashed has written this micro-batch to the table, or a part of it."""
        may_be_begun = batch.number <= self._planned.get(source.topic, batch.number)
        return may_be_begun and source.topic not in self._written_to and self._tables.holds(name, batch)


def _parser(
    source: "Source[Any]",
    terms: "Callable[[], TermsOf]",
    progress: "Accumulator[Progress]",
    traces: "Accumulator[TraceContexts] | None",
) -> "Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]":
    def parse(batches: "Iterator[pa.RecordBatch]") -> "Iterator[pa.RecordBatch]":
        newest: dict[int, int] = {}
        received: list[Counter[int]] = []

        def counted() -> "Iterator[pa.RecordBatch]":
            for batch in batches:
                received.append(count_received(batch))
                if traces is not None and (found := trace_contexts_of(batch)):
                    traces.add(found)
                yield batch

        for batch in rows(source, counted(), terms()):  # yields one batch for each that it takes
            progress.add(progress_of(batch, newest, received.pop()))
            yield batch

    return parse
