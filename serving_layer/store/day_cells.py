"""Day cells of published runs: what the cells of a store and UTC day add up to, of many stores at once.

A run never changes what it wrote, so they are cached within bounds, like blocks. A store is left to its blocks where a
run wrote no day cells for it: before there were any, or because a sum was too large.
"""

import asyncio
from collections.abc import AsyncIterator, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from functools import cached_property
from threading import Lock
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from cachetools import LRUCache

from master_dataset.compressed_blocks import unpack
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
BYTES_TOGETHER = 128 * 1024 * 1024
"""How many bytes of days that were read together are cached, for the next query about the same days."""
BYTES_AHEAD = 64 * 1024 * 1024
"""How many bytes of decoded day cells are read before anybody asks for them."""
READS_AT_ONCE = 16
BYTES_PER_CELL = 100
"""Packed bytes that take about as long to unpack as one cell takes to merge."""
BYTES_PER_TEXT = 130
"""What a vocabulary takes for a text, in a list and a dictionary: measured for texts of 13 characters."""
MOST_TEXTS = 250_000
"""How many texts of a dimension share their numbers."""
ROWS_AT_ONCE = 150_000
"""How many rows are merged at once: so few that columns stay in the caches of a processor."""
ROWS_KEPT = 2_000_000
"""How many rows of a view are read side by side, or kept by a query until it has found what they say of its stores and
merges them: about 200 MB."""


class Vocabulary:
    """Numbers of texts. A text keeps its number, so that columns of several days and views meet without being compared.

    Both the event loop and the thread of `off_loop` add to it; numbers that were given stay as they are.
    """

    def __init__(self) -> None:
        """Know no text yet."""
        self.texts: list[str | None] = []
        self._numbers: dict[str | None, int] = {}
        self._adding = Lock()

    def numbers(self, texts: Iterable[str | None]) -> npt.NDArray[np.int32]:
        """The number of each text, a new one if it has none."""
        with self._adding:
            found = [self._numbers.setdefault(text, len(self._numbers)) for text in texts]
            if len(self._numbers) > len(self.texts):
                self.texts += list(self._numbers)[len(self.texts) :]
        return np.array(found, np.int32)

    def known(self, texts: Iterable[str | None], below: int) -> list[int]:
        """The numbers of those texts that have one below this; others are being added by another thread."""
        found = (self._numbers.get(text, below) for text in texts)
        return [number for number in found if number < below]


class Texts(NamedTuple):
    """A column of texts.

    Attributes:
        vocabulary: numbers the texts, also of other columns.
        numbers: per row the number of its text.
    """

    vocabulary: Vocabulary
    numbers: npt.NDArray[np.int32]

    @classmethod
    def joined(cls, columns: Sequence["Texts"]) -> "Texts":
        """Columns that follow each other, with the numbers of one vocabulary."""
        if len({id(each.vocabulary) for each in columns}) == 1:
            return cls(columns[0].vocabulary, np.concatenate([each.numbers for each in columns]))
        one, numbers = Vocabulary(), [np.zeros(0, np.int32)]
        for vocabulary, own in columns:
            there, places = np.unique(own, return_inverse=True)
            texts = vocabulary.texts
            numbers.append(one.numbers(texts[number] for number in there.tolist())[places])
        return cls(one, np.concatenate(numbers))


@dataclass(frozen=True)
class DayTable:
    """Day cells of a view on one UTC day, ready to be added up.

    Attributes:
        states: the columns of states, and of receipts.
        starts: the first window per row.
        ends: where the last window ends per row.
        texts: by the name of the column: the ids of the stores, and the values of dimensions.
        new_texts: how many texts the vocabularies did not know before.
    """

    states: pa.Table
    starts: Integers
    ends: Integers
    texts: Mapping[str, Texts]
    new_texts: int = 0

    @classmethod
    def of(cls, table: pa.Table, vocabularies: Mapping[str, Vocabulary]) -> "DayTable":
        """Make it of rows with the columns of `views.core.day_cells`. `vocabularies`: of the columns of texts."""
        known = sum(len(of.texts) for of in vocabularies.values())
        texts = {name: _numbered(table[name], of) for name, of in vocabularies.items()}
        new_texts = sum(len(of.texts) for of in vocabularies.values()) - known
        starts, ends = (table[name].to_numpy().astype(np.int64, copy=False) for name in (START, END))
        rest = table.drop_columns([*texts, START, END])
        states = rest.take(np.arange(len(starts)))  # a copy: a part of the table would keep all of it in memory
        return cls(states, starts.copy(), ends.copy(), texts, new_texts)

    @property
    def rows(self) -> int:
        """How many there are."""
        return len(self.starts)

    @property
    def size(self) -> int:
        """Bytes of its columns, and of the texts that were new."""
        numbers = sum(each.numbers.nbytes for each in self.texts.values())
        return (
            int(self.states.nbytes) + self.starts.nbytes + self.ends.nbytes + numbers + self.new_texts * BYTES_PER_TEXT
        )

    def slice(self, at: int, most: int) -> "DayTable":
        """At most so many rows from one on."""
        if not at and self.rows <= most:
            return self
        rows = slice(at, at + most)
        texts = {name: Texts(of, numbers[rows]) for name, (of, numbers) in self.texts.items()}
        return DayTable(self.states.slice(at, most), self.starts[rows], self.ends[rows], texts)


def _numbered(column: pa.ChunkedArray, vocabulary: Vocabulary) -> Texts:
    """A dictionary-encoded column by the numbers of a vocabulary."""
    found = []
    for chunk in column.chunks:
        numbers = vocabulary.numbers([*chunk.dictionary.to_pylist(), None])
        found.append(numbers[chunk.indices.fill_null(len(chunk.dictionary)).to_numpy()])
    return Texts(vocabulary, np.concatenate(found))


@dataclass(frozen=True, eq=False)
class ViewDays:
    """The day cells of a view on some UTC days, or a part of them.

    Attributes:
        view: the view.
        tables: one or more per day; none if the days have no cells.
    """

    view: View
    tables: Sequence[DayTable]
    _dimensions: dict[str, Texts] = field(default_factory=dict)

    @property
    def rows(self) -> int:
        """How many there are."""
        return sum(table.rows for table in self.tables)

    @cached_property
    def stores(self) -> Texts:
        """The id of the store per row."""
        return Texts.joined([each.texts[STORE] for each in self.tables])

    @cached_property
    def starts(self) -> Integers:
        """The first window per row."""
        return np.concatenate([each.starts for each in self.tables]) if self.tables else np.zeros(0, np.int64)

    @property
    def ends(self) -> Integers:
        """Where the last window ends per row."""
        return np.concatenate([each.ends for each in self.tables]) if self.tables else np.zeros(0, np.int64)

    def dimension(self, name: str) -> Texts:
        """The value of a dimension per row."""
        if name not in self._dimensions:
            column = dimension_column(list(self.view.dimensions).index(name))
            self._dimensions[name] = Texts.joined([each.texts[column] for each in self.tables])
        return self._dimensions[name]

    def state(self, name: str) -> pa.ChunkedArray:
        """The value of a state per row."""
        column = state_column(list(self.view.columns).index(name))
        kind = pa.string() if self.view.columns[name].by == "union" else pa.int64()
        return pa.chunked_array([chunk for each in self.tables for chunk in each.states[column].chunks], kind)

    @cached_property
    def receipts(self) -> npt.NDArray[np.int32]:
        """Of a view that counts flags: per row, and window of its UTC day, the receipts until the end of the window."""
        chunks = [chunk.flatten().to_numpy() for each in self.tables for chunk in each.states[RECEIPTS].chunks]
        return (np.concatenate(chunks) if chunks else np.zeros(0, np.int32)).reshape(-1, DAY_WINDOWS)


@dataclass
class NamedDays:
    """The day cells that a manifest names for a view on some UTC days.

    Attributes:
        view: the view.
        parts: per day the run that wrote it, and its parts.
        without: the ids of stores whose cells are in blocks alone on any of these days.
        kept: all of them, once they were read and if they are few enough to be kept until they are merged.
    """

    view: View
    parts: Sequence[tuple[date, str, DayParts]]
    without: Collection[str]
    kept: Sequence[ViewDays] | None = None

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
        self._days: SharedCache[tuple[str, date, str], DayTable | None] = SharedCache(BYTES_KEPT, _size)
        self._vocabularies: dict[str, Vocabulary] = {}
        self._together: LRUCache[Hashable, Sequence[ViewDays]] = LRUCache(BYTES_TOGETHER, getsizeof=_size_together)
        self._reading = asyncio.Semaphore(READS_AT_ONCE)

    async def named(self, manifest: str, view: View, start: int, end: int) -> NamedDays:
        """Find the day cells of each UTC day that [start, end) touches.

        Raises:
            CellMissingError: a run knows nothing of a day that it is named for.
            CassandraUnavailableError: Cassandra does not answer.
        """
        days = await self._cells.runs(manifest, view.name, start, end)
        runs = list(dict.fromkeys(run for _, run in days))  # in a year of small rebuilds, one for each day
        of_run = dict(zip(runs, await asyncio.gather(*(self._of_run(run, view.name) for run in runs)), strict=True))
        needed = [(day, run, parts) for day, run in days if (parts := of_run[run].get(day)) is not None]
        blocks_alone = [(day, run) for day, run in days if of_run[run].get(day) is None]
        stores = await asyncio.gather(*(self._cells.stores(run, view, day) for day, run in blocks_alone))
        return NamedDays(view, needed, set[str]().union(*stores, *(parts.without for _, _, parts in needed)))

    async def slices(self, named: NamedDays) -> AsyncIterator[ViewDays]:
        """Read day cells, in one or more slices of at most `ROWS_AT_ONCE` rows.

        Raises:
            CellMissingError: a part is named and not there.
            CassandraUnavailableError: Cassandra does not answer.
        """
        kept = named.kept or self._together.get(named.key)
        waiting, is_kept = list[ViewDays](kept or ()), True
        if kept is None:
            async for each in self._slices(named):
                waiting.append(each)
                is_kept = is_kept and sum(of.rows for of in waiting) <= ROWS_KEPT
                if not is_kept:
                    for of in waiting:
                        yield of
                    waiting = []
        if is_kept:
            named.kept = waiting
            if _has_one_vocabulary(waiting):
                keep(self._together, named.key, waiting)
        for of in waiting:
            yield of

    async def _slices(self, named: NamedDays) -> AsyncIterator[ViewDays]:
        tables, rows = list[DayTable](), 0
        async for piece in self._pieces(named):
            if rows and rows + piece.rows > ROWS_AT_ONCE:
                yield ViewDays(named.view, tables)
                tables, rows = [], 0
            tables.append(piece)
            rows += piece.rows
        yield ViewDays(named.view, tables)

    async def _pieces(self, named: NamedDays) -> AsyncIterator[DayTable]:
        """Tables of at most `ROWS_AT_ONCE` rows each, of one day after the other.

        Days are read side by side, as many as have `ROWS_KEPT` rows by the largest day so far.
        """
        days, most = list(named.parts), ROWS_KEPT
        while days:
            together = min(READS_AT_ONCE, max(1, ROWS_KEPT // most))
            found = await asyncio.gather(*(self._day(named.view, *each) for each in days[:together]))
            del days[:together]
            tables = [table for table in found if table is not None]
            most = max([1, *(table.rows for table in tables)])
            for table in tables:
                for at in range(0, table.rows, ROWS_AT_ONCE):
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
            if run is None:
                return 0
            await self._cells.stores(run, view, day)
            parts = (await self._of_run(run, view.name)).get(day)
            return 0 if parts is None else _size(await self._day(view, day, run, parts))

        size, days = 0, sorted({day for of_view in runs.values() for day in of_view}, reverse=True)
        for day in days:
            size += sum(await asyncio.gather(*(read(view, day) for view in views)))
            if size > BYTES_AHEAD:
                return

    async def _of_run(self, run: str, view: str) -> Mapping[date, DayParts]:
        async def read() -> Mapping[date, DayParts]:
            async with self._reading:
                return await self._batch.day_parts(run, view)

        return await self._parts.get((run, view), read)

    async def _day(self, view: View, day: date, run: str, named: DayParts) -> DayTable | None:
        """The cells of one day; None if it has no rows."""

        async def read() -> DayTable | None:
            async with self._reading:
                blocks = await self._batch.day_cells(run, view.name, day)
            lacking = [part for part in named.parts if part not in blocks]
            if lacking:
                message = f"Run `{run}` names day cells of `{view.name}` on {day}, and `{lacking[0]}` is not there."
                raise CellMissingError(message, do=f"galatea rebuild {view.name} --from {day} --to {day}")
            packed = [blocks[part] for part in named.parts]
            vocabularies = {dimension_column(at): self._vocabulary(of) for at, of in enumerate(view.dimensions)}
            vocabularies[STORE] = self._vocabulary(STORE)
            return await off_loop(sum(map(len, packed)) // BYTES_PER_CELL, lambda: _unpacked(packed, vocabularies))

        return await self._days.get((view.definition_hash, day, run), read)

    def _vocabulary(self, dimension: str) -> Vocabulary:
        """The texts of a dimension of any view; others once they are very many, as no text is ever removed."""
        known = self._vocabularies.get(dimension)
        if known is None or len(known.texts) > MOST_TEXTS:
            known = self._vocabularies[dimension] = Vocabulary()
        return known


def _unpacked(parts: Sequence[bytes], vocabularies: Mapping[str, Vocabulary]) -> DayTable | None:
    table = pa.concat_tables(map(unpack, parts)) if parts else pa.table({})
    return DayTable.of(table, vocabularies) if table.num_rows else None


def _size(table: DayTable | None) -> int:
    return 1 if table is None else table.size


def _size_together(slices: Sequence[ViewDays]) -> int:
    """With the arrays that are made of the tables, which are about as large."""
    return max(1, 2 * sum(_size(table) for days in slices for table in days.tables))


def _has_one_vocabulary(slices: Sequence[ViewDays]) -> bool:
    """Whether each dimension has one vocabulary: otherwise the days would get others of their own."""
    own = {
        (name, id(texts.vocabulary)) for days in slices for table in days.tables for name, texts in table.texts.items()
    }
    return len(own) == len({name for name, _ in own})
