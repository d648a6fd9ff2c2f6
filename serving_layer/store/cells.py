"""The published cells of a store, read once: what a run wrote never changes, so it is remembered within bounds.

The speed rows that count: of the published generation, at or after the cut. Read again for every answer.

Speed rows for several metrics of one answer: read once, so that a quotient fits the sums that stand beside it.

Both layers' cells of a store, merged: the one place where a request meets its data.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from datetime import date, timedelta
from itertools import groupby
from typing import Self

from serving_layer.caching import Lru, SingleFlight
from serving_layer.errors import CellMissingError
from serving_layer.query.snapshot import ReadSnapshot
from serving_layer.store.readers import BatchReader, PublishedReader, Readers, SpeedBlock, SpeedReader
from views.core import States, View
from views.core.cells import WAITING, Addition, CellKey, Shape, number_of, read_block
from views.core.cut import instant, is_fresh, month_of
from views.core.merge import Cell, merge_cells

Cells = tuple[tuple[CellKey, States], ...]
Wanted = tuple[date, str]
"""A day and the run that the manifest names for it."""

CELLS_KEPT = 400_000
"""About 150 MB: 11 store-years of `sales`."""


class BatchCells:
    """Cells by way of the manifest: (view, day) to run, run to stores, (run, store) to block."""

    def __init__(self, published: PublishedReader, batch: BatchReader) -> None:
        """Remembers manifests, which stores a run wrote, and decoded blocks."""
        self._published = published
        self._batch = batch
        self._manifests: Lru[Mapping[str, Mapping[date, str]]] = Lru(8)
        self._stores: Lru[Mapping[date, frozenset[str]]] = Lru(4096)
        self._blocks: Lru[Cells] = Lru(CELLS_KEPT)

    async def read(self, manifest: str, view: View, store: str, start: int, end: int) -> list[Cells]:
        """The cells of each UTC day that [start, end) touches. CellMissingError if the manifest names what is not there."""
        runs = (await self._manifest(manifest)).get(view.name, {})
        wanted = []
        for day in _days(start, end):
            run = runs.get(day)
            if run is not None and await self._has(run, view, store, day):
                wanted.append((day, run))
        held = {each: self._blocks.get((view.definition_hash, store, each)) for each in wanted}
        absent = [each for each, cells in held.items() if cells is None]
        loaded = await self._load(view, store, absent) if absent else {}
        return [cells for each in wanted if (cells := loaded.get(each) or held[each])]

    async def _manifest(self, name: str) -> Mapping[str, Mapping[date, str]]:
        found = self._manifests.get(name)
        if found is None:
            by_view: dict[str, dict[date, str]] = {}
            for (view, day), run in (await self._published.manifest(name)).items():
                by_view.setdefault(view, {})[day] = run
            found = by_view
            self._manifests.put(name, found)
        return found

    async def _has(self, run: str, view: View, store: str, day: date) -> bool:
        days = self._stores.get((run, view.name))
        if days is None:
            days = await self._batch.stores_of(run, view.name)
            self._stores.put((run, view.name), days)
        if day not in days:
            raise _missing(view, day, run, "any store")
        return store in days[day]

    async def _load(self, view: View, store: str, absent: Sequence[Wanted]) -> dict[Wanted, Cells]:
        """One read per month and run: the blocks of a store and month lie together."""
        by_run = sorted(absent, key=lambda each: (month_of(each[0]), each[1], each[0]))
        groups = [list(group) for _, group in groupby(by_run, key=lambda each: (month_of(each[0]), each[1]))]
        reads = [self._batch.blocks(view.name, store, group[0][1], [day for day, _ in group]) for group in groups]
        loaded: dict[Wanted, Cells] = {}
        for group, blocks in zip(groups, await asyncio.gather(*reads), strict=True):
            for day, run in group:
                if day not in blocks:
                    raise _missing(view, day, run, f"store `{store}`")
                cells = tuple(read_block(view, blocks[day]))
                self._blocks.put((view.definition_hash, store, (day, run)), cells, max(1, len(cells)))
                loaded[day, run] = cells
        return loaded


def _missing(view: View, day: date, run: str, whose: str) -> CellMissingError:
    message = f"The manifest names run `{run}` for `{view.name}` on {day}, and its cells of {whose} are not there."
    return CellMissingError(message, do=f"galatea rebuild {view.name} --from {day} --to {day}")


def _days(start: int, end: int) -> list[date]:
    first, last = instant(start).date(), instant(end - 1).date()
    return [first + timedelta(days=number) for number in range((last - first).days + 1)]


class SpeedCells:
    """Rows lie by day of receipt; the days are read side by side, and once for requests that arrive together."""

    def __init__(self, speed: SpeedReader, ttl: timedelta) -> None:
        """`ttl`: how long rows live."""
        self._speed = speed
        self._ttl = ttl
        self._shared: SingleFlight[Sequence[SpeedBlock]] = SingleFlight()

    async def read(self, basis: ReadSnapshot, view: View, store: str, start: int, end: int) -> list[Addition]:
        """The rows of windows in [start, end). Empty if the basis has no speed."""
        return [row for row in await self.rows(basis, view, store) if start <= row.key.window < end]

    async def waiting(
        self, basis: ReadSnapshot, reach: Mapping[str, tuple[int, int]], store: str, start: int, end: int
    ) -> int:
        """How many events of these windows are left to the next publication. An upper bound (R6).

        `reach`: as what they wait, and how many seconds before and behind a window its events may happen.
        """
        spans = {name: range(start - before, end + after) for name, (before, after) in reach.items()}
        return sum(
            number_of(row.states)
            for row in await self.rows(basis, WAITING, store)
            if is_fresh(row.epoch, basis.pointer.cut)
            and row.key.window in spans.get(row.key.dimensions[0] or "", range(0))
        )

    async def rows(self, basis: ReadSnapshot, shape: Shape, store: str) -> list[Addition]:
        """Every row that may count, whatever its window. Empty if the basis has no speed."""
        if not basis.has_speed:
            return []
        generation, cut = basis.pointer.generation, basis.pointer.cut

        async def of(day: date) -> Sequence[SpeedBlock]:
            key = (shape.name, store, day, generation, cut)
            return await self._shared.read(key, lambda: self._speed.rows(shape.name, store, day, generation, cut))

        parts = await asyncio.gather(*(of(day) for day in basis.received_days(self._ttl)))
        return [
            Addition(key, row.epoch, states)
            for part in parts
            for row in part
            for key, states in read_block(shape, row.block)
        ]


class SpeedOnce(SpeedCells):
    """Remembers what it has read for as long as one answer takes. It is never asked with another basis."""

    def __init__(self, rows: SpeedCells) -> None:
        """`rows`: where they are read."""
        self._from = rows
        self._read: dict[tuple[str, str], asyncio.Task[list[Addition]]] = {}

    async def rows(self, basis: ReadSnapshot, shape: Shape, store: str) -> list[Addition]:
        """As they were when they were first asked for."""
        key = (shape.name, store)
        if key not in self._read:
            self._read[key] = asyncio.ensure_future(self._from.rows(basis, shape, store))
        return await self._read[key]


class MergedCells:
    """Remembers what never changes, reads what does."""

    def __init__(self, readers: Readers, speed_ttl: timedelta) -> None:
        """`speed_ttl`: how long speed rows live."""
        self.batch = BatchCells(readers.published, readers.batch)
        self.speed = SpeedCells(readers.speed, speed_ttl)

    def for_one_answer(self) -> Self:
        """The same cells, with speed rows that stay what they were when they were first asked for."""
        same = copy(self)
        same.speed = SpeedOnce(self.speed)
        return same

    async def read(self, basis: ReadSnapshot, view: View, store: str, start: int, end: int) -> list[Cell]:
        """The cells with a window in [start, end), seconds since 1970. DefinitionNotPublishedError, CellMissingError."""
        basis.refuse_unpublished(view)
        published, fresh = await asyncio.gather(
            self.batch.read(basis.pointer.manifest, view, store, start, end),
            self.speed.read(basis, view, store, start, end),
        )
        batch = ((key, states) for cells in published for key, states in cells if start <= key.window < end)
        return list(merge_cells(view, batch, fresh, basis.pointer.cut))

    async def waiting(self, basis: ReadSnapshot, views: Iterable[View], store: str, start: int, end: int) -> int:
        """How many events of the views' sources in these windows are left to the next publication."""
        reach: dict[str, tuple[int, int]] = {}
        for view in views:
            before, after = reach.get(view.waits_as, (0, 0))
            settles = int(view.settles_after.total_seconds())
            # A sighting may also join a visit that began after it, and take it out of its window.
            reach[view.waits_as] = max(before, settles if view.counts_visits else 0), max(after, settles)
        return await self.speed.waiting(basis, reach, store, start, end)
