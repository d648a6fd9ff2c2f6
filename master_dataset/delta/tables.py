"""The Delta tables of the master dataset: one per source, one for dead letters, one for conflicting duplicates.

They are append-only. A source's table is partitioned by the UTC day of `happened_at`, so a duplicate is always in the
partition of its first delivery. Its columns: position (topic, partition, offset), `received_at`, identity, the typed
payload, and the raw bytes of the record.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention
from pyspark.sql.pandas.types import from_arrow_schema

from master_dataset.delta.append import APPENDS, Writer, append, commit_files, is_marked
from master_dataset.delta.checkpoint import mark_of
from master_dataset.delta.commit_intents import commit_intent
from master_dataset.delta.creation import create_table
from master_dataset.delta.data_files import DATA_FILES, FileWriter, TableLayout
from master_dataset.delta.dataset import arrow_dataset, report_lost_files, scan
from master_dataset.delta.fsync import fsync_commits
from master_dataset.delta.history import NEWEST_COMMITS
from master_dataset.delta.incomplete_commits import (
    drop_incomplete_creation,
    roll_back_incomplete,
    roll_back_marked,
)
from master_dataset.parsing.rows import output_schema
from master_dataset.storage import open_table

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
NOT_OF_EVENTS = ("kind", "reason", "field", "sentence", "headers")


class BatchId(NamedTuple):
    """Which micro-batch: the id of its query, which changes when a checkpoint is made anew, and its number."""

    query: str
    number: int

    @property
    def mark(self) -> str:
        """What its commits carry."""
        return mark_of(self.query, self.number)


@dataclass(frozen=True)
class MasterTables:
    """The tables below `root`: a folder, or `s3://BUCKET/PREFIX`."""

    root: str

    def path(self, name: str) -> str:
        """The path of one table."""
        return f"{self.root}/{name}"

    def create(self, source: "Source[Any]") -> None:
        """Create the tables that this source needs if they do not exist yet, and columns that an older table lacks."""
        for name, layout in self._layouts(source).items():
            path = self.path(name)
            drop_incomplete_creation(path)
            create_table(path, layout)

    def writer(self, source: "Source[Any]", name: str) -> FileWriter:
        """What writes data files of a table: the source's own, or that of dead letters."""
        return FileWriter.of(self.path(name), self._layouts(source)[name])

    def commit(
        self, source: "Source[Any]", name: str, files: pa.Table, batch: BatchId, *, repeats: bool = False
    ) -> None:
        """Add the files (`DATA_FILES`) of one micro-batch to a table, in one commit that carries its mark.

        `repeats`: the table holds a part of it.
        """
        self._commit(name, self._layouts(source)[name], files, Writer(*batch, repeats=repeats), batch.mark)

    def append_conflicts(self, source: "Source[Any]", dead_letters: DataFrame) -> None:
        """Append the conflicts that a rebuild found, in one commit that is on the disk when this returns."""
        rows, layout = dead_letters.select(*DEAD_LETTER_COLUMNS).coalesce(1), dead_letter_layout(source)
        with commit_intent(
            self.path(CONFLICTS)
        ) as mark:  # Spark's tasks write the data files, this process commits them
            files = rows.mapInArrow(self.writer(source, CONFLICTS), from_arrow_schema(DATA_FILES)).toArrow()
            self._commit(CONFLICTS, layout, files, APPENDS, mark)

    def append_conflict_rows(self, source: "Source[Any]", dead_letters: pa.Table) -> None:
        """The same of rows that are here, with `dead_letter_schema`."""
        append(self.path(CONFLICTS), dead_letters, dead_letter_layout(source))

    def _commit(self, name: str, layout: TableLayout, written: pa.Table, writer: Writer, mark: str) -> None:
        path = self.path(name)
        if written.num_rows:
            commit_files(path, layout, written.cast(DATA_FILES), writer, mark)

    @staticmethod
    def _layouts(source: "Source[Any]") -> Mapping[str, TableLayout]:
        of_dead_letters = dead_letter_layout(source)
        return {source.topic: event_layout(source), DEAD_LETTERS: of_dead_letters, CONFLICTS: of_dead_letters}

    def roll_back_incomplete(self, name: str, unfinished: Collection[str] = ()) -> None:
        """Roll back what a power cut left incomplete, before the table is read; see `incomplete_commits`."""
        roll_back_incomplete(self.path(name), unfinished)

    def roll_back_micro_batches(self, name: str, unfinished: Collection[str]) -> None:
        """Roll back these micro-batches where a power cut left them incomplete; other processes may write meanwhile."""
        roll_back_marked(self.path(name), unfinished)

    def fsync(self, name: str, batch: BatchId) -> None:
        """Flush the commits of this micro-batch, and later ones of its query, which another process may have made."""
        fsync_commits(self.path(name), batch.query, batch.number)

    def holds(self, name: str, batch: BatchId) -> bool:
        """Whether the table has a commit of this micro-batch.

        The table keeps the newest number of each query. Releases that committed by Spark left only a mark in the
        commit, and one may have run since.
        """
        path = self.path(name)
        number = open_table(path).transaction_version(batch.query)
        return (number is not None and number >= batch.number) or is_marked(path, batch.mark, NEWEST_COMMITS)

    def written(self, records: DataFrame, name: str, topic: str) -> set[tuple[int, int]]:
        """Partition and offset of each record in the table that was received while these of its topic were."""
        bounds = [F.unix_micros(bound("timestamp")) for bound in (F.min, F.max)]
        earliest, latest = (pa.scalar(each, pa.timestamp("us", "UTC")) for each in records.agg(*bounds).collect()[0])
        received = pc.field("received_at")
        found = self.position_table(name, topic, (received >= earliest) & (received <= latest))
        return set(zip(found["partition"].to_pylist(), found["offset"].to_pylist(), strict=True))

    def positions(self, spark: SparkSession, name: str, topic: str) -> DataFrame:
        """`position_table` for Spark."""
        return spark.createDataFrame(self.position_table(name, topic))

    def position_table(self, name: str, topic: str, where: Any = None) -> pa.Table:  # noqa: ANN401 - pyarrow ships no types
        """The positions in the table of records of this topic, those that a filter selects."""
        table, selected = open_table(self.path(name)), pc.field("topic") == topic
        with report_lost_files(table):
            of_topic = selected if where is None else selected & where
            return scan(arrow_dataset(table), POSITION, of_topic).to_table()


def event_schema(source: "Source[Any]") -> pa.Schema:
    """The columns of the source's table."""
    return pa.schema([field for field in output_schema(source) if field.name not in NOT_OF_EVENTS])


def dead_letter_schema(source: "Source[Any]") -> pa.Schema:
    """The columns of a dead letter: position, reason, sentence and bytes."""
    return pa.schema([output_schema(source).field(name) for name in DEAD_LETTER_COLUMNS])


def event_layout(source: "Source[Any]") -> TableLayout:
    """The layout of the source's table."""
    return TableLayout(event_schema(source), "day")


def dead_letter_layout(source: "Source[Any]") -> TableLayout:
    """The layout of tables of dead letters."""
    return TableLayout(dead_letter_schema(source), "topic")
