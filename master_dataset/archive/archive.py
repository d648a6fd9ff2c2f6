"""Keeps every record for ever: events in the source's append-only table, all others as dead letters.

One streaming query per source. A micro-batch is written in this order: events, dead letters, positions. Each commit
carries the query and the number of the batch. Only the first batch of a process can be a repetition, after a crash:
what the tables hold of it already is left out. The position is written last, so whoever has seen it may rely on the
tables (R2).
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import structlog
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.streaming.query import StreamingQuery

from master_dataset.delta.checkpoint import MICRO_BATCH, drop_incomplete, fsync_plan, mark_of, unfinished_mark
from master_dataset.delta.tables import CONFLICTS, DEAD_LETTERS, MasterTables
from master_dataset.failpoints import Failpoint, failpoint
from master_dataset.kafka.partition_progress import Progress, ProgressParam, count_received
from master_dataset.kafka.partition_progress import progress_of as seen_in
from master_dataset.kafka.topics import EARLIEST, Intake, Topics, offsets_json, record_stream
from master_dataset.parsing.rows import output_schema, rows

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Callable, Iterator, Mapping
    from datetime import datetime

    import pyarrow as pa
    from pyspark.accumulators import Accumulator

    from master_dataset.registry.registry import TermsOf
    from master_dataset.source import Source

log = structlog.get_logger()


class Positions(Protocol):
    """Where the archive says how far it has come."""

    def record(self, topic: str, partition: int, position: int, received_at: "datetime") -> None:
        """Everything before the offset `position` is kept. Never goes back."""

    def read(self) -> "Mapping[str, Mapping[int, int]]":
        """Topic to partition to position."""


class Watch(Protocol):
    """Looks at what is kept, for metrics and alarms."""

    def kept(self, topic: str, seen: Progress, *, repeats: bool) -> None:
        """A micro-batch is in the tables, its positions are not recorded. `repeats`: it was there before a crash."""


@dataclass(frozen=True)
class Pace:
    """How often a micro-batch starts, and how many records it takes at most."""

    seconds: float
    records: int


class Archive:
    """Writes the master dataset of one deployment. There is one appender per table: this one."""

    def __init__(
        self,
        spark: SparkSession,
        tables: MasterTables,
        positions: Positions,
        terms: "Callable[[], TermsOf]",
        watch: Watch | None = None,
    ) -> None:
        """`terms` is called in Spark's workers, once per task; it must be picklable."""
        self._spark, self._tables, self._positions, self._terms = spark, tables, positions, terms
        self._watch = watch
        self._begun: set[str] = set()

    def take_back_torn(self, checkpoints: "Mapping[Source[Any], str]") -> None:
        """What a power cut has left half written, before a source starts and tables are read."""
        marks = {}
        for source, checkpoint in checkpoints.items():
            drop_incomplete(checkpoint)
            marks[source.topic] = [mark for mark in [unfinished_mark(checkpoint)] if mark]
        for topic, own in marks.items():
            self._tables.take_back_torn(topic, own)
        self._tables.take_back_torn(DEAD_LETTERS, [mark for own in marks.values() for mark in own])
        self._tables.take_back_torn(CONFLICTS)

    def start(self, source: "Source[Any]", bootstrap: str, checkpoint: str, pace: Pace) -> StreamingQuery:
        """Start (or go on) archiving a source. `checkpoint` is a folder; without one, go on behind what is kept."""
        self._tables.create(self._spark, source)
        tasks = self._spark.sparkContext.defaultParallelism
        intake = Intake(bootstrap, self._starting_offsets(source, bootstrap), pace.records, tasks)
        parsed, seen = self.parsed(source, record_stream(self._spark, [source.topic], intake))
        return (
            parsed.writeStream.queryName(f"archive_{source.topic}")
            .option("checkpointLocation", checkpoint)
            .trigger(processingTime=f"{pace.seconds} seconds")
            .foreachBatch(lambda batch, number: self._planned(source, checkpoint, batch, number, seen))
            .start()
        )

    def _planned(
        self, source: "Source[Any]", checkpoint: str, batch: DataFrame, number: int, seen: "Accumulator[Progress]"
    ) -> None:
        fsync_plan(checkpoint, number)
        self.keep(source, batch, number, seen)

    def parsed(self, source: "Source[Any]", records: DataFrame) -> "tuple[DataFrame, Accumulator[Progress]]":
        """Every record parsed, and what will have been seen of them once they are computed."""
        seen = self._spark.sparkContext.accumulator({}, ProgressParam())
        parser = _parser(source, self._terms, seen)
        return records.mapInArrow(parser, from_arrow_schema(output_schema(source))), seen

    def _starting_offsets(self, source: "Source[Any]", bootstrap: str) -> str:
        """Where to go on without a checkpoint: at the recorded positions, written only when all before them was kept.

        What lies between the position and the tables is kept twice; batch drops equal places with the duplicates.
        """
        positions = self._positions.read().get(source.topic, {})
        partitions = Topics(bootstrap).partitions(source.topic)
        return offsets_json({source.topic: {number: positions.get(number, EARLIEST) for number in partitions}})

    def keep(self, source: "Source[Any]", batch: DataFrame, number: int, seen: "Accumulator[Progress]") -> None:
        """Keep a micro-batch of parsed records. It is parsed while its events are written, again for dead letters."""
        with MICRO_BATCH.labels("archive").time():
            events = self._keep(source, batch, number, seen)
        log.info("archive.kept", source=source.topic, batch=number, events=events)

    def _keep(self, source: "Source[Any]", batch: DataFrame, number: int, seen: "Accumulator[Progress]") -> int:
        query = self._spark.sparkContext.getLocalProperty("sql.streaming.queryId") or ""
        mark = mark_of(query, number)
        may_repeat = source.topic not in self._begun
        seen.value = {}
        failpoint(Failpoint.ARCHIVE_BEGUN)
        repeats = may_repeat and self._tables.holds(self._spark, source.topic, mark)
        events = batch.where("kind = 'event'")
        is_empty = repeats or events.isEmpty()  # often markers are all there is, and a commit costs a second
        seen.value = {}
        if is_empty:
            batch.write.format("noop").mode("overwrite").save()  # parse only
        else:
            self._tables.append_events(source, events, mark)
        failpoint(Failpoint.ARCHIVE_EVENTS)
        if is_empty and not repeats and any(each.events for each in seen.value.values()):
            seen.value = {}  # a store was registered in between, and what was no event is one now
            self._tables.append_events(source, events, mark)
        first = dict(seen.value)  # the second parse, of dead letters, counts everything again
        has_letters = any(each.dead_letters for each in first.values())
        if has_letters and not (may_repeat and self._tables.holds(self._spark, DEAD_LETTERS, mark)):
            self._tables.append_dead_letters(batch.where("kind = 'dead_letter'"), mark)
        failpoint(Failpoint.ARCHIVE_LETTERS)
        if repeats or any(each.events for each in first.values()):
            self._tables.sync(source.topic, mark)
        if has_letters:
            self._tables.sync(DEAD_LETTERS, mark)
        if self._watch is not None:
            self._watch.kept(source.topic, first, repeats=repeats)
        for partition, each in first.items():
            self._positions.record(source.topic, partition, each.offset + 1, each.received_at)
        failpoint(Failpoint.ARCHIVE_RECORDED)
        self._begun.add(source.topic)
        return sum(each.events for each in first.values())


def _parser(
    source: "Source[Any]", terms: "Callable[[], TermsOf]", seen: "Accumulator[Progress]"
) -> "Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]":
    def parsed(batches: "Iterator[pa.RecordBatch]") -> "Iterator[pa.RecordBatch]":
        newest: dict[int, int] = {}
        came: list[Counter[int]] = []

        def counted() -> "Iterator[pa.RecordBatch]":
            for batch in batches:
                came.append(count_received(batch))
                yield batch

        for batch in rows(source, counted(), terms()):  # one batch for each that came
            seen.add(seen_in(batch, newest, came.pop()))
            yield batch

    return parsed
