"""Day cells of published runs: what the cells of a store and UTC day add up to, of many stores at once.

A run never changes what it wrote, so they are cached within bounds, like blocks. A store is left to its blocks where a
run wrote no day cells for it: before there were any, or because a sum was too large.
"""

import asyncio
from collections.abc import AsyncIterator, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from cachetools import LRUCache

from master_dataset.arrow_blocks import unpack
from serving_layer.caching import SharedCache, keep
from serving_layer.errors import CellMissingError
from serving_layer.off_loop import off_loop
from serving_layer.store.readers import BatchReader
from views.core import View
from views.core.day_cells import DAY_WINDOWS, END, RECEIPTS, START, STORE, DayParts, dimension_column, state_column

if TYPE_CHECKING:
    from serving_layer.store.cells import BatchCells

Integers = npt.NDArray[np.int64]
BYTES_KEPT = 128 * 1024 * 1024
"""How many bytes of decoded day cells are cached: three years of 200 stores of `sales`, or a month of 50,000 SKUs."""
BYTES_JOINED = 128 * 1024 * 1024
"""How many bytes of days that were asked for together are kept joined, for the next question about the same days."""
BYTES_AHEAD = 64 * 1024 * 1024
"""How many bytes of decoded day cells are read before anybody asks for them."""
READS_AT_ONCE = 16
BYTES_PER_CELL = 100
"""Packed bytes that take about as long to unpack as one cell takes to merge."""
ROWS_AT_ONCE = 2_000_000
"""How many rows are merged at once, which takes about 400 MB."""


class Texts:
    """A column of texts: per row a number, and the text of each number. None is the last number."""

    def __init__(self, chunks: Sequence[pa.ChunkedArray]) -> None:
        """`chunks`: dictionary-encoded columns, which follow each other."""
        arrays = [each for column in chunks for each in column.chunks]
        joined = pa.chunked_array(arrays, arrays[0].type).unify_dictionaries() if arrays else None
        self.values: list[str | None] = joined.chunk(0).dictionary.to_pylist() if joined else []
        null = len(self.values)
        numbers = [each.indices.fill_null(null).to_numpy() for each in joined.chunks] if joined else []
        self.numbers: Integers = np.concatenate(numbers).astype(np.int64) if numbers else np.zeros(0, np.int64)
        self.values.append(None)


@dataclass(frozen=True)
class ViewDays:
    """The day cells of a view on some UTC days.

    Attributes:
        view: the view.
        tables: one or more per day, with the columns of `views.core.day_cells`.
    """

    view: View
    tables: Sequence[pa.Table]
    _dimensions: dict[str, Texts] = field(default_factory=dict)

    @property
    def rows(self) -> int:
        """How many there are."""
        return sum(table.num_rows for table in self.tables)

    @cached_property
    def stores(self) -> Texts:
        """The id of the store per row."""
        return Texts([each[STORE] for each in self.tables])

    @cached_property
    def starts(self) -> Integers:
        """The first window per row."""
        return self._integers(START)

    @cached_property
    def ends(self) -> Integers:
        """Where the last window ends per row."""
        return self._integers(END)

    def dimension(self, name: str) -> Texts:
        """The value of a dimension per row."""
        if name not in self._dimensions:
            column = dimension_column(list(self.view.dimensions).index(name))
            self._dimensions[name] = Texts([each[column] for each in self.tables])
        return self._dimensions[name]

    def state(self, name: str) -> pa.ChunkedArray:
        """The value of a state per row."""
        column = state_column(list(self.view.columns).index(name))
        kind = pa.string() if self.view.columns[name].by == "union" else pa.int64()
        return pa.chunked_array([chunk for each in self.tables for chunk in each[column].chunks], kind)

    @cached_property
    def receipts(self) -> npt.NDArray[np.int32]:
        """Of a view that counts flags: per row, and window of its UTC day, the receipts until the end of the window."""
        chunks = [chunk.flatten().to_numpy() for each in self.tables for chunk in each[RECEIPTS].chunks]
        return (np.concatenate(chunks) if chunks else np.zeros(0, np.int32)).reshape(-1, DAY_WINDOWS)

    def _integers(self, name: str) -> Integers:
        chunks = [chunk.to_numpy() for each in self.tables for chunk in each[name].chunks]
        return np.concatenate(chunks) if chunks else np.zeros(0, np.int64)


@dataclass
class NamedDays:
    """The day cells that a manifest names for a view on some UTC days.

    Attributes:
        view: the view.
        parts: per day the run that wrote it, and its parts.
        without: the ids of stores whose cells are in blocks alone on any of these days.
        whole: all of them, once they were read and if they are few enough to be merged at once.
    """

    view: View
    parts: Sequence[tuple[date, str, DayParts]]
    without: Collection[str]
    whole: ViewDays | None = None

    @property
    def key(self) -> Hashable:
        """Identifies the cells."""
        return self.view.definition_hash, tuple((day, run) for day, run, _ in self.parts)


class DayCells:
    """Published day cells, found by way of the manifest: (view, day) to run, (run, view, day) to parts."""

    def __init__(self, cells: "BatchCells", batch: BatchReader) -> None:
        """Caches which parts each run has, and decoded days."""
        self._cells, self._batch = cells, batch
        self._parts: SharedCache[tuple[str, str], Mapping[date, DayParts]] = SharedCache(4096)
        self._days: SharedCache[tuple[str, date, str], pa.Table] = SharedCache(BYTES_KEPT, _size)
        self._joined: LRUCache[Hashable, ViewDays] = LRUCache(BYTES_JOINED, getsizeof=_size_joined)
        self._reading = asyncio.Semaphore(READS_AT_ONCE)

    async def named(self, manifest: str, view: View, start: int, end: int) -> NamedDays:
        """Find the day cells of each UTC day that [start, end) touches.

        Raises:
            CellMissingError: a run knows nothing of a day that it is named for.
            CassandraUnavailableError: Cassandra does not answer.
        """
        without = set[str]()
        needed: list[tuple[date, str, DayParts]] = []
        for day, run in await self._cells.runs(manifest, view.name, start, end):
            parts = (await self._of_run(run, view.name)).get(day)
            if parts is None:
                without |= await self._cells.stores(run, view, day)
            else:
                without.update(parts.without)
                needed.append((day, run, parts))
        return NamedDays(view, needed, without)

    async def slices(self, named: NamedDays) -> AsyncIterator[ViewDays]:
        """Read day cells, in one or more pieces of at most `ROWS_AT_ONCE` rows.

        Raises:
            CellMissingError: a part is named and not there.
            CassandraUnavailableError: Cassandra does not answer.
        """
        whole = named.whole or self._joined.get(named.key)
        if whole is not None:
            named.whole = whole
            yield whole
            return
        tables, rows, is_whole = list[pa.Table](), 0, True
        async for piece in self._pieces(named):
            if rows and rows + piece.num_rows > ROWS_AT_ONCE:
                yield ViewDays(named.view, tables)
                tables, rows, is_whole = [], 0, False
            tables.append(piece)
            rows += piece.num_rows
        last = ViewDays(named.view, tables)
        if is_whole:
            named.whole = last
            keep(self._joined, named.key, last)
        yield last

    async def _pieces(self, named: NamedDays) -> AsyncIterator[pa.Table]:
        """Tables of at most `ROWS_AT_ONCE` rows each, of one day after the other.

        Days are read side by side, as many as have so many rows by the largest day so far.
        """
        days, most = list(named.parts), ROWS_AT_ONCE
        while days:
            together = min(READS_AT_ONCE, max(1, ROWS_AT_ONCE // most))
            tables = await asyncio.gather(*(self._day(named.view, *each) for each in days[:together]))
            del days[:together]
            most = max(1, *(table.num_rows for table in tables))
            for table in tables:
                for at in range(0, table.num_rows, ROWS_AT_ONCE):
                    yield table.slice(at, ROWS_AT_ONCE)

    async def read_ahead(self, manifest: str, views: Sequence[View]) -> None:
        """Read the newest days of a publication, as many as have `BYTES_AHEAD`, before anybody asks for them.

        Args:
            manifest: of the publication.
            views: those whose definition is the published one.

        Raises:
            CellMissingError: see `slices`.
            CassandraUnavailableError: Cassandra does not answer.
        """
        runs = {view.name: await self._cells.days(manifest, view.name) for view in views}

        async def read(view: View, day: date) -> int:
            run = runs[view.name].get(day)
            parts = None if run is None else (await self._of_run(run, view.name)).get(day)
            return 0 if run is None or parts is None else _size(await self._day(view, day, run, parts))

        size, days = 0, sorted({day for of_view in runs.values() for day in of_view}, reverse=True)
        for day in days:
            size += sum(await asyncio.gather(*(read(view, day) for view in views)))
            if size > BYTES_AHEAD:
                return

    async def _of_run(self, run: str, view: str) -> Mapping[date, DayParts]:
        return await self._parts.get((run, view), lambda: self._batch.day_parts(run, view))

    async def _day(self, view: View, day: date, run: str, named: DayParts) -> pa.Table:
        async def read() -> pa.Table:
            async with self._reading:
                blocks = await self._batch.day_cells(run, view.name, day)
            lacking = [part for part in named.parts if part not in blocks]
            if lacking:
                message = f"Run `{run}` names day cells of `{view.name}` on {day}, and `{lacking[0]}` is not there."
                raise CellMissingError(message, do=f"galatea rebuild {view.name} --from {day} --to {day}")
            packed = [blocks[part] for part in named.parts]
            return await off_loop(sum(map(len, packed)) // BYTES_PER_CELL, lambda: _unpacked(packed))

        return await self._days.get((view.definition_hash, day, run), read)


def _unpacked(parts: Sequence[bytes]) -> pa.Table:
    return pa.concat_tables(map(unpack, parts)) if parts else pa.table({})


def _size(table: pa.Table) -> int:
    return max(1, int(table.nbytes))


def _size_joined(days: ViewDays) -> int:
    """With the arrays that are made of the tables, which are about as large."""
    return max(1, 2 * sum(map(_size, days.tables)))
