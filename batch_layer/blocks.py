"""The corrected cells of a view, as blocks of one store and day, computed from the first deliveries.

Spark evaluates the view's row expressions and brings the rows of one store and day together, before array elements are
exploded, so that only a tenth of the rows are shuffled. Arrow adds them up, about ten times faster than Spark's own
aggregation if almost every line is a separate cell (measured: docs/explanation/benchmarks.md).
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from itertools import pairwise
from typing import NamedTuple

import orjson
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention
from pyspark.sql.pandas.types import from_arrow_schema

from views.core.aggregates import ARROW_FUNCTION, LISTED, Reducer
from views.core.cells import WINDOW_KEY
from views.core.sketch import sketch_of
from views.core.view import View, dimension_sql, values_sql, window_sql

_AT_ONCE = 100_000
"""Rows that are added up together, unless one store and day has more. Bounds a worker's memory."""
_OWN = ["store", "day"]

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
    """Which rows count: those received before the cut, in windows of these UTC days, or of all days."""

    cut: datetime
    days: Collection[date] = ()


def blocks_used(view: View, events: DataFrame, extent: Extent, use: Use, schema: pa.Schema) -> DataFrame:
    """Apply `use` to the blocks in the worker that made them, so that they do not pass through Spark again."""
    make = Blocks.of(view)
    return cell_rows(view, events, extent).mapInArrow(lambda rows: use(make(rows)), from_arrow_schema(schema))


def cell_rows(view: View, events: DataFrame, extent: Extent) -> DataFrame:
    """What each row adds to its cell, as `contributions` has it.

    All rows of a store and day follow each other in one partition, and so do the days of a month: they are written
    together.
    """
    rows = windowed(view, events.where(F.col("received_at") < F.lit(extent.cut)))
    if extent.days:
        rows = rows.where(F.col("_day").isin(sorted(extent.days)))
    together = rows.repartition("store", F.trunc("_day", "month")).sortWithinPartitions("store", "_day")
    return contributions(view, together)


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
        """Those of this view."""
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
        keys = [*_OWN, WINDOW_KEY, *(f"d{at}" for at in range(len(self.dimensions)))]
        states = [(f"s{at}", ARROW_FUNCTION[reducer]) for at, reducer in enumerate(self.reducers)]
        cells = rows.group_by(keys, use_threads=False).aggregate(states).combine_chunks()
        cells = cells.sort_by([(key, "ascending") for key in keys])
        for name in (f"{own}_{by}" for own, by in states if by == LISTED):
            sketches = pa.array([sketch_of(hashes) for hashes in cells[name].to_pylist()], pa.string())
            cells = cells.set_column(cells.schema.get_field_index(name), name, sketches)
        written = {name: cells[key] for name, key in zip((WINDOW_KEY, *self.dimensions), keys[2:], strict=True)}
        written |= {name: cells[f"{own}_{by}"] for name, (own, by) in zip(self.columns, states, strict=True)}
        starts = _starts(cells)
        texts = [
            orjson.dumps({name: column.slice(at, end - at).to_pylist() for name, column in written.items()}).decode()
            for at, end in pairwise([*starts, cells.num_rows])
        ]
        made = cells.select(_OWN).take(pa.array(starts)).append_column("block", pa.array(texts, pa.string()))
        blocks = self._with_sums(made, cells).to_batches()
        return blocks, cells.select([*keys, *(f"{own}_{by}" for own, by in states)]).rename_columns(
            [*keys, *(own for own, _ in states)]
        )

    def _with_sums(self, made: pa.Table, cells: pa.Table) -> pa.Table:
        names = [f"s{at}_{ARROW_FUNCTION[by]}" for at, by in enumerate(self.reducers)]
        added = [name for name, by in zip(names, self.reducers, strict=True) if ARROW_FUNCTION[by] != LISTED]
        sums = cells.group_by(_OWN, use_threads=False).aggregate(
            [("store", "count"), *((name, "sum") for name in added)]
        )
        sums = sums.sort_by([(key, "ascending") for key in _OWN])  # groups have no order
        if sums.select(_OWN) != made.select(_OWN):
            raise AssertionError("the sums are of other stores or days than the blocks")
        made = made.append_column("cells", sums["store_count"])
        for at, name in enumerate(names):
            sum_ = sums[f"{name}_sum"] if name in added else pa.nulls(made.num_rows, pa.int64())
            made = made.append_column(f"sum{at}", sum_)
        return made


def _starts(rows: pa.Table) -> list[int]:
    """The rows at which the store or day differs from the row before."""
    changes = [pc.not_equal(rows[name].slice(1), rows[name].slice(0, rows.num_rows - 1)) for name in _OWN]
    return [0, *(pc.indices_nonzero(pc.or_(*changes)).to_numpy() + 1).tolist()]
