"""`alert_audits` in Cassandra: by which publication alerts were looked at last."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import orjson

if TYPE_CHECKING:
    from cassandra.cluster import Session

_SERIES = "galatea"
_READ = "SELECT publication FROM alert_audits WHERE series = ?"
_BEGIN = "INSERT INTO alert_audits (publication, audited_at, told, series) VALUES (?, ?, ?, ?) IF NOT EXISTS"
_MOVE = "UPDATE alert_audits SET publication = ?, audited_at = ?, told = ? WHERE series = ? IF publication = ?"


class Audited:
    """Errors are the driver's."""

    def __init__(self, session: "Session") -> None:
        """`session` uses Galatea's keyspace."""
        self._session = session

    def read(self) -> int:
        """The number of that publication; 0: of none."""
        row = self._session.execute(self._session.prepare(_READ), (_SERIES,)).one()
        return int(row.publication) if row else 0

    def move(self, seen: int, to: int, told: Mapping[str, int]) -> bool:
        """Say that `to` was looked at. False if somebody else has moved it since it was `seen`."""
        values = (to, datetime.now(UTC), orjson.dumps(told).decode(), _SERIES)
        cql, more = (_MOVE, (seen,)) if seen else (_BEGIN, ())
        row = self._session.execute(self._session.prepare(cql), (*values, *more)).one()
        # A second try of the driver's finds what its first one has done.
        return bool(row.applied) or getattr(row, "publication", None) == to
