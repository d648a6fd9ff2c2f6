"""What rules and stores say, and from when on: versions, only ever added, never changed.

A version holds for records received from `effective_at` on, which lies a while behind the moment of writing: by then
everybody has read it. Two writers that want the same number are told apart by a compare-and-set.
"""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from cassandra.cluster import Session

Kind = Literal["rule", "store"]
GRID = timedelta(seconds=1)
_BUCKET = 0
_BEGINNING = datetime(1970, 1, 1, tzinfo=UTC)
_COLUMNS = "kind, id, number, effective_at, body"
_READ = f"SELECT {_COLUMNS} FROM alert_versions WHERE bucket = ?"  # noqa: S608 - our own columns
_NEWEST = f"{_READ} AND kind = ? AND id = ? LIMIT 1"
_ADD = (
    "INSERT INTO alert_versions (bucket, kind, id, number, effective_at, written_at, body) "
    "VALUES (?, ?, ?, ?, ?, ?, ?) IF NOT EXISTS"
)


class VersionRow(NamedTuple):
    """`id`: of a store its id, of a rule `tenant/id`. `body`: JSON; empty: it is no more."""

    kind: Kind
    id: str
    number: int
    effective_at: datetime
    body: str


class RuleVersions:
    """The table of versions. Errors are the driver's."""

    def __init__(
        self, session: "Session", delay: timedelta, now: Callable[[], datetime] = lambda: datetime.now(UTC)
    ) -> None:
        """`session` uses Galatea's keyspace. `delay`: how long after it is written a version begins to hold."""
        self._session, self._now = session, now
        self.delay = delay

    def read(self) -> Iterator[VersionRow]:
        """Every version there is, of each rule and store the newest first."""
        for row in self._session.execute(self._session.prepare(_READ), (_BUCKET,)):
            yield _row(row)

    def newest(self, kind: Kind, id_: str) -> VersionRow | None:
        """The last that was written, whether it holds already or not."""
        found = self._session.execute(self._session.prepare(_NEWEST), (_BUCKET, kind, id_)).one()
        return _row(found) if found else None

    def add(self, kind: Kind, id_: str, body: str) -> VersionRow:
        """Say it anew, unless that is what is said already. `body` empty: it is no more."""
        while True:
            before = self.newest(kind, id_)
            if before is not None and before.body == body:
                return before
            now = self._now()
            earliest = now + self.delay
            at = earliest + (_BEGINNING - earliest) % GRID
            number = before.number + 1 if before else 1
            version = VersionRow(kind, id_, number, max(at, before.effective_at) if before else at, body)
            asked = (_BUCKET, kind, id_, number, version.effective_at, now, body)
            if self._session.execute(self._session.prepare(_ADD), asked).one().applied:
                return version


def _row(row: "VersionRow") -> VersionRow:
    return VersionRow(row.kind, row.id, row.number, row.effective_at.replace(tzinfo=UTC), row.body)
