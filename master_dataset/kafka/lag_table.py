"""What each reader measured of its own lag, kept in Cassandra where serving looks for it."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING

from master_dataset.kafka.lag import Lag

if TYPE_CHECKING:
    from cassandra.cluster import Session

Place = tuple[str, int]
"""Topic and partition."""


class LagTable:
    """One row per reader, topic and partition: the last measurement."""

    def __init__(self, session: "Session", reader: str) -> None:
        """`session` uses Galatea's keyspace."""
        self._session, self._reader = session, reader
        self._insert = session.prepare(
            "INSERT INTO lag (reader, topic, partition, position, end_offset, records, oldest_at, moved_at, "
            "measured_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
        )
        self._moved: dict[Place, tuple[int, datetime]] = {}
        rows = session.execute(
            session.prepare("SELECT topic, partition, position, moved_at FROM lag WHERE reader = ?"), (reader,)
        )
        for row in rows:
            self._moved[row.topic, row.partition] = (row.position, row.moved_at)

    def write(self, measured: Iterable[Lag], now: datetime) -> None:
        """Replace the last measurement. A restart does not make a position look as if it had moved."""
        measured = list(measured)
        self._moved = moved(self._moved, measured, now)
        for each in measured:
            place = (each.topic, each.partition)
            oldest_at = each.oldest.received_at if each.oldest else None
            values = (each.position, each.end, each.records, oldest_at, self._moved[place][1], now)
            self._session.execute(self._insert, (self._reader, *place, *values))


def moved(
    before: Mapping[Place, tuple[int, datetime]], measured: Iterable[Lag], now: datetime
) -> dict[Place, tuple[int, datetime]]:
    """Each place with its position, and since when it has been there as far as measurements tell."""
    found = {}
    for each in measured:
        place = (each.topic, each.partition)
        last = before.get(place)
        found[place] = last if last is not None and last[0] == each.position else (each.position, now)
    return found
