"""Alarms that can only be noticed in passing, kept in Cassandra until a publication or time has settled them."""

from datetime import datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cassandra.cluster import Session

CLOCK_STEPPED_BACK = "clock_stepped_back"
ALERTS_UNEXPLAINED = "alerts_unexplained"
ALERTS_MISKEYED = "alerts_miskeyed"


class AlarmTable:
    """One row each time that something was noticed; rows expire after 30 days."""

    def __init__(self, session: "Session") -> None:
        """`session` uses Galatea's keyspace."""
        self._session = session
        self._insert = session.prepare("INSERT INTO alarms (name, noticed_at, place, detail) VALUES (?, ?, ?, ?)")

    def notice(self, name: str, at: datetime, place: str, detail: str) -> None:
        """`place` is where, `detail` one sentence for the operator."""
        self._session.execute(self._insert, (name, at, place, detail))
