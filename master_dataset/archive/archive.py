"""Archive every record: events in the table of their source, all other records as dead letters.

One streaming query per source. A micro-batch is written in this order: events, dead letters, positions. Each commit
carries the query and the number of its micro-batch. Only the first micro-batch of a process can have been written
before, by a process that crashed. Whatever the tables already hold of it is then left out. The position is written
last, so every position that is read is safely in the tables (R2).
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import structlog
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.streaming.query import StreamingQuery

from master_dataset.delta.checkpoint import MICRO_BATCH, drop_incomplete, fsync_plan, unfinished_mark
from master_dataset.delta.tables import CONFLICTS, DEAD_LETTERS, BatchId, MasterTables
from master_dataset.errors import DependencyUnavailableError, OperatorError
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
    from datetime import datetime

    import pyarrow as pa
    from pyspark.accumulators import Accumulator

    from master_dataset.kafka.connection import KafkaConnection
    from master_dataset.kafka.growth import Partitions
    from master_dataset.registry.registry import TermsOf
    from master_dataset.source import Source

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


class Archive:
    """Writes the master dataset of one deployment, as the only process that appends to the tables of sources."""

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
        self._written_to: set[str] = set()  # topics of which this process has written a micro-batch
        self.refusal: OperatorError | None = None
        """The error that ended a query, if an operator has to act."""

    def roll_back_incomplete(self, checkpoints: "Mapping[Source[Any], str]") -> None:
        """Remove whatever a power cut left half-written.

        Call it before any source starts and before tables are read.
        """
        marks = {}
        for source, checkpoint in checkpoints.items():
            drop_incomplete(checkpoint)
            marks[source.topic] = [mark for mark in [unfinished_mark(checkpoint)] if mark]
        for topic, own in marks.items():
            self._tables.roll_back_incomplete(topic, own)
        self._tables.roll_back_incomplete(DEAD_LETTERS, [mark for own in marks.values() for mark in own])
        self._tables.roll_back_incomplete(CONFLICTS)

    def start(self, source: "Source[Any]", topic: Topic, checkpoint: str, trigger: Trigger) -> StreamingQuery:
        """Start the query of a source.

        Args:
            source: The source to archive; its tables are created if they are missing.
            topic: Where its records are.
            checkpoint: Folder of Spark's checkpoint. Without one the query starts at the recorded positions.
            trigger: Interval and size of micro-batches.
        """
        self._tables.create(source)
        tasks = self._spark.sparkContext.defaultParallelism
        starts, number = self._starting_offsets(source, topic.partitions.open), topic.partitions.open
        intake = Intake(topic.kafka, topic.partitions, number, starts, trigger.records, tasks)
        parsed, progress = self.parse(source, record_stream(self._spark, [source.topic], intake))

        def write(batch: DataFrame, number: int) -> None:
            fsync_plan(checkpoint, number)
            try:
                self.write_batch(source, batch, number, progress)
            except OperatorError as refusal:
                if not isinstance(refusal, DependencyUnavailableError):  # else the next process tries again
                    self.refusal = refusal  # Spark passes on only its text
                raise

        return (
            parsed.writeStream.queryName(f"archive_{source.topic}")
            .option("checkpointLocation", spark_uri(checkpoint))
            .trigger(processingTime=f"{trigger.seconds} seconds")
            .foreachBatch(write)
            .start()
        )

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
        for name in held:
            self._tables.fsync(name, written.mark)
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
            if has_any:
                self._tables.fsync(name, written.mark)
        if self._monitor is not None:
            self._monitor.on_batch(source.topic, partitions, repeats=source.topic in held)
        return partitions

    def _may_hold(self, source: "Source[Any]", name: str, batch: BatchId) -> bool:
        """Whether a process that crashed has written this micro-batch to the table, or a part of it."""
        return source.topic not in self._written_to and self._tables.holds(name, batch)


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
