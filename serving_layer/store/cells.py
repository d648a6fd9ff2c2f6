"""The cells of both layers, and the two merged: the one place where a query meets its data.

What a run wrote never changes, so the cells of the batch layer are cached within bounds. Speed rows are read again for
every answer. docs/explanation/caching.md has the details.
"""

import asyncio
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from functools import partial
from itertools import chain, groupby
from typing import Self

from cachetools import LRUCache

from serving_layer.caching import SharedCache, SingleFlight, keep
from serving_layer.errors import CellMissingError
from serving_layer.off_loop import off_loop
from serving_layer.store.day_cells import DayCells
from serving_layer.store.readers import (
    BatchReader,
    Claim,
    GenerationProgress,
    Position,
    PublishedReader,
    Readers,
    SpeedBlock,
    SpeedReader,
)
from serving_layer.store.snapshot import ReadSnapshot
from views.core import States, View
from views.core.cells import WAITING, Addition, CellKey, Shape, number_of, read_block
from views.core.cut import instant, is_fresh, month_of
from views.core.local_time import STEP, Span, disjoint
from views.core.merge import Cell, merge_cells

Cells = tuple[tuple[CellKey, States], ...]
DayRun = tuple[date, str]
"""A day and the run that the manifest names for it."""


@dataclass(frozen=True)
class WaitingEvents:
    """Events of a store that were received, and that only the next publication will count.

    Attributes:
        number: how many, at most.
        touched: the windows that they may change, in spans that do not touch each other, in order.
    """

    number: int = 0
    touched: Sequence[Span] = ()

    def may_change(self, span: Span) -> bool:
        """Whether they may change a value of these windows."""
        place = bisect_right(self.touched, span.start, key=lambda each: each.end)
        return place < len(self.touched) and self.touched[place].start < span.end


NOTHING_WAITS = WaitingEvents()
STORES_TOGETHER = 50
"""Of how many stores speed rows are read by one statement."""
READS_AT_ONCE = 32
"""How many such statements run at once, over all answers of the process."""
CHARACTERS_PER_CELL = 40
"""About how long a cell is in a block."""
CELLS_KEPT = 400_000
"""How many cells are cached. About 150 MB: 11 store-years of `sales`."""
STORES_KEPT = 2_000_000
"""How many ids of stores are cached, 50 to 100 bytes each. Days of a month with the same stores count once."""


class BatchCells:
    """Published cells, found by way of the manifest: (view, day) to run, run to stores, (run, store) to block."""

    def __init__(self, published: PublishedReader, batch: BatchReader) -> None:
        """Caches manifests, the stores of each run, and decoded blocks."""
        self._published = published
        self._batch = batch
        self._manifests: SharedCache[str, Mapping[str, Mapping[date, str]]] = SharedCache(8)
        self._stores: SharedCache[tuple[str, str, date], Mapping[date, frozenset[str]]] = SharedCache(
            STORES_KEPT, _stores_size
        )
        self._blocks: LRUCache[tuple[str, str, DayRun], Cells] = LRUCache(CELLS_KEPT, getsizeof=_size)

    async def read(
        self, manifest: str, view: View, spans: Mapping[str, Sequence[Span]]
    ) -> Mapping[str, Sequence[Sequence[Cells]]]:
        """The cells of each UTC day that spans touch.

        Args:
            manifest: its name.
            view: whose cells.
            spans: per store.

        Returns:
            Per store and span the cells of days in order, without days that have none.

        Raises:
            CellMissingError: one is named, and not there.
        """
        runs = {span: await self.runs(manifest, view.name, *span) for span in set(chain(*spans.values()))}
        named = list(set(chain(*runs.values())))
        known = await asyncio.gather(*(self.stores(run, view, day) for day, run in named))
        stores_of = dict(zip(named, known, strict=True))
        needed = {
            store: {each: None for span in own for each in runs[span] if store in stores_of[each]}
            for store, own in spans.items()
        }
        found = await asyncio.gather(*(self._cells(view, store, list(own)) for store, own in needed.items() if own))
        cells = dict(zip((store for store, own in needed.items() if own), found, strict=True))
        return {
            store: [[cells[store][each] for each in runs[span] if each in needed[store]] for span in own]
            for store, own in spans.items()
        }

    async def _cells(self, view: View, store: str, needed: Sequence[DayRun]) -> Mapping[DayRun, Cells]:
        held = {each: self._blocks.get((view.definition_hash, store, each)) for each in needed}
        absent = [each for each, cells in held.items() if cells is None]
        loaded = await self._load(view, store, absent) if absent else {}
        return {each: loaded[each] if cells is None else cells for each, cells in held.items()}

    async def days(self, manifest: str, view: str) -> Mapping[date, str]:
        """The run of each UTC day of which a view has published cells."""
        return (await self._manifest(manifest)).get(view, {})

    async def runs(self, manifest: str, view: str, start: int, end: int) -> list[DayRun]:
        """The run of each UTC day that [start, end) touches, where the manifest names one."""
        runs = (await self._manifest(manifest)).get(view, {})
        return [(day, run) for day in _days(start, end) if (run := runs.get(day)) is not None]

    async def _manifest(self, name: str) -> Mapping[str, Mapping[date, str]]:
        async def read() -> Mapping[str, Mapping[date, str]]:
            by_view: dict[str, dict[date, str]] = {}
            for (view, day), run in (await self._published.manifest(name)).items():
                by_view.setdefault(view, {})[day] = run
            return by_view

        return await self._manifests.get(name, read)

    async def stores(self, run: str, view: View, day: date) -> frozenset[str]:
        """The stores that have a block of that day. CellMissingError if the run knows nothing of the day."""
        month = month_of(day)
        days = await self._stores.get((run, view.name, month), lambda: self._batch.stores_of(run, view.name, month))
        if day not in days:
            raise _missing(view, day, run, "any store")
        return days[day]

    async def _load(self, view: View, store: str, absent: Sequence[DayRun]) -> dict[DayRun, Cells]:
        """One read per month and run: the blocks of a store and month lie together."""
        by_run = sorted(absent, key=lambda each: (month_of(each[0]), each[1], each[0]))
        groups = [list(group) for _, group in groupby(by_run, key=lambda each: (month_of(each[0]), each[1]))]
        reads = [self._batch.blocks(view.name, store, group[0][1], [day for day, _ in group]) for group in groups]
        found: dict[DayRun, str] = {}
        for group, blocks in zip(groups, await asyncio.gather(*reads), strict=True):
            for day, run in group:
                if day not in blocks:
                    raise _missing(view, day, run, f"store `{store}`")
                found[day, run] = blocks[day]
        characters = sum(map(len, found.values()))
        loaded = await off_loop(characters // CHARACTERS_PER_CELL, lambda: _decoded(view, found))
        for each, cells in loaded.items():
            keep(self._blocks, (view.definition_hash, store, each), cells)
        return loaded


def _decoded(view: View, blocks: Mapping[DayRun, str]) -> dict[DayRun, Cells]:
    return {each: tuple(read_block(view, block)) for each, block in blocks.items()}


def _stores_size(days: Mapping[date, frozenset[str]]) -> int:
    return 1 + sum(map(len, set(days.values())))


def _size(cells: Cells) -> int:
    return max(1, len(cells))


def _missing(view: View, day: date, run: str, whose: str) -> CellMissingError:
    message = f"The manifest names run `{run}` for `{view.name}` on {day}, and its cells of {whose} are not there."
    return CellMissingError(message, do=f"galatea rebuild {view.name} --from {day} --to {day}")


def _days(start: int, end: int) -> list[date]:
    first, last = instant(start).date(), instant(end - 1).date()
    return [first + timedelta(days=number) for number in range((last - first).days + 1)]


class SpeedCells:
    """The speed rows that count: those of the published generation, at or after the cut.

    Rows lie by day of receipt. The days are read side by side, and once for requests that arrive together.
    """

    def __init__(self, speed: SpeedReader, ttl: timedelta, reading: asyncio.Semaphore) -> None:
        """`ttl`: how long rows are kept. `reading`: limits the reads of many stores that run at once."""
        self._speed = speed
        self._ttl = ttl
        self._reading = reading
        self._reads: SingleFlight[Sequence[SpeedBlock]] = SingleFlight()
        self._reads_of: SingleFlight[Mapping[str, Sequence[SpeedBlock]]] = SingleFlight()

    async def waiting(
        self, snapshot: ReadSnapshot, reach: Mapping[str, tuple[int, int]], spans: Mapping[str, Sequence[Span]]
    ) -> Mapping[str, WaitingEvents]:
        """What waits for the next publication, per store. An upper bound (R6).

        Args:
            snapshot: of the rows that count.
            reach: by the name under which events wait, how many seconds before and after a window they may happen.
            spans: the windows of each store. They do not overlap.
        """
        rows_of = await self.rows_of(snapshot, WAITING, list(spans))
        return {
            store: _waiting(rows_of.get(store, ()), snapshot.pointer.cut, reach, own) for store, own in spans.items()
        }

    async def read_ahead(self, snapshot: ReadSnapshot, shapes: Iterable[Shape], stores: Sequence[str]) -> None:
        """Read the rows of many stores in few reads, if they are kept for `rows`. Here they are not."""

    async def rows(self, snapshot: ReadSnapshot, shape: Shape, store: str) -> Sequence[Addition]:
        """Every row that may count, whatever its window. Empty if the snapshot has no speed layer."""
        if not snapshot.has_speed:
            return []
        generation, cut = snapshot.pointer.generation, snapshot.pointer.cut

        async def of(day: date) -> Sequence[SpeedBlock]:
            key = (shape.name, store, day, generation, cut)
            return await self._reads.read(key, lambda: self._speed.rows(shape.name, store, day, generation, cut))

        parts = await asyncio.gather(*(of(day) for day in snapshot.received_days(self._ttl)))
        rows = [row for part in parts for row in part]
        return await off_loop(_cells_in(rows), lambda: list(_additions(shape, rows)))

    async def rows_of(
        self, snapshot: ReadSnapshot, shape: Shape, stores: Sequence[str]
    ) -> Mapping[str, Sequence[Addition]]:
        """As `rows`, of many stores in few reads; a store without any is left out."""
        if not snapshot.has_speed:
            return {}
        if len(stores) == 1:
            own = await self.rows(snapshot, shape, stores[0])
            return {stores[0]: own} if own else {}
        generation, cut = snapshot.pointer.generation, snapshot.pointer.cut
        together = [tuple(stores[at : at + STORES_TOGETHER]) for at in range(0, len(stores), STORES_TOGETHER)]

        async def read(some: Sequence[str], day: date) -> Mapping[str, Sequence[SpeedBlock]]:
            async with self._reading:
                return await self._speed.rows_of(shape.name, some, day, generation, cut)

        async def shared(some: tuple[str, ...], day: date) -> Mapping[str, Sequence[SpeedBlock]]:
            return await self._reads_of.read((shape.name, some, day, generation, cut), lambda: read(some, day))

        days = snapshot.received_days(self._ttl)
        found: dict[str, list[SpeedBlock]] = {}
        for part in await asyncio.gather(*(shared(some, day) for day in days for some in together)):
            for store, rows in part.items():
                found.setdefault(store, []).extend(rows)
        cells = sum(map(_cells_in, found.values()))
        return await off_loop(cells, lambda: {store: list(_additions(shape, rows)) for store, rows in found.items()})


def _waiting(
    rows: Iterable[Addition], cut: datetime, reach: Mapping[str, tuple[int, int]], spans: Sequence[Span]
) -> WaitingEvents:
    number, touched = 0, list[Span]()
    for row in rows:
        known = reach.get(row.key.dimensions[0] or "")
        if known is None or not is_fresh(row.epoch, cut):
            continue
        (before, after), window = known, row.key.window
        times = sum(start - before <= window < end + after for start, end in spans)
        number += times * number_of(row.states)
        if times:
            touched.append(Span(window - after, window + before + STEP))
    return WaitingEvents(number, disjoint(touched))


def _cells_in(rows: Iterable[SpeedBlock]) -> int:
    """About how many cells there are in speed rows."""
    return sum(len(row.block) for row in rows) // CHARACTERS_PER_CELL


def _additions(shape: Shape, rows: Iterable[SpeedBlock]) -> Iterator[Addition]:
    for row in rows:
        for key, states in read_block(shape, row.block):
            yield Addition(key, row.epoch, states)


class ChosenRows:
    """A `SpeedReader` that returns only some rows of the reader that it wraps."""

    def __init__(self, speed: SpeedReader, counts: Callable[[SpeedBlock], bool]) -> None:
        """`counts`: whether a row is read."""
        self._speed, self._counts = speed, counts

    async def positions(self, generation: int) -> Sequence[Position]:
        """The positions of the wrapped reader."""
        return await self._speed.positions(generation)

    async def progress(self, generation: int) -> GenerationProgress | None:
        """The progress of the wrapped reader."""
        return await self._speed.progress(generation)

    async def read_through(self) -> datetime | None:
        """The time that the wrapped reader has read through."""
        return await self._speed.read_through()

    async def claim(self, generation: int) -> Claim | None:
        """The claim of the wrapped reader."""
        return await self._speed.claim(generation)

    async def rows(
        self, view: str, store: str, received_day: date, generation: int, cut: datetime
    ) -> Sequence[SpeedBlock]:
        """The chosen rows of one store."""
        rows = await self._speed.rows(view, store, received_day, generation, cut)
        return list(filter(self._counts, rows))

    async def rows_of(
        self, view: str, stores: Sequence[str], received_day: date, generation: int, cut: datetime
    ) -> Mapping[str, Sequence[SpeedBlock]]:
        """The chosen rows of several stores."""
        found = await self._speed.rows_of(view, stores, received_day, generation, cut)
        return {store: list(filter(self._counts, rows)) for store, rows in found.items()}


class SpeedOnce(SpeedCells):
    """Speed rows for several metrics of one answer: read once, so that a ratio matches the sums next to it.

    Used for one answer only, and always reads from the same snapshot.
    """

    def __init__(self, rows: SpeedCells) -> None:
        """`rows`: reads them."""
        self._from = rows
        self._read: dict[tuple[str, str], asyncio.Task[Mapping[str, Sequence[Addition]]]] = {}

    async def read_ahead(self, snapshot: ReadSnapshot, shapes: Iterable[Shape], stores: Sequence[str]) -> None:
        """Read the rows of many stores in few reads. `rows` gives them then."""
        await asyncio.gather(*(task for shape in shapes for task in self._begun(snapshot, shape, stores)))

    def _begun(
        self, snapshot: ReadSnapshot, shape: Shape, stores: Sequence[str]
    ) -> set[asyncio.Task[Mapping[str, Sequence[Addition]]]]:
        """The reads of the rows of some stores. Those that were not read yet are read together from now on."""
        left = [store for store in stores if (shape.name, store) not in self._read]
        if left:
            task = asyncio.ensure_future(self._from.rows_of(snapshot, shape, left))
            self._read |= dict.fromkeys(((shape.name, store) for store in left), task)
        return {self._read[shape.name, store] for store in stores}

    async def rows(self, snapshot: ReadSnapshot, shape: Shape, store: str) -> Sequence[Addition]:
        """The rows, as they were when they were first read."""
        return (await self.rows_of(snapshot, shape, [store])).get(store, ())

    async def rows_of(
        self, snapshot: ReadSnapshot, shape: Shape, stores: Sequence[str]
    ) -> Mapping[str, Sequence[Addition]]:
        """The rows, as they were when they were first read."""
        for task in self._begun(snapshot, shape, stores):
            await task
        found = ((store, self._read[shape.name, store].result().get(store)) for store in stores)
        return {store: rows for store, rows in found if rows}


class MergedCells:
    """The merged cells of both layers."""

    def __init__(self, readers: Readers, speed_ttl: timedelta) -> None:
        """`speed_ttl`: how long speed rows are kept.

        Attributes:
            last_micro_batch: the last one whose rows count; None: the newest rows count, too.
        """
        self._readers, self._ttl = readers, speed_ttl
        self.batch = BatchCells(readers.published, readers.batch)
        self.days = DayCells(self.batch, readers.batch)
        self._reading = asyncio.Semaphore(READS_AT_ONCE)
        self.speed = SpeedCells(readers.speed, speed_ttl, self._reading)
        self._merged: dict[tuple[str, str, *tuple[Span, ...]], Sequence[Sequence[Cell]]] | None = None
        self.last_micro_batch: int | None = None

    def with_rows(self, counts: Callable[[SpeedBlock], bool]) -> Self:
        """The same cells, of some speed rows only. `counts`: whether a row is one of them."""
        same = copy(self)
        same.speed = SpeedCells(ChosenRows(self._readers.speed, counts), self._ttl, self._reading)
        return same

    async def settled(self, snapshot: ReadSnapshot) -> Self:
        """The same cells, which stay as they are while events arrive: all answers from them rest on the same events.

        They have what complete micro-batches wrote, up to the last one that is complete by the positions of the
        snapshot, or by a later claim. Rows of these are never written again but as they are.
        """
        claim = await self._readers.speed.claim(snapshot.pointer.generation)
        last = -1 if claim is None else claim.last_complete(snapshot.positions)
        same = self.with_rows(lambda row: row.micro_batch <= last)
        same.last_micro_batch = last
        return same

    async def for_views(self, snapshot: ReadSnapshot, views: Iterable[View]) -> Self:
        """The cells for an answer from several views, which are settled: numbers of one receipt all count, or none.

        Of a single view the cells are as they are, with the newest rows.

        Raises:
            CassandraUnavailableError: Cassandra does not answer.
        """
        is_one = len({view.name for view in views}) <= 1
        return self if is_one or not snapshot.has_speed else await self.settled(snapshot)

    def for_one_answer(self, *, keep_merged: bool = False) -> Self:
        """The same cells, with speed rows that are read once and stay as they were.

        `keep_merged`: keep what was merged, too, for other metrics of the same windows.
        """
        same = copy(self)
        same.speed = SpeedOnce(self.speed)
        same._merged = {} if keep_merged else None  # noqa: SLF001 - of this class
        return same

    async def read(
        self, snapshot: ReadSnapshot, view: View, spans: Mapping[str, Sequence[Span]]
    ) -> Mapping[str, Sequence[Sequence[Cell]]]:
        """The merged cells of stores, in few reads.

        Args:
            snapshot: the state of both layers that is read.
            view: whose cells.
            spans: per store, of windows, in seconds since 1970.

        Returns:
            Per store, and per span of it, the cells. Nobody changes them.

        Raises:
            DefinitionNotPublishedError: the view has changed since it was published.
            CellMissingError: the manifest names a cell that is not there.
            CassandraUnavailableError: Cassandra does not answer.
        """
        snapshot.refuse_unpublished(view)
        if (kept := self._merged) is None:
            return await self._read(snapshot, view, spans)
        left = {store: own for store, own in spans.items() if (view.name, store, *own) not in kept}
        found = await self._read(snapshot, view, left) if left else {}
        kept |= {(view.name, store, *left[store]): cells for store, cells in found.items()}
        return {store: kept[view.name, store, *own] for store, own in spans.items()}

    async def _read(
        self, snapshot: ReadSnapshot, view: View, spans: Mapping[str, Sequence[Span]]
    ) -> Mapping[str, Sequence[Sequence[Cell]]]:
        batch, speed = await asyncio.gather(
            self.batch.read(snapshot.pointer.manifest, view, spans), self.speed.rows_of(snapshot, view, list(spans))
        )

        published = sum(len(cells) for parts in batch.values() for cells in chain.from_iterable(parts))
        every, cut = published + sum(map(len, speed.values())), snapshot.pointer.cut
        return {  # store by store, so that others have their turn in between, but none of many on the event loop
            store: await off_loop(every, partial(_merged, view, batch[store], speed.get(store, ()), own, cut))
            for store, own in spans.items()
        }

    async def waiting(
        self, snapshot: ReadSnapshot, views: Iterable[View], spans: Mapping[str, Sequence[Span]]
    ) -> Mapping[str, WaitingEvents]:
        """The events of the views' sources that are left to the next publication, per store.

        `spans`: the windows of each store. They do not overlap.
        """
        return await self.speed.waiting(snapshot, waiting_reach(views), spans)


def _merged(
    view: View, parts: Sequence[Sequence[Cells]], speed: Sequence[Addition], spans: Sequence[Span], cut: datetime
) -> list[list[Cell]]:
    """The merged cells of the windows of each span. `parts`: per span all cells of the days that it touches."""
    found = []
    for days, (start, end) in zip(parts, spans, strict=True):
        batch = ((key, states) for cells in days for key, states in cells if start <= key.window < end)
        rows = (row for row in speed if start <= row.key.window < end)
        found.append(list(merge_cells(view, batch, rows, cut)))
    return found


def waiting_reach(views: Iterable[View]) -> Mapping[str, tuple[int, int]]:
    """By the name under which events wait, how many seconds before and after a window of a view they may happen."""
    reach: dict[str, tuple[int, int]] = {}
    for view in views:
        before, after = reach.get(view.waits_as, (0, 0))
        settles = int(view.settles_after.total_seconds())
        # A sighting may also join a visit that began after it, and take it out of its window.
        reach[view.waits_as] = max(before, settles if view.counts_visits else 0), max(after, settles)
    return reach
