"""The speed rows that count: of the published generation, at or after the cut. Read again for every answer."""

import asyncio
from collections.abc import Iterable, Sequence
from datetime import date, timedelta

from serving_layer.basis import Basis
from serving_layer.merge import SpeedRow
from serving_layer.readers import SpeedReader, SpeedText
from serving_layer.shared_read import SharedRead
from views.core import View
from views.core.cells import WAITING, CellKey, read_dimensions, read_states
from views.core.cut import is_fresh, seconds


class SpeedCells:
    """Rows lie by day of receipt; the days are read side by side, and once for requests that arrive together."""

    def __init__(self, speed: SpeedReader, ttl: timedelta) -> None:
        """`ttl`: how long rows live."""
        self._speed = speed
        self._ttl = ttl
        self._rows: SharedRead[Sequence[SpeedText]] = SharedRead()

    async def read(self, basis: Basis, view: View, store: str, start: int, end: int) -> list[SpeedRow]:
        """The rows of windows in [start, end). Empty if the basis has no speed."""
        return [
            SpeedRow(CellKey(seconds(row.window), read_dimensions(row.dimensions)), row.epoch, read_states(row.states))
            for row in await self._texts(basis, view.name, store)
            if start <= seconds(row.window) < end
        ]

    async def waiting(self, basis: Basis, topics: Iterable[str], store: str, start: int, end: int) -> int:
        """How many events of these windows are left to the next publication. An upper bound (R6)."""
        named = {(topic,) for topic in topics}
        return sum(
            read_states(row.states)[0] or 0
            for row in await self._texts(basis, WAITING, store)
            if start <= seconds(row.window) < end
            and is_fresh(row.epoch, basis.pointer.cut)
            and read_dimensions(row.dimensions) in named
        )

    async def _texts(self, basis: Basis, view: str, store: str) -> list[SpeedText]:
        if not basis.has_speed:
            return []
        generation, cut = basis.pointer.generation, basis.pointer.cut

        async def of(day: date) -> Sequence[SpeedText]:
            key = (view, store, day, generation, cut)
            return await self._rows.read(key, lambda: self._speed.rows(view, store, day, generation, cut))

        parts = await asyncio.gather(*(of(day) for day in basis.received_days(self._ttl)))
        return [row for part in parts for row in part]
