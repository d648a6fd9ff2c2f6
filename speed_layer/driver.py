"""Up to where a micro-batch reads: what Spark wrote down before it ran it, and reads again to replay it.

Runs one generation: counts its micro-batches, records the positions reached, then lets it take over.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import orjson
import pyarrow as pa
import pyarrow.compute as pc
import structlog
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.streaming.query import StreamingQuery

from master_dataset.delta.checkpoint import MICRO_BATCH, fsync_plan
from master_dataset.errors import CheckpointOutOfStepError, GenerationReplacedError
from master_dataset.failpoints import Failpoint, failpoint
from speed_layer.additions import shapes_of
from speed_layer.arrow_tables import OUTPUT, last_received
from speed_layer.micro_batch import Horizons, MicroBatch, SpeedRows
from speed_layer.stream import Feed, input_stream
from speed_layer.visits import VisitTracker
from views.control.generation import Generation, Generations, Offsets, Reached
from views.core.cut import UNIX_EPOCH
from views.core.view import View

if TYPE_CHECKING:
    from cassandra.cluster import Session

_VERSION = "v1"
_NO_DATA = "-"
"""What a source that has never had a record writes."""


def read_ends(spark: "SparkSession", checkpoint: str, micro_batch: int) -> "Offsets":
    """The offsets behind the last record of each partition, on whatever file system the checkpoint lies."""
    hadoop = spark._jvm.org.apache.hadoop.fs  # type: ignore[union-attr]  # noqa: SLF001 - Spark's only way
    path = hadoop.Path(f"{checkpoint}/offsets/{micro_batch}")
    stream = path.getFileSystem(spark._jsc.hadoopConfiguration()).open(path)  # noqa: SLF001
    try:
        text: str = spark._jvm.org.apache.commons.io.IOUtils.toString(stream, "UTF-8")  # type: ignore[union-attr]  # noqa: SLF001
    finally:
        stream.close()
    return ends_in(text)


def ends_in(offset_log: str) -> "Offsets":
    """Of the text of an entry of Spark's offset log: its version, its metadata, then a line per source.

    ValueError for another version than the one that Spark 4.2 writes.
    """
    version, _, *sources = offset_log.splitlines()
    if version != _VERSION:
        raise ValueError(f"Spark's offset log says `{version}`, known is `{_VERSION}`")
    told = (orjson.loads(line) for line in sources if line != _NO_DATA)
    return {
        topic: {int(partition): offset for partition, offset in own.items()}
        for line in told
        for topic, own in line.items()
    }


log = structlog.get_logger()


class SpeedDriver:
    """The streaming query of one generation, and what happens after each of its micro-batches."""

    def __init__(self, connect: "Callable[[], Session]", views: Sequence[View], horizons: Horizons) -> None:
        """`connect` is also called in Spark's workers; it must be picklable and give one session per process."""
        self._connect, self._views, self._horizons = connect, views, horizons
        self._ages = (horizons.oldest, horizons.visits)
        self._visiting: VisitTracker | None = None
        self._shapes = shapes_of(views)
        self._generations = Generations(connect())
        self._taken_over = False
        self.refusal: CheckpointOutOfStepError | GenerationReplacedError | None = None
        """Why the query ended, if it did so by name."""

    def start(self, spark: SparkSession, generation: Generation, feed: Feed, checkpoint: str) -> StreamingQuery:
        """Start (or go on with) the query of this generation."""
        of_visits = [view for view in self._views if view.counts_visits]
        self._visiting = VisitTracker(of_visits, self._ages, feed, self._horizons.skew) if of_visits else None
        return (
            input_stream(spark, self._views, feed, self._ages)
            .writeStream.queryName("speed")
            .option("checkpointLocation", checkpoint)
            .foreachBatch(lambda batch, number: self._timed(generation, batch, number, checkpoint))
            .start()
        )

    def _timed(self, generation: Generation, batch: DataFrame, number: int, checkpoint: str) -> None:
        with MICRO_BATCH.labels("speed").time():
            self._write(generation, batch, number, checkpoint)

    def _write(self, generation: Generation, batch: DataFrame, number: int, checkpoint: str) -> None:
        fsync_plan(checkpoint, number)
        ends = read_ends(batch.sparkSession, checkpoint, number)
        try:
            self._generations.claims.claim(generation.number, number, ends)
        except (CheckpointOutOfStepError, GenerationReplacedError) as refusal:
            self.refusal = refusal
            raise
        failpoint(Failpoint.SPEED_CLAIMED)
        heard_for = self._visiting.views[0].name if self._visiting else None
        counted = MicroBatch(self._connect, self._shapes, self._horizons, generation, number, heard_for)
        given_back = batch.mapInArrow(counted, from_arrow_schema(OUTPUT)).toArrow()
        if self._visiting:
            if not self._visiting.is_begun:
                before = read_ends(batch.sparkSession, checkpoint, number - 1) if number else {}
                self._visiting.begin(batch.sparkSession, before)
            self._write_visits(self._visiting, generation, number, given_back, batch.sparkSession)
        failpoint(Failpoint.SPEED_COUNTED)
        self._generations.record(generation.number, _reached(ends, _latest(given_back)))
        failpoint(Failpoint.SPEED_RECORDED)
        if not self._taken_over:
            self._taken_over = self._take_over(generation)

    def _write_visits(
        self, visiting: VisitTracker, generation: Generation, number: int, given_back: pa.Table, spark: SparkSession
    ) -> None:
        visits = visiting.closed(given_back)
        if visits.num_rows:
            added = visiting.additions(spark, visits, self._horizons.epoch)
            shown = ((key, cells) for key, cells in added if key.epoch >= generation.emit_from)
            shapes = {view.name: view for view in visiting.views}
            SpeedRows(self._connect(), generation.number, self._horizons.ttl, shapes).write(number, shown)

    def _take_over(self, generation: Generation) -> bool:
        taken = self._generations.take_over(generation)
        if taken:
            failpoint(Failpoint.SPEED_TOOK_OVER)
            log.info("speed.took_over", generation=generation.number)
        return taken


def _latest(given_back: pa.Table) -> dict[tuple[str, int], datetime]:
    """When the last record of each partition was received."""
    return {
        (topic, partition): UNIX_EPOCH + timedelta(milliseconds=received)
        for topic in pc.unique(given_back["topic"]).to_pylist()
        for partition, received in last_received(given_back, topic)
    }


def _reached(ends: Offsets, received: Mapping[tuple[str, int], datetime]) -> Iterator[Reached]:
    for topic, own in ends.items():
        for partition, end in own.items():
            yield Reached(topic, partition, end, received.get((topic, partition)))
