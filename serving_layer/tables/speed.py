"""`speed_positions` and `speed_cells`."""

from collections.abc import Sequence
from datetime import date, datetime

from serving_layer.store.readers import Position, SpeedBlock
from serving_layer.tables.bridge import Bridge, instant_of


class SpeedTables:
    """SpeedReader."""

    def __init__(self, bridge: Bridge) -> None:
        """Prepares its statements."""
        self._bridge = bridge
        self._positions = bridge.prepare(
            "SELECT topic, partition, position, received_at FROM speed_positions WHERE generation = ?"
        )
        self._rows = bridge.prepare(
            "SELECT epoch, block FROM speed_cells "
            "WHERE view_name = ? AND store = ? AND received_day = ? AND generation = ? AND epoch >= ?"
        )

    async def positions(self, generation: int) -> Sequence[Position]:
        """Per topic and partition."""
        rows = await self._bridge.rows(self._positions, generation)
        return [Position(topic, number, at, read and instant_of(read)) for topic, number, at, read in rows]

    async def rows(
        self, view: str, store: str, received_day: date, generation: int, cut: datetime
    ) -> Sequence[SpeedBlock]:
        """Rows whose epoch is at or after the cut."""
        rows = await self._bridge.rows(self._rows, view, store, received_day, generation, cut)
        return [SpeedBlock(instant_of(epoch), block) for epoch, block in rows]
