"""The published cells of a store, read once: what a run wrote never changes, so it is remembered within bounds."""

import asyncio
from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from itertools import groupby

from serving_layer.caching.lru import Lru
from serving_layer.errors import CellMissing
from serving_layer.store.readers import BatchReader, PublishedReader
from views.core import States, View
from views.core.cells import CellKey, read_block
from views.core.cut import instant, month_of

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
        """The cells of each UTC day that [start, end) touches. CellMissing if the manifest names what is not there."""
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


def _missing(view: View, day: date, run: str, whose: str) -> CellMissing:
    message = f"The manifest names run `{run}` for `{view.name}` on {day}, and its cells of {whose} are not there."
    return CellMissing(message, do=f"galatea rebuild {view.name} --from {day} --to {day}")


def _days(start: int, end: int) -> list[date]:
    first, last = instant(start).date(), instant(end - 1).date()
    return [first + timedelta(days=number) for number in range((last - first).days + 1)]
