"""`alerts_told`, `alerts_open`, `alert_records` and how far they go."""

from collections.abc import Sequence
from datetime import date

from serving_layer.alerting.history import Kept, Spot, Told
from serving_layer.tables.bridge import Bridge, day_of, instant_of

_BUCKET = 0


class AlertTables:
    """AlertReader."""

    def __init__(self, bridge: Bridge) -> None:
        """Prepares its statements."""
        self._bridge = bridge
        behind = "AND (raised_at, alert_id) < (?, ?) LIMIT ?"
        self._kept = bridge.prepare("SELECT as_of, complete_from FROM alerts_kept WHERE bucket = ?")
        self._days = bridge.prepare("SELECT day FROM alert_days WHERE sight = ? AND day <= ? LIMIT ?")
        self._told = bridge.prepare(
            "SELECT raised_at, alert_id, body, resolved, retracted FROM alerts_told "  # noqa: S608 - our own columns
            f"WHERE sight = ? AND day = ? {behind}"
        )
        self._open = bridge.prepare(
            f"SELECT raised_at, alert_id, body FROM alerts_open WHERE sight = ? {behind}"  # noqa: S608 - our own columns
        )
        self._records = bridge.prepare("SELECT body FROM alert_records WHERE alert_id = ?")

    async def kept(self) -> Kept:
        """Of all partitions."""
        rows = await self._bridge.rows(self._kept, _BUCKET)
        return Kept.of([Kept(*(at and instant_of(at) for at in row)) for row in rows])

    async def days(self, sight: str, last: date, limit: int) -> Sequence[date]:
        """Newest first, as the table is sorted."""
        return [day_of(day) for (day,) in await self._bridge.rows(self._days, sight, last, limit)]

    async def told(self, sight: str, day: date, before: Spot, limit: int) -> Sequence[Told]:
        """Newest first, as the table is sorted. What has no body yet is half written."""
        rows = await self._bridge.rows(self._told, sight, day, *before, limit)
        return [Told(instant_of(at), *said) for at, *said in rows if said[1]]

    async def open_ones(self, sight: str, before: Spot, limit: int) -> Sequence[Told]:
        """Newest first, as the table is sorted."""
        rows = await self._bridge.rows(self._open, sight, *before, limit)
        return [Told(instant_of(at), *said) for at, *said in rows]

    async def records(self, alert_id: str) -> Sequence[str]:
        """In the order of their ids."""
        return [body for (body,) in await self._bridge.rows(self._records, alert_id)]
