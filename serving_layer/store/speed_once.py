"""Speed rows for several metrics of one answer: read once, so that a quotient fits the sums that stand beside it."""

import asyncio

from serving_layer.query.read_snapshot import Basis
from serving_layer.store.speed_cells import SpeedCells
from views.core.cells import Addition
from views.core.shape import Shape


class SpeedOnce(SpeedCells):
    """Remembers what it has read for as long as one answer takes. It is never asked with another basis."""

    def __init__(self, rows: SpeedCells) -> None:
        """`rows`: where they are read."""
        self._from = rows
        self._read: dict[tuple[str, str], asyncio.Task[list[Addition]]] = {}

    async def rows(self, basis: Basis, shape: Shape, store: str) -> list[Addition]:
        """As they were when they were first asked for."""
        key = (shape.name, store)
        if key not in self._read:
            self._read[key] = asyncio.ensure_future(self._from.rows(basis, shape, store))
        return await self._read[key]
