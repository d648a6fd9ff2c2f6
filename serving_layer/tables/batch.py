"""`run_days` and `batch_cells`."""

from collections.abc import Mapping, Sequence
from datetime import date

import orjson

from serving_layer.tables.bridge import Bridge, day_of
from views.core.cut import month_of


class BatchTables:
    """BatchReader."""

    def __init__(self, bridge: Bridge) -> None:
        """Prepares its statements."""
        self._bridge = bridge
        self._days = bridge.prepare("SELECT day, stores FROM run_days WHERE run = ? AND view_name = ?")
        self._blocks = bridge.prepare(
            "SELECT day, block FROM batch_cells "
            "WHERE view_name = ? AND store = ? AND month = ? AND run = ? AND day >= ? AND day <= ?"
        )

    async def stores_of(self, run: str, view: str) -> Mapping[date, frozenset[str]]:
        """Per day that the run computed, who has a block."""
        rows = await self._bridge.rows(self._days, run, view)
        return {day_of(day): frozenset(orjson.loads(stores)) for day, stores in rows}

    async def blocks(self, view: str, store: str, run: str, days: Sequence[date]) -> Mapping[date, str]:
        """One read, since the days of a month lie together; between the asked days there may be others."""
        rows = await self._bridge.rows(self._blocks, view, store, month_of(days[0]), run, min(days), max(days))
        return {day_of(day): block for day, block in rows}
