"""Runs one generation: writes its totals, then the positions reached, then lets it take over."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import structlog
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.streaming.query import StreamingQuery

from speed_layer.generation import Generation, Generations
from speed_layer.query import Feed, Horizons, totals
from speed_layer.rows import POSITION_SCHEMA, RowWriter, layouts
from views.core.view import View

if TYPE_CHECKING:
    from cassandra.cluster import Session

log = structlog.get_logger()


class SpeedDriver:
    """The streaming query of one generation, and what happens after each of its micro-batches."""

    def __init__(self, connect: "Callable[[], Session]", views: Sequence[View], ttl: timedelta) -> None:
        """`connect` is also called in Spark's workers; it must be picklable and give one session per process."""
        self._connect, self._views, self._ttl = connect, views, ttl
        self._generations = Generations(connect())
        self._taken_over = False

    def start(
        self, spark: SparkSession, generation: Generation, feed: Feed, horizons: Horizons, checkpoint: str
    ) -> StreamingQuery:
        """Start (or go on with) the query of this generation."""
        return (
            totals(spark, self._views, feed, horizons)
            .writeStream.queryName("speed")
            .outputMode("update")
            .option("checkpointLocation", checkpoint)
            .foreachBatch(lambda batch, number: self._write(generation, batch, number))
            .start()
        )

    def _write(self, generation: Generation, batch: DataFrame, number: int) -> None:
        ttl = int(self._ttl.total_seconds())
        writer = RowWriter(self._connect, layouts(self._views), generation.number, generation.emit_from, ttl, number)
        positions = batch.mapInArrow(writer, from_arrow_schema(POSITION_SCHEMA)).collect()
        latest = {(row.topic, row.partition): row for row in sorted(positions, key=lambda row: int(row.offset))}
        for (topic, partition), row in latest.items():
            received_at = datetime.fromtimestamp(row.received_micros / 1e6, UTC)
            self._generations.record(generation.number, topic, partition, row.offset + 1, received_at)
        if not self._taken_over:
            self._taken_over = self._take_over(generation)

    def _take_over(self, generation: Generation) -> bool:
        """Other definitions than the published ones wait for the next rebuild, which publishes both together (R12)."""
        pointer = self._generations.pointer()
        same = dict(pointer.definitions) == dict(generation.definitions)
        if pointer.publication and not same:
            return False
        taken = self._generations.take_over(generation)
        if taken:
            log.info("speed.took_over", generation=generation.number)
        return taken


def rows_dropped_late(query: StreamingQuery) -> int:
    """How many rows Spark dropped behind the watermark in the micro-batches it still remembers. Must be 0 (R8)."""
    return sum(
        operator.numRowsDroppedByWatermark for progress in query.recentProgress for operator in progress.stateOperators
    )
