"""The speed rows that count: of the published generation, at or after the cut. Read again for every answer."""

import asyncio
from collections.abc import Mapping, Sequence
from datetime import date, timedelta

from serving_layer.caching.single_flight import SharedRead
from serving_layer.query.read_snapshot import Basis
from serving_layer.store.readers import SpeedBlock, SpeedReader
from views.core import View
from views.core.cells import Addition, read_block
from views.core.cut import is_fresh
from views.core.shape import WAITING, Shape, number_of


class SpeedCells:
    """Rows lie by day of receipt; the days are read side by side, and once for requests that arrive together."""

    def __init__(self, speed: SpeedReader, ttl: timedelta) -> None:
        """`ttl`: how long rows live."""
        self._speed = speed
        self._ttl = ttl
        self._shared: SharedRead[Sequence[SpeedBlock]] = SharedRead()

    async def read(self, basis: Basis, view: View, store: str, start: int, end: int) -> list[Addition]:
        """The rows of windows in [start, end). Empty if the basis has no speed."""
        return [row for row in await self.rows(basis, view, store) if start <= row.key.window < end]

    async def waiting(
        self, basis: Basis, reach: Mapping[str, tuple[int, int]], store: str, start: int, end: int
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

    async def rows(self, basis: Basis, shape: Shape, store: str) -> list[Addition]:
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
