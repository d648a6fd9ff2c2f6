"""Runs one generation: counts its micro-batches, records the positions reached, then lets it take over."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from operator import attrgetter
from typing import TYPE_CHECKING

import structlog
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.streaming.query import StreamingQuery

from master_dataset.crash_points import CrashPoint, passing
from master_dataset.durations import MICRO_BATCH
from master_dataset.errors import CheckpointOutOfStep, GenerationReplaced
from speed_layer.additions import shapes_of
from speed_layer.ends import read_ends
from speed_layer.generation import Generation, Generations, Offsets, Reached
from speed_layer.micro_batch import POSITIONS, Horizons, MicroBatch
from speed_layer.query import Feed, arrivals
from views.core.cut import BEGINNING
from views.core.view import View

if TYPE_CHECKING:
    from cassandra.cluster import Session

log = structlog.get_logger()


class SpeedDriver:
    """The streaming query of one generation, and what happens after each of its micro-batches."""

    def __init__(self, connect: "Callable[[], Session]", views: Sequence[View], horizons: Horizons) -> None:
        """`connect` is also called in Spark's workers; it must be picklable and give one session per process."""
        self._connect, self._views, self._horizons = connect, views, horizons
        self._shapes = shapes_of(views)
        self._generations = Generations(connect())
        self._taken_over = False
        self.refusal: CheckpointOutOfStep | GenerationReplaced | None = None
        """Why the query ended, if it did so by name."""

    def start(self, spark: SparkSession, generation: Generation, feed: Feed, checkpoint: str) -> StreamingQuery:
        """Start (or go on with) the query of this generation."""
        return (
            arrivals(spark, self._views, feed, self._horizons.oldest)
            .writeStream.queryName("speed")
            .option("checkpointLocation", checkpoint)
            .foreachBatch(lambda batch, number: self._timed(generation, batch, number, checkpoint))
            .start()
        )

    def _timed(self, generation: Generation, batch: DataFrame, number: int, checkpoint: str) -> None:
        with MICRO_BATCH.labels("speed").time():
            self._write(generation, batch, number, checkpoint)

    def _write(self, generation: Generation, batch: DataFrame, number: int, checkpoint: str) -> None:
        ends = read_ends(batch.sparkSession, checkpoint, number)
        try:
            self._generations.claims.claim(generation.number, number, ends)
        except (CheckpointOutOfStep, GenerationReplaced) as refusal:
            self.refusal = refusal
            raise
        passing(CrashPoint.SPEED_CLAIMED)
        counted = MicroBatch(self._connect, self._shapes, self._horizons, generation, number)
        received = _latest(batch.mapInArrow(counted, from_arrow_schema(POSITIONS)).collect())
        passing(CrashPoint.SPEED_COUNTED)
        self._generations.record(generation.number, _reached(ends, received))
        passing(CrashPoint.SPEED_RECORDED)
        if not self._taken_over:
            self._taken_over = self._take_over(generation)

    def _take_over(self, generation: Generation) -> bool:
        taken = self._generations.take_over(generation)
        if taken:
            passing(CrashPoint.SPEED_TOOK_OVER)
            log.info("speed.took_over", generation=generation.number)
        return taken


def _latest(positions: Sequence[Row]) -> dict[tuple[str, int], datetime]:
    """Of rows of `POSITIONS`, when the last record of each partition was received."""
    furthest = {(row.topic, row.partition): row for row in sorted(positions, key=attrgetter("offset"))}
    return {place: BEGINNING + timedelta(microseconds=row.received_micros) for place, row in furthest.items()}


def _reached(ends: Offsets, received: Mapping[tuple[str, int], datetime]) -> Iterator[Reached]:
    for topic, own in ends.items():
        for partition, end in own.items():
            yield Reached(topic, partition, end, received.get((topic, partition)))
