"""Both layers' cells of a store, merged: the one place where a request meets its data."""

import asyncio
from collections.abc import Iterable
from copy import copy
from datetime import timedelta
from typing import Self

from serving_layer.query.read_snapshot import Basis
from serving_layer.store.batch_cells import BatchCells
from serving_layer.store.readers import Readers
from serving_layer.store.speed_cells import SpeedCells
from serving_layer.store.speed_once import SpeedOnce
from views.core import View
from views.core.merge import Cell, merge_cells


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

    async def read(self, basis: Basis, view: View, store: str, start: int, end: int) -> list[Cell]:
        """The cells with a window in [start, end), seconds since 1970. DefinitionNotPublished, CellMissing."""
        basis.refuse_unpublished(view)
        published, fresh = await asyncio.gather(
            self.batch.read(basis.pointer.manifest, view, store, start, end),
            self.speed.read(basis, view, store, start, end),
        )
        batch = ((key, states) for cells in published for key, states in cells if start <= key.window < end)
        return list(merge_cells(view, batch, fresh, basis.pointer.cut))

    async def waiting(self, basis: Basis, views: Iterable[View], store: str, start: int, end: int) -> int:
        """How many events of the views' sources in these windows are left to the next publication."""
        reach: dict[str, tuple[int, int]] = {}
        for view in views:
            before, after = reach.get(view.waits_as, (0, 0))
            settles = int(view.settles_after.total_seconds())
            # A sighting may also join a visit that began after it, and take it out of its window.
            reach[view.waits_as] = max(before, settles if view.counts_visits else 0), max(after, settles)
        return await self.speed.waiting(basis, reach, store, start, end)
