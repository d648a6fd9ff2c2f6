"""The Delta tables of the master dataset: one per source, one for dead letters, one for conflicting duplicates.

They are append-only. A source's table is partitioned by the UTC day of `happened_at`, so a duplicate is always in the
partition of its first delivery. Its columns: position (topic, partition, offset), `received_at`, identity, the typed
payload, and the raw bytes of the record.
"""

from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from delta.tables import DeltaTable
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention
from pyspark.sql.pandas.types import from_arrow_schema

from master_dataset.delta.columns import add_missing_columns
from master_dataset.delta.commit_intents import commit_intent
from master_dataset.delta.fsync import fsync_commit, fsync_first_commit
from master_dataset.delta.history import LOG_PROPERTIES, MARK
from master_dataset.delta.incomplete_commits import drop_incomplete_creation, roll_back_incomplete
from master_dataset.parsing.rows import output_schema

if TYPE_CHECKING:
    from master_dataset.source import Source

DEAD_LETTERS = "dead_letters"
CONFLICTS = "conflicts"
POSITION = ("topic", "partition", "offset")
DEAD_LETTER_COLUMNS = (
    *POSITION,
    "received_at",
    "reason",
    "field",
    "sentence",
    "key",
    "value",
    "headers",
)
_NEWEST_COMMITS = 100
NOT_OF_EVENTS = ("kind", "reason", "field", "sentence", "headers")


@dataclass(frozen=True)
class MasterTables:
    """The tables below `root`: a folder, or any URI that Delta on Spark can write."""

    root: str

    def path(self, name: str) -> str:
        """The path of one table."""
        return f"{self.root}/{name}"

    def create(self, spark: SparkSession, source: "Source[Any]") -> None:
        """Create the tables that this source needs if they do not exist yet, and columns that an older table lacks."""
        _create(spark, self.path(source.topic), event_schema(source), "day")
        _create(spark, self.path(DEAD_LETTERS), dead_letter_schema(source), "topic")
        _create(spark, self.path(CONFLICTS), dead_letter_schema(source), "topic")

    def append_events(self, source: "Source[Any]", events: DataFrame, mark: str) -> None:
        """Append the events of one micro-batch, in one commit that carries this mark."""
        columns = event_schema(source).names
        writer = events.select(*columns).repartition("day").write.format("delta").mode("append")
        writer.option(MARK, mark).save(self.path(source.topic))

    def append_dead_letters(self, dead_letters: DataFrame, mark: str) -> None:
        """Append the dead letters of one micro-batch, in one commit that carries this mark."""
        writer = dead_letters.select(*DEAD_LETTER_COLUMNS).coalesce(1).write.format("delta").mode("append")
        writer.option(MARK, mark).save(self.path(DEAD_LETTERS))

    def append_conflicts(self, dead_letters: DataFrame) -> None:
        """Append the conflicts that a rebuild found, in one commit that is on the disk when this returns."""
        with commit_intent(self.path(CONFLICTS)) as mark:
            writer = dead_letters.select(*DEAD_LETTER_COLUMNS).coalesce(1).write.format("delta").mode("append")
            writer.option(MARK, mark).save(self.path(CONFLICTS))

    def roll_back_incomplete(self, name: str, unfinished: Collection[str] = ()) -> None:
        """Roll back what a power cut left incomplete, before Spark reads the table; see `incomplete_commits`."""
        roll_back_incomplete(self.path(name), unfinished)

    def fsync(self, name: str, mark: str) -> None:
        """Flush the newest commit with this mark, if there is one."""
        fsync_commit(self.path(name), mark)

    def holds(self, spark: SparkSession, name: str, mark: str) -> bool:
        """Whether one of the newest commits carries this mark.

        Delta's own `txnVersion` shows this too, but computing it loads the whole state of the table at every append.
        """
        newest = DeltaTable.forPath(spark, self.path(name)).history(_NEWEST_COMMITS)
        return not newest.where(F.col(MARK) == mark).isEmpty()

    def without_written(self, spark: SparkSession, records: DataFrame, name: str, topic: str) -> DataFrame:
        """Those records of a micro-batch of this topic whose positions are not in the table."""
        bounds = [F.unix_micros(bound("received_at")) for bound in (F.min, F.max)]
        earliest, latest = (F.timestamp_micros(F.lit(each)) for each in records.agg(*bounds).collect()[0])
        written = spark.read.format("delta").load(self.path(name))
        near = written.where((F.col("topic") == topic) & F.col("received_at").between(earliest, latest))
        return records.join(near.select(*POSITION), list(POSITION), "left_anti")


def event_schema(source: "Source[Any]") -> pa.Schema:
    """The columns of the source's table."""
    return pa.schema([field for field in output_schema(source) if field.name not in NOT_OF_EVENTS])


def dead_letter_schema(source: "Source[Any]") -> pa.Schema:
    """The columns of a dead letter: position, reason, sentence and bytes."""
    return pa.schema([output_schema(source).field(name) for name in DEAD_LETTER_COLUMNS])


def _create(spark: SparkSession, path: str, schema: pa.Schema, partitioned_by: str) -> None:
    drop_incomplete_creation(path)
    add_missing_columns(path, schema)
    table = (
        DeltaTable.createIfNotExists(spark)
        .location(path)
        .addColumns(from_arrow_schema(schema))
        .partitionedBy(partitioned_by)
        .property("delta.appendOnly", "true")
        .property("delta.dataSkippingStatsColumns", "received_at")  # what a rebuild filters by; each column has a cost
    )
    for name, value in LOG_PROPERTIES.items():
        table = table.property(name, value)
    table.execute()
    fsync_first_commit(path)
