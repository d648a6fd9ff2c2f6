"""How far the archive has come, kept in Cassandra where a fence looks for it."""

from datetime import datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cassandra.cluster import Session


class ArchivePositions:
    """One row per topic and partition: everything before `position` is in the master dataset."""

    def __init__(self, session: "Session") -> None:
        """`session` uses Galatea's keyspace."""
        self._session = session
        # The position is also the write timestamp, so the greatest one wins whatever the order of writes.
        self._insert = session.prepare(
            "INSERT INTO archive_positions (topic, partition, position, received_at) "
            "VALUES (?, ?, ?, ?) USING TIMESTAMP ?"
        )

    def record(self, topic: str, partition: int, position: int, received_at: datetime) -> None:
        """Everything before `position` is kept."""
        self._session.execute(self._insert, (topic, partition, position, received_at, position))

    def read(self) -> dict[str, dict[int, int]]:
        """Topic to partition to position."""
        found: dict[str, dict[int, int]] = {}
        for row in self._session.execute("SELECT topic, partition, position FROM archive_positions"):
            found.setdefault(row.topic, {})[row.partition] = row.position
        return found
