"""`alert_audits` in Cassandra: by which publication alerts were looked at last."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

import orjson

if TYPE_CHECKING:
    from cassandra.cluster import Session

_SERIES = "galatea"
_READ = "SELECT publication, told FROM alert_audits WHERE series = ?"
_BEGIN = "INSERT INTO alert_audits (publication, audited_at, told, series) VALUES (?, ?, ?, ?) IF NOT EXISTS"
_MOVE = "UPDATE alert_audits SET publication = ?, audited_at = ?, told = ? WHERE series = ? IF publication = ?"
_ASKED = "asked"


class Looked(NamedTuple):
    """`publication`: its number; 0: of none. `asked`: how far requests for corrections were read then, by partition."""

    publication: int
    asked: Mapping[int, int]


class Audited:
    """Errors are the driver's."""

    def __init__(self, session: "Session") -> None:
        """`session` uses Galatea's keyspace."""
        self._session = session

    def read(self) -> Looked:
        """By which one it was. Of a row that does not say how far requests were read, none count as read."""
        row = self._session.execute(self._session.prepare(_READ), (_SERIES,)).one()
        told: dict[str, Any] = orjson.loads(row.told) if row and row.told else {}
        return Looked(
            int(row.publication) if row else 0, {int(number): end for number, end in told.get(_ASKED, {}).items()}
        )

    def move(self, seen: int, to: Looked, told: Mapping[str, int]) -> bool:
        """Say that `to` was looked at. False if somebody else has moved it since it was `seen`."""
        said = {**told, _ASKED: {str(number): end for number, end in sorted(to.asked.items())}}
        values = (to.publication, datetime.now(UTC), orjson.dumps(said).decode(), _SERIES)
        cql, more = (_MOVE, (seen,)) if seen else (_BEGIN, ())
        row = self._session.execute(self._session.prepare(cql), (*values, *more)).one()
        # A second try of the driver's finds what its first one has done.
        return bool(row.applied) or getattr(row, "publication", None) == to.publication
