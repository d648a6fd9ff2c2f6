"""Writes the totals of a micro-batch to Cassandra, overwriting by key.

A row is written USING TIMESTAMP epoch start in microseconds + batch id: no clock, rising within a row, and sorted by
receipt, as time-window compaction needs it.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from cassandra.concurrent import execute_concurrent
from cassandra.query import BatchStatement, BatchType

from speed_layer.contributions import POSITION
from views.core.cells import WAITING, write_values
from views.core.cut import instant
from views.core.view import View

if TYPE_CHECKING:
    from cassandra.cluster import Session

POSITION_SCHEMA = pa.schema(
    [("topic", pa.string()), ("partition", pa.int32()), ("offset", pa.int64()), ("received_micros", pa.int64())]
)
_ROWS_PER_BATCH = 100
_IN_FLIGHT = 32
_INSERT = (
    "INSERT INTO speed_cells (view_name, store, received_day, generation, epoch, window, dimensions, states) "
    "VALUES (?, ?, ?, ?, ?, ?, ?, ?) USING TIMESTAMP ? AND TTL ?"
)
_PARTITION = itemgetter("view", "store", "received_day")

Row = dict[str, Any]


@dataclass(frozen=True)
class RowWriter:
    """Runs in Spark's workers. `layouts`: view name to the reducers of its columns, in the view's order.

    Rows of epochs before `emit_from` are inside the cut that this generation began at, and are not written.
    """

    connect: "Callable[[], Session]"
    layouts: Mapping[str, Sequence[str]]
    generation: int
    emit_from: datetime
    ttl_seconds: int
    batch_id: int

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Write the cells of one partition of the micro-batch; give back the positions, to be written when all are."""
        for batch in batches:
            rows = batch.to_pylist()
            cells = [self._cell(row) for row in rows if row["view"] != POSITION and row["epoch"] >= self.emit_from]
            self._write(cells)
            yield _positions(row for row in rows if row["view"] == POSITION)

    def _cell(self, row: Row) -> Row:
        taken = dict.fromkeys(("sum", "min", "max"), 0)
        states = []
        for reducer in self.layouts[row["view"]]:
            states.append(row[f"{reducer}_{taken[reducer]}"])
            taken[reducer] += 1
        return {**row, "received_day": row["epoch"].astimezone(UTC).date(), "states": write_values(states)}

    def _write(self, cells: Sequence[Row]) -> None:
        session = self.connect()
        insert = session.prepare(_INSERT)
        statements = []
        for _, own in groupby(sorted(cells, key=_PARTITION), key=_PARTITION):
            of_partition = list(own)
            for start in range(0, len(of_partition), _ROWS_PER_BATCH):
                statement = BatchStatement(BatchType.UNLOGGED)
                for cell in of_partition[start : start + _ROWS_PER_BATCH]:
                    statement.add(insert, self._values(cell))
                statements.append((statement, None))
        execute_concurrent(session, statements, concurrency=_IN_FLIGHT, raise_on_first_error=True)

    def _values(self, cell: Row) -> tuple[Any, ...]:
        written_at = int(cell["epoch"].timestamp()) * 1_000_000 + self.batch_id
        key = (cell["view"], cell["store"], cell["received_day"], self.generation)
        dimensions = write_values(cell["dimensions"])
        return (*key, cell["epoch"], instant(cell["window"]), dimensions, cell["states"], written_at, self.ttl_seconds)


def layouts(views: Sequence[View]) -> Mapping[str, Sequence[str]]:
    """The reducers of each view's columns, and of the waiting rows."""
    return {view.name: tuple(column.by for column in view.columns.values()) for view in views} | {WAITING: ("sum",)}


def _positions(rows: Iterator[Row]) -> pa.RecordBatch:
    found = [
        {
            "topic": row["store"],
            "partition": int(row["dimensions"][0]),
            "offset": row["max_0"],
            "received_micros": row["max_1"],
        }
        for row in rows
    ]
    return pa.RecordBatch.from_pylist(found, schema=POSITION_SCHEMA)
