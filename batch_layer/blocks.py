"""The corrected cells of a view, as blocks of one store and day, computed from the first deliveries.

Spark brings the events of one store and day together, before array elements are exploded, so that only a tenth of the
rows are shuffled. In its workers, Arrow evaluates the view's expressions and adds up. To verify what was written, Spark
evaluates them: see `cell_rows`.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date, datetime
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import orjson
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import ArrayType

from master_dataset.parsing.arrow import released
from views.arrow.contributions import EVENT_ROW, EVENTS_AT_ONCE
from views.arrow.contributions import contributions as arrow_contributions
from views.arrow.expressions import Rows
from views.core.aggregates import ARROW_FUNCTION, LISTED, Reducer
from views.core.cells import WINDOW_KEY
from views.core.sketch import sketch_of
from views.core.view import View, dimension_sql, values_sql, window_sql

_AT_ONCE = 100_000
"""Rows that are added up together, unless one store and day has more. Bounds a worker's memory."""
_BYTES_PER_BATCH, _UNLIMITED = "spark.sql.execution.arrow.maxBytesPerBatch", str(2**31 - 1)
"""Bytes that go to a worker at once. Spark measures a limited batch anew after each row, which is slow."""
_OWN = ["store", "day"]
_BLOCK = "number"
"""The column with the number of the block that a row belongs to."""

StoreDay = tuple[str, date]
"""The key of a block: store, and UTC day of its windows."""
Use = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]
"""Takes batches of `made_schema`, in Spark's workers."""


def made_schema(view: View) -> pa.Schema:
    """One row per store and day that has cells: the block (see `views.core.cells`), cells, the sum of each state."""
    sums = [(f"sum{at}", pa.int64()) for at, _ in enumerate(view.columns)]
    return pa.schema(
        [("store", pa.string()), ("day", pa.date32()), ("block", pa.string()), ("cells", pa.int64()), *sums]
    )


class Extent(NamedTuple):
    """Condition for rows that count: those received before the cut, in windows of these UTC days, or of all days."""

    cut: datetime
    days: Collection[date] = ()


def blocks_used(view: View, events: DataFrame, extent: Extent, use: Use, schema: pa.Schema) -> DataFrame:
    """Apply `use` to the blocks in the worker that made them, so that they do not pass through Spark again."""
    make = Blocks.of(view)
    return cell_rows(view, events, extent).mapInArrow(lambda rows: use(make(rows)), from_arrow_schema(schema))


def cells_used(view: View, events: DataFrame, extent: Extent, use: Use, schema: pa.Schema) -> DataFrame:
    """Apply `use` to the rows of `cell_rows`, evaluated by Arrow in the worker that uses them.

    A worker gets an event once, and not once for each of its elements. Views whose events add to several windows are
    exploded before they are shuffled, so Spark evaluates them. Run it within `batches_for`.
    """
    if view.is_spread:
        return cell_rows(view, events, extent).mapInArrow(lambda rows: released(use(rows)), from_arrow_schema(schema))
    rows = _together(view, events, extent).select("_day", *sorted({"store", *view.columns_read}))
    return rows.mapInArrow(lambda batches: released(use(_contributed(view, batches))), from_arrow_schema(schema))


@contextmanager
def batches_for(view: View, events: DataFrame) -> Iterator[None]:
    """Lift the limit of bytes per batch while a view of narrow rows is computed: Spark reads it when it runs."""
    # Only lists can be as large as an event of a megabyte.
    if not view.is_spread and any(isinstance(events.schema[each].dataType, ArrayType) for each in view.columns_read):
        yield
        return
    conf = events.sparkSession.conf
    before = str(conf.get(_BYTES_PER_BATCH))
    conf.set(_BYTES_PER_BATCH, _UNLIMITED)
    try:
        yield
    finally:
        conf.set(_BYTES_PER_BATCH, before)


def _contributed(view: View, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Rows of `cell_rows` from events that follow each other as these do."""
    for batch in batches:
        for start in range(0, batch.num_rows, EVENTS_AT_ONCE):
            yield from _contributed_by(view, pa.Table.from_batches([batch.slice(start, EVENTS_AT_ONCE)]))


def _contributed_by(view: View, events: pa.Table) -> list[pa.RecordBatch]:
    found = arrow_contributions(view, Rows.of(events))
    rows = events.select(["store", "_day"]).take(found[EVENT_ROW]).rename_columns(_OWN)
    for name in found.column_names:
        if name != EVENT_ROW:
            rows = rows.append_column(name, found[name])
    batches: list[pa.RecordBatch] = rows.to_batches()
    return batches


def cell_rows(view: View, events: DataFrame, extent: Extent) -> DataFrame:
    """What each row adds to its cell, as `contributions` has it, evaluated by Spark.

    All rows of a store and day follow each other in one partition, and so do the days of a month: they are written
    together.
    """
    return contributions(view, _together(view, events, extent))


def _together(view: View, events: DataFrame, extent: Extent) -> DataFrame:
    """`windowed`, in the order of `cell_rows`."""
    rows = windowed(view, events.where(F.col("received_at") < F.lit(extent.cut)))
    if extent.days:
        rows = rows.where(F.col("_day").isin(sorted(extent.days)))
    return rows.repartition("store", F.trunc("_day", "month")).sortWithinPartitions("store", "_day")


def windowed(view: View, events: DataFrame) -> DataFrame:
    """The events with `_window` (seconds since 1970) and `_day`, in UTC, of the instant that counts for the view.

    Of a view whose events add to several windows a row for each of them.
    """
    if view.each is not None and view.is_spread:
        events = events.where(view.where).withColumn(view.each.name, F.explode(F.expr(view.each.of)))
    return events.withColumn("_window", F.expr(window_sql(view.at))).withColumn(
        "_day", F.to_date(F.timestamp_seconds("_window"))
    )


def contributions(view: View, events: DataFrame, more: Sequence[str] = ()) -> DataFrame:
    """What each row of `windowed` adds to its cell: store, day, window, d0.. (dimensions), s0.. (state columns).

    `more`: columns that are kept besides.
    """
    if view.each is not None and not view.is_spread:
        events = events.withColumn(view.each.name, F.explode(F.expr(view.each.of)))
    return events.where(view.where).select(
        "store",
        F.col("_day").alias("day"),
        F.col("_window").alias(WINDOW_KEY),
        *(F.expr(dimension_sql(sql)).alias(f"d{at}") for at, sql in enumerate(view.dimensions.values())),
        *(F.expr(sql).alias(f"s{at}") for at, sql in enumerate(values_sql(view))),
        *more,
    )


@dataclass(frozen=True)
class Blocks:
    """Runs in Spark's workers: rows of a partition in, blocks out."""

    dimensions: tuple[str, ...]
    columns: tuple[str, ...]
    reducers: tuple[Reducer, ...]

    @classmethod
    def of(cls, view: View) -> "Blocks":
        """The blocks of this view."""
        return cls(tuple(view.dimensions), tuple(view.columns), tuple(each.by for each in view.columns.values()))

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Batches of `made_schema` from rows of `cell_rows`; those of a store and day have to follow each other."""
        for blocks, _ in self.with_cells(batches):
            yield from blocks

    def with_cells(self, batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[list[pa.RecordBatch], pa.Table]]:
        """Batches as `__call__` returns them, with the cells that they are of: `store`, `day`, `window`, d0.., s0.."""
        waiting: list[pa.RecordBatch] = []
        for batch in batches:
            waiting.append(batch)
            if sum(each.num_rows for each in waiting) >= _AT_ONCE:
                rows = pa.Table.from_batches(waiting)
                whole = _starts(rows)[-1]
                if whole:
                    yield self._made(rows.slice(0, whole))
                waiting = rows.slice(whole).to_batches()
        if waiting and (rows := pa.Table.from_batches(waiting)).num_rows:
            yield self._made(rows)

    def _made(self, rows: pa.Table) -> tuple[list[pa.RecordBatch], pa.Table]:
        starts = _starts(rows)
        of_block = np.repeat(np.arange(len(starts)), np.diff([*starts, rows.num_rows]))
        dimensions = [f"d{at}" for at in range(len(self.dimensions))]
        keys = [_BLOCK, WINDOW_KEY, *dimensions]  # a number is hashed and compared faster than a store and a day
        states = [(f"s{at}", ARROW_FUNCTION[reducer]) for at, reducer in enumerate(self.reducers)]
        grouped = rows.append_column(_BLOCK, pa.array(of_block)).group_by(keys, use_threads=False)
        cells = grouped.aggregate(states).combine_chunks().sort_by([(key, "ascending") for key in keys])
        cells = cells.select([*keys, *(f"{own}_{by}" for own, by in states)])
        cells = cells.rename_columns([*keys, *(own for own, _ in states)])
        for own, by in states:
            if by == LISTED:
                sketches = pa.array([sketch_of(hashes) for hashes in cells[own].to_pylist()], pa.string())
                cells = cells.set_column(cells.schema.get_field_index(own), own, sketches)
        ends = np.cumsum(np.bincount(cells[_BLOCK])).tolist()
        names = (WINDOW_KEY, *self.dimensions, *self.columns)
        texts = _texts(dict(zip(names, cells.columns[1:], strict=True)), ends)
        whose = rows.select(_OWN).take(pa.array(starts))
        if len(set(zip(*whose.to_pydict().values(), strict=True))) < len(starts):
            raise AssertionError("the rows of a store and day do not follow each other")
        made = self._with_sums(whose.append_column("block", pa.array(texts, pa.string())), cells, ends)
        for at, own in enumerate(_OWN):
            cells = cells.add_column(at, own, whose[own].take(cells[_BLOCK]))
        return made.to_batches(), cells.drop_columns([_BLOCK])

    def _with_sums(self, made: pa.Table, cells: pa.Table, ends: Sequence[int]) -> pa.Table:
        """`ends`: of the cells of each block."""
        made = made.append_column("cells", pa.array(np.diff([0, *ends])))
        added = [f"s{at}" for at, by in enumerate(self.reducers) if ARROW_FUNCTION[by] != LISTED]
        sums = cells.group_by(_BLOCK, use_threads=False).aggregate([(name, "sum") for name in added])
        sums = sums.sort_by(_BLOCK)  # groups have no order
        for at, _ in enumerate(self.reducers):
            is_added = f"s{at}" in added
            made = made.append_column(f"sum{at}", sums[f"s{at}_sum"] if is_added else pa.nulls(len(ends), pa.int64()))
        return made


def _texts(columns: Mapping[str, pa.ChunkedArray], ends: Sequence[int]) -> list[str]:
    """The JSON of each block, of which the rows end there."""
    values = {name: _json_values(column) for name, column in columns.items()}
    return [
        orjson.dumps({name: own[at:end] for name, own in values.items()}, option=orjson.OPT_SERIALIZE_NUMPY).decode()
        for at, end in pairwise([0, *ends])
    ]


def _json_values(column: pa.ChunkedArray) -> Sequence[object] | npt.NDArray[np.int64]:
    """What orjson writes: whole numbers as they are, without an object for each; a list where there are nulls."""
    if pa.types.is_int64(column.type) and not column.null_count:
        return np.ascontiguousarray(column.to_numpy())
    listed: list[object] = column.to_pylist()
    return listed


def _starts(rows: pa.Table) -> list[int]:
    """The rows at which the store or day differs from the row before."""
    changes = [pc.not_equal(rows[name].slice(1), rows[name].slice(0, rows.num_rows - 1)) for name in _OWN]
    return [0, *(pc.indices_nonzero(pc.or_(*changes)).to_numpy() + 1).tolist()]
