"""What rules and stores say, and from when on: versions, only ever added, never changed.

A version holds for records received from `effective_at` on, which lies a while behind the moment of writing: by then
everybody has read it. Two writers that want the same number are told apart by a compare-and-set.
"""

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Literal, NamedTuple

from cassandra import ConsistencyLevel

from master_dataset.cassandra_tables import CASSANDRA_UNAVAILABLE

if TYPE_CHECKING:
    from cassandra.cluster import Session

Kind = Literal["rule", "store"]
GRID = timedelta(seconds=1)
_BUCKET = 0
_BEGINNING = datetime(1970, 1, 1, tzinfo=UTC)
_COLUMNS = "kind, id, number, effective_at, body"
_READ = f"SELECT {_COLUMNS} FROM alert_versions WHERE bucket = ?"  # noqa: S608 - our own columns
_ALL_OF = f"{_READ} AND kind = ? AND id = ?"
_NEWEST = f"{_ALL_OF} LIMIT 1"
_NEWEST_OF_EACH = f"{_READ} AND kind = ? AND id >= ? AND id < ? GROUP BY bucket, kind, id"
"""The first row of each, which has the greatest number."""
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
        """Every version there is, of each rule and store the newest first.

        Asked serially: a write whose answer was lost is done or undone by then, and never appears later.
        """
        read = self._session.prepare(_READ)
        read.consistency_level = ConsistencyLevel.SERIAL
        for row in self._session.execute(read, (_BUCKET,)):
            yield _row(row)

    def rules(self, tenant: str) -> Sequence[VersionRow]:
        """The newest version of every rule that the tenant has, or had."""
        bounds = (f"{tenant}/", f"{tenant}0")  # `0` follows `/`
        found = self._session.execute(self._session.prepare(_NEWEST_OF_EACH), (_BUCKET, "rule", *bounds))
        return [row for row in map(_row, found) if row.id.rpartition("/")[0] == tenant]  # a tenant may have a `/`, too

    def all_of(self, kind: Kind, id_: str) -> Sequence[VersionRow]:
        """Every version, the newest first."""
        return [_row(row) for row in self._session.execute(self._session.prepare(_ALL_OF), (_BUCKET, kind, id_))]

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
            if added := self._follow(kind, id_, body, before):
                return added

    def follow(self, id_: str, body: str, after: int) -> VersionRow | None:
        """A rule's version behind the one of that number, 0: its first; None if another one stands there by now."""
        before = self.newest("rule", id_)
        if (before.number if before else 0) != after:
            return None
        return self._follow("rule", id_, body, before)

    def effective_at(self, now: datetime | None = None) -> datetime:
        """From when on a version holds that is written now."""
        earliest = (now or self._now()) + self.delay
        return earliest + (_BEGINNING - earliest) % GRID

    def _follow(self, kind: Kind, id_: str, body: str, before: VersionRow | None) -> VersionRow | None:
        now = self._now()
        at = self.effective_at(now)
        number = before.number + 1 if before else 1
        version = VersionRow(kind, id_, number, max(at, before.effective_at) if before else at, body)
        asked = (_BUCKET, kind, id_, number, version.effective_at, now, body)
        add = self._session.prepare(_ADD)
        try:
            is_ours = self._session.execute(add, asked).one().applied
        except CASSANDRA_UNAVAILABLE:  # whether it was written is not known: to ask serially settles it
            newest = self._session.prepare(_NEWEST)
            newest.consistency_level = ConsistencyLevel.SERIAL
            found = self._session.execute(newest, (_BUCKET, kind, id_)).one()
            is_ours = found is not None and _row(found) == version
        return version if is_ours else None


def _row(row: "VersionRow") -> VersionRow:
    return VersionRow(row.kind, row.id, row.number, row.effective_at.replace(tzinfo=UTC), row.body)
