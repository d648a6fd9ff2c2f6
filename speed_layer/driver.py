"""Runs one generation of the speed layer: the streaming query, and what happens after each of its micro-batches.

    Spark plans a micro-batch -> claim it by its end offsets -> count it in the workers (MicroBatch)
        -> write the visits that have closed -> record the positions -> take over from the generation before

The end offsets come from Spark's own offset log, which Spark writes before a micro-batch runs and replays it from.
"""

import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import structlog
from pyspark.errors import PythonException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from master_dataset.delta.checkpoint import MICRO_BATCH, fsync_plan, read_ends
from master_dataset.errors import CheckpointOutOfStepError, GenerationReplacedError, MicroBatchTooLargeError
from master_dataset.failpoints import Failpoint, failpoint
from master_dataset.kafka.trace_contexts import TraceContexts, trace_contexts
from master_dataset.object_store import spark_uri
from master_dataset.tracing import Attributes, micro_batch
from speed_layer.arrow_tables import last_received
from speed_layer.contributions import Contributions
from speed_layer.micro_batch import MicroBatch, Rehearsal, SpeedRows, SpeedTimings
from speed_layer.new_identities import FilterFiles
from speed_layer.parser import sources_of
from speed_layer.store_progress import StoreProgress
from speed_layer.stream import ALONE, Feed, Shares, counted, input_stream, tasks_of
from speed_layer.visits import VisitTracker
from views.arrow.contributions import check
from views.control.generation import Generation, Generations, Offsets, Reached
from views.control.speed_layout import BY_VIEW, SpeedLayout
from views.core.cut import UNIX_EPOCH
from views.core.view import View

if TYPE_CHECKING:
    from cassandra.cluster import Session
    from pyspark.accumulators import Accumulator

    from speed_layer.parser import Parser

log = structlog.get_logger()


_TOO_LARGE = re.compile(
    rf"^{re.escape(f'{MicroBatchTooLargeError.__module__}.{MicroBatchTooLargeError.__name__}')}:", re.MULTILINE
)
"""In the text of an error of a worker, which is all that Spark passes on: the line that names the error."""


class MicroBatchSizes:
    """How many records the micro-batches of one query have at most."""

    def __init__(self) -> None:
        """Knows none yet."""
        self._ends: dict[int, Offsets] = {-1: {}}  # ends of the last requested micro-batch

    def of(self, checkpoint: str, number: int, ends: Offsets) -> int:
        """The size of a micro-batch; of the first one, as if its topics were read from their beginning."""
        if number - 1 not in self._ends:
            self._ends[number - 1] = read_ends(checkpoint, number - 1)
        before = self._ends[number - 1]
        self._ends = {number: ends}
        return sum(
            end - before.get(topic, {}).get(partition, 0)
            for topic, own in ends.items()
            for partition, end in own.items()
        )


class SpeedDriver:
    """The streaming query of one generation, and what happens after each of its micro-batches."""

    def __init__(
        self,
        connect: "Callable[[], Session]",
        views: Sequence[View],
        timings: SpeedTimings,
        *,
        most_bytes: int,
        files: Path | None,
    ) -> None:
        """`connect` is also called in Spark's workers; it must be picklable and give one session per process.

        `most_bytes`: of the parsed events of a micro-batch. `files`: a folder that workers and this process share,
        for filters of identities; None: workers may run on other hosts, or a task twice at a time.

        Raises:
            DefinitionError: A view uses SQL that cannot be evaluated.
        """
        check(views)
        self._connect, self._views, self._timings = connect, views, timings
        self._most_bytes, self._files = most_bytes, files
        self._ages = (timings.oldest, timings.visits)
        self._visits: VisitTracker | None = None
        self._contributions = Contributions(views, *self._ages)
        self._generations = Generations(connect())
        self._taken_over = False
        self._recorded: dict[tuple[str, int], int] = {}  # (topic, partition) to position
        self._traces: Accumulator[TraceContexts] | None = None
        self._parser: Parser | None = None
        self._filters: FilterFiles | None = None
        self._folder: TemporaryDirectory[str] | None = None  # where the filters are
        self._tasks = 1
        self._sizes = MicroBatchSizes()
        self._progress: StoreProgress | None = None
        self.refusal: CheckpointOutOfStepError | GenerationReplacedError | MicroBatchTooLargeError | None = None
        """The error that ended the query, if it is of one of these types."""
        self.size = 0
        """Records of the micro-batch that was counted last, or refused; more of the first one of a generation."""
        self.ends: Offsets = {}
        """Where the micro-batch ends that needed too much memory."""

    def start(self, spark: SparkSession, generation: Generation, feed: Feed, checkpoint: str) -> StreamingQuery:
        """Start or continue the query of this generation, after a former one of this process has ended."""
        self.refusal, self._traces, self._recorded = None, trace_contexts(spark), {}
        self._sizes = MicroBatchSizes()
        self._progress = StoreProgress(self._connect(), generation.number, self._timings.ttl)
        feed = replace(feed, traces=self._traces)
        self._parser = feed.parser(self._views)
        self._taken_over = False
        self._tasks = tasks_of(spark)
        self._filters = self._fresh_filters(generation.layout)
        of_visits = [view for view in self._views if view.counts_visits]
        self._visits = VisitTracker(of_visits, self._ages, feed, self._timings.skew) if of_visits else None
        return (
            input_stream(spark, self._views, feed)
            .writeStream.queryName("speed")
            .option("checkpointLocation", spark_uri(checkpoint))
            .foreachBatch(lambda batch, number: self._timed(generation, batch, number, checkpoint))
            .start()
        )

    def _fresh_filters(self, layout: SpeedLayout) -> FilterFiles | None:
        """In a new folder: workers of a former query may still use theirs. None: every identity is looked up.

        What a killed process has left is removed: only the one that streams starts a query.
        """
        self.remove_files()
        if self._files is None or not layout.is_by_store:
            return None
        shutil.rmtree(self._files, ignore_errors=True)
        self._files.mkdir(parents=True, exist_ok=True)
        self._folder = TemporaryDirectory(dir=self._files, ignore_cleanup_errors=True)
        topics = tuple(source.topic for source in sources_of(self._views))
        return FilterFiles(Path(self._folder.name), self._tasks, topics, layout.buckets)

    def remove_files(self) -> None:
        """Remove the files of the query that has ended, or that the end of this process ends."""
        if self._folder is not None:
            self._folder.cleanup()

    def rehearse(self, spark: SparkSession, feed: Feed) -> None:
        """Read records as `start` does, and forget them, so that Spark has loaded and compiled what that needs.

        `feed`: only a few records, without writers.
        """
        parser, count = feed.parser(self._views), Rehearsal(self._contributions)
        with TemporaryDirectory() as checkpoint:
            query = (
                input_stream(spark, self._views, feed)
                .writeStream.queryName("rehearsal")
                .option("checkpointLocation", spark_uri(checkpoint))
                .trigger(availableNow=True)
                .foreachBatch(lambda batch, _: counted(batch, parser, count, Shares(1, BY_VIEW, self._most_bytes)))
                .start()
            )
            query.awaitTermination()

    def _timed(self, generation: Generation, batch: DataFrame, number: int, checkpoint: str) -> None:
        attributes: Attributes = {
            "messaging.system": "kafka",
            "messaging.operation.name": "count",
            "messaging.operation.type": "process",
            "galatea.micro_batch": number,
            "galatea.generation": generation.number,
        }
        with MICRO_BATCH.labels("speed").time(), micro_batch("count", attributes) as span:
            try:
                self._write(generation, batch, number, checkpoint)
            finally:
                if self._traces is not None:
                    span.links, self._traces.value = self._traces.value, frozenset()

    def _write(self, generation: Generation, batch: DataFrame, number: int, checkpoint: str) -> None:
        fsync_plan(checkpoint, number)
        ends = read_ends(checkpoint, number)
        try:
            self._generations.claims.claim(generation.number, number, ends)
        except (CheckpointOutOfStepError, GenerationReplacedError) as refusal:
            self.refusal = refusal
            raise
        failpoint(Failpoint.SPEED_CLAIMED)
        count = MicroBatch(self._connect, self._contributions, self._timings, generation, number, self._filters)
        assert self._parser is not None  # noqa: S101 - for the type checker
        self.size = self._sizes.of(checkpoint, number, ends)
        tasks = self._tasks if self.size > ALONE else 1
        try:
            output = counted(batch, self._parser, count, Shares(tasks, generation.layout, self._most_bytes))
        except PythonException as error:
            if _TOO_LARGE.search(str(error)):
                message = f"micro-batch {number} needs more than {self._most_bytes >> 20:,} MB of memory"
                self.refusal = MicroBatchTooLargeError(message, do="set GALATEA_SPEED_MICRO_BATCH_MB to more")
                self.refusal.__cause__, self.ends = error, ends
            raise
        if self._filters is not None:
            self._filters.remove_old()
        if self._visits:
            if not self._visits.is_recovered:
                before = read_ends(checkpoint, number - 1) if number else {}
                self._visits.recover(batch.sparkSession, before)
            self._write_visits(self._visits, generation, number, output)
        assert self._progress is not None  # noqa: S101 - likewise
        self._progress.keep(number)
        failpoint(Failpoint.SPEED_COUNTED)
        self._record(generation, _progress(ends, _latest(output)))
        failpoint(Failpoint.SPEED_RECORDED)
        if not self._taken_over:
            self._taken_over = self._take_over(generation)

    def _record(self, generation: Generation, progress: Iterable[Reached]) -> None:
        """Record how far partitions were read, of those that have moved since this query recorded them last."""
        moved = [each for each in progress if self._recorded.get(each[:2]) != each.position]
        self._generations.record(generation.number, moved)
        self._recorded |= {each[:2]: each.position for each in moved}

    def _write_visits(self, tracker: VisitTracker, generation: Generation, number: int, output: pa.Table) -> None:
        visits = tracker.closed(output)
        if visits.num_rows:
            added = tracker.additions(visits, self._timings.epoch)
            served = [(key, cells) for key, cells in added if key.epoch >= generation.emit_from]
            shapes = {view.name: view for view in tracker.views}
            session, ttl = self._connect(), self._timings.ttl
            SpeedRows(session, generation.number, generation.layout, ttl, shapes).write(number, served)
            stores = dict.fromkeys(key.store for key, _ in served)
            StoreProgress(session, generation.number, ttl).visited(number, stores)

    def _take_over(self, generation: Generation) -> bool:
        taken = self._generations.take_over(generation)
        if taken:
            failpoint(Failpoint.SPEED_TOOK_OVER)
            log.info("speed.took_over", generation=generation.number)
        return taken


def _latest(output: pa.Table) -> dict[tuple[str, int], datetime]:
    """When the last record of each partition was received."""
    return {
        (topic, partition): UNIX_EPOCH + timedelta(milliseconds=received)
        for topic in pc.unique(output["topic"]).to_pylist()
        for partition, received in last_received(output, topic)
    }


def _progress(ends: Offsets, received: Mapping[tuple[str, int], datetime]) -> Iterator[Reached]:
    for topic, partitions in ends.items():
        for partition, end in partitions.items():
            yield Reached(topic, partition, end, received.get((topic, partition)))
