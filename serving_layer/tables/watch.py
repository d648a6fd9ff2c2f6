"""`lag`, and what `publications` says of one of them."""

from collections.abc import Sequence

from serving_layer.tables.bridge import Bridge, instant_of
from serving_layer.watched import Found, Measured
from views.core.publication import SERIES


class WatchTables:
    """WatchReader."""

    def __init__(self, bridge: Bridge) -> None:
        """Prepares its statements."""
        self._bridge = bridge
        self._lag = bridge.prepare(
            "SELECT topic, partition, position, end_offset, records, oldest_at, moved_at, measured_at "
            "FROM lag WHERE reader = ?"
        )
        self._found = bridge.prepare("SELECT published_at FROM publications WHERE series = ? AND publication = ?")

    async def lag(self, reader: str) -> Sequence[Measured]:
        """Per topic and partition."""
        return [
            Measured(reader, topic, number, at, end, records, oldest and instant_of(oldest), *map(instant_of, times))
            for topic, number, at, end, records, oldest, *times in await self._bridge.rows(self._lag, reader)
        ]

    async def publication(self, number: int) -> Found:
        """Nothing is known of one that is not there."""
        for (published_at,) in await self._bridge.rows(self._found, SERIES, number):
            return Found(published_at and instant_of(published_at))
        return Found(None)
