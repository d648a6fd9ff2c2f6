"""Keeps every record for ever: events in the source's append-only table, all others as dead letters.

One streaming query per source. A micro-batch is written in this order: dead letters, events, positions. Each write
carries (application id, batch id), so a batch that is repeated after a crash is skipped by Delta and nothing is kept
twice; the position is written last, so whoever has seen it may rely on the tables (R2).
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import structlog
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.streaming.query import StreamingQuery

from master_dataset.kafka import EARLIEST, Topics, offsets_json, record_stream
from master_dataset.parsing.rows import output_schema, rows
from master_dataset.tables import MasterTables

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from datetime import datetime

    import pyarrow as pa

    from master_dataset.registry import CurrencyOf
    from master_dataset.source import Source

log = structlog.get_logger()


class Positions(Protocol):
    """Where the archive says how far it has come."""

    def record(self, topic: str, partition: int, position: int, received_at: "datetime") -> None:
        """Everything before the offset `position` is kept. Never goes back."""

    def read(self) -> "Mapping[str, Mapping[int, int]]":
        """Topic to partition to position."""


@dataclass(frozen=True)
class Pace:
    """How often a micro-batch starts, and how many records it takes at most."""

    seconds: float
    records: int


class Archive:
    """Writes the master dataset of one deployment. There is one appender per table: this one."""

    def __init__(
        self, spark: SparkSession, tables: MasterTables, positions: Positions, currencies: "Callable[[], CurrencyOf]"
    ) -> None:
        """`currencies` is called in Spark's workers, once per task; it must be picklable."""
        self._spark, self._tables, self._positions, self._currencies = spark, tables, positions, currencies

    def start(self, source: "Source[Any]", bootstrap: str, checkpoint: str, pace: Pace) -> StreamingQuery:
        """Start (or go on) archiving a source. `checkpoint` is a folder; without one, go on behind what is kept."""
        self._tables.create(self._spark, source)
        starting = self._starting_offsets(source, bootstrap)
        records = record_stream(self._spark, source.topic, bootstrap, starting, pace.records)
        parsed = records.mapInArrow(_parser(source, self._currencies), from_arrow_schema(output_schema(source)))
        return (
            parsed.writeStream.queryName(f"archive_{source.topic}")
            .option("checkpointLocation", checkpoint)
            .trigger(processingTime=f"{pace.seconds} seconds")
            .foreachBatch(lambda batch, number: self._keep(source, batch, number))
            .start()
        )

    def _starting_offsets(self, source: "Source[Any]", bootstrap: str) -> str:
        """Where to go on without a checkpoint: at the recorded positions, written only when all before them was kept.

        What lies between the position and the tables is kept twice; batch drops equal places with the duplicates.
        """
        positions = self._positions.read().get(source.topic, {})
        partitions = Topics(bootstrap).partitions(source.topic)
        return offsets_json({source.topic: {number: positions.get(number, EARLIEST) for number in partitions}})

    def _keep(self, source: "Source[Any]", batch: DataFrame, number: int) -> None:
        application = self._spark.sparkContext.getLocalProperty("sql.streaming.queryId") or ""
        batch.persist()
        try:
            reached = (
                batch.groupBy("partition")
                .agg(
                    F.max("offset").alias("offset"),
                    F.max("received_at").alias("received_at"),
                    F.count_if(F.col("kind") == "event").alias("events"),
                    F.count_if(F.col("kind") == "dead_letter").alias("dead_letters"),
                )
                .collect()
            )
            if any(row.dead_letters for row in reached):
                self._tables.append_dead_letters(batch.where("kind = 'dead_letter'"), application, number)
            events = sum(row.events for row in reached)
            if events:
                self._tables.append_events(source, batch.where("kind = 'event'"), application, number)
            for row in reached:
                self._positions.record(source.topic, row.partition, row.offset + 1, row.received_at)
            log.info("archive.kept", source=source.topic, batch=number, events=events)
        finally:
            batch.unpersist()


def _parser(
    source: "Source[Any]", currencies: "Callable[[], CurrencyOf]"
) -> "Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]":
    def parsed(batches: "Iterator[pa.RecordBatch]") -> "Iterator[pa.RecordBatch]":
        return rows(source, batches, currencies())

    return parsed
