"""Versions of alert rules and stores, each with the time from which it is in effect. Versions are only ever added.

A version applies to records received from `effective_at` on, which lies a little after it is written, so that every
reader knows it by then. Two writers of the same number are distinguished by a compare-and-set.
"""

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Literal, NamedTuple

from cassandra import ConsistencyLevel
from cassandra.query import BatchStatement

from master_dataset.cassandra_tables import CASSANDRA_UNAVAILABLE
from master_dataset.parsing.results import UNIX_EPOCH
from master_dataset.registry.one_write import one_write

if TYPE_CHECKING:
    from cassandra.cluster import Session
    from cassandra.query import PreparedStatement

Kind = Literal["rule", "store"]
GRID = timedelta(seconds=1)
_BUCKET = 0
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
    """One version. `id`: of a store its id, of a rule `tenant/id`. `body`: JSON; empty if it was removed."""

    kind: Kind
    id: str
    number: int
    effective_at: datetime
    body: str


class RuleEdit(NamedTuple):
    """A new version of a rule. `body`: empty to remove it. `after`: the number of the version before; 0 for none."""

    id: str
    body: str
    after: int


class RuleVersions:
    """The table `alert_versions`. All methods raise the driver's errors."""

    def __init__(
        self, session: "Session", delay: timedelta, now: Callable[[], datetime] = lambda: datetime.now(UTC)
    ) -> None:
        """`session` uses Galatea's keyspace. `delay`: how long after it is written a version takes effect."""
        self._session, self._now = session, now
        self.delay = delay

    def read(self) -> Iterator[VersionRow]:
        """Yield every version, those of one rule or store newest first.

        A serial read settles a write whose answer was lost: it is done or undone, and cannot appear later.
        """
        read = self._session.prepare(_READ)
        read.consistency_level = ConsistencyLevel.SERIAL
        for row in self._session.execute(read, (_BUCKET,)):
            yield _row(row)

    def rules(self, tenant: str) -> Sequence[VersionRow]:
        """Return the newest version of every rule that the tenant has, or had."""
        bounds = (f"{tenant}/", f"{tenant}0")  # `0` follows `/`
        found = self._session.execute(self._session.prepare(_NEWEST_OF_EACH), (_BUCKET, "rule", *bounds))
        return [row for row in map(_row, found) if row.id.rpartition("/")[0] == tenant]  # a tenant may have a `/`, too

    def all_of(self, kind: Kind, id_: str) -> Sequence[VersionRow]:
        """Return every version of a rule or store, newest first."""
        return [_row(row) for row in self._session.execute(self._session.prepare(_ALL_OF), (_BUCKET, kind, id_))]

    def newest(self, kind: Kind, id_: str) -> VersionRow | None:
        """Return the last version, whether it is in effect or not; None if there is none."""
        found = self._session.execute(self._session.prepare(_NEWEST), (_BUCKET, kind, id_)).one()
        return _row(found) if found else None

    def add(self, kind: Kind, id_: str, body: str) -> VersionRow:
        """Add a version, unless the newest one has this body. An empty body removes the rule or store."""
        while True:
            before = self.newest(kind, id_)
            if before is not None and before.body == body:
                return before
            if added := self._append(kind, id_, body, before):
                return added

    def follow(self, id_: str, body: str, after: int) -> VersionRow | None:
        """Add a version of a rule behind number `after` (0: the first one). None if the rule has moved on."""
        before = self.newest("rule", id_)
        if (before.number if before else 0) != after:
            return None
        return self._append("rule", id_, body, before)

    def follow_all(self, changes: Sequence[RuleEdit]) -> Sequence[VersionRow] | None:
        """Add a version of each of these rules, as `follow` does: of all, or None if one of them has moved on.

        All versions are in one partition, so that one compare-and-set writes them together. BadFileError: they are too
        large for that; none is written.
        """
        before = [self.newest("rule", edit.id) for edit in changes]
        if any((row.number if row else 0) != edit.after for row, edit in zip(before, changes, strict=True)):
            return None
        added = [self._next("rule", edit.id, edit.body, row) for row, edit in zip(before, changes, strict=True)]
        with one_write(added):
            return added if self._write(added) else None

    def effective_at(self, now: datetime | None = None) -> datetime:
        """Return when a version takes effect that is written now."""
        earliest = (now or self._now()) + self.delay
        return earliest + (UNIX_EPOCH - earliest) % GRID

    def _append(self, kind: Kind, id_: str, body: str, before: VersionRow | None) -> VersionRow | None:
        version = self._next(kind, id_, body, before)
        return version if self._write([version]) else None

    def _next(self, kind: Kind, id_: str, body: str, before: VersionRow | None) -> VersionRow:
        at = self.effective_at()
        number = before.number + 1 if before else 1
        return VersionRow(kind, id_, number, max(at, before.effective_at) if before else at, body)

    def _write(self, versions: Sequence[VersionRow]) -> bool:
        """Write versions unless one of their numbers is taken; whether all of them were written, or none."""
        now = self._now()
        rows = [(_BUCKET, each.kind, each.id, each.number, each.effective_at, now, each.body) for each in versions]
        add = self._session.prepare(_ADD)
        try:
            return bool(self._session.execute(*_together(add, rows)).one().applied)
        except CASSANDRA_UNAVAILABLE:  # whether it was written is unknown; a serial read settles it
            newest, [first, *_] = self._session.prepare(_NEWEST), versions
            newest.consistency_level = ConsistencyLevel.SERIAL
            found = self._session.execute(newest, (_BUCKET, first.kind, first.id)).one()
            return found is not None and _row(found) == first


def _together(add: "PreparedStatement", rows: Sequence[tuple[object, ...]]) -> tuple[object, ...]:
    """What to execute: a batch if there are several."""
    if len(rows) == 1:
        return add, rows[0]
    batch = BatchStatement()
    for row in rows:
        batch.add(add, row)
    return (batch,)


def _row(row: "VersionRow") -> VersionRow:
    return VersionRow(row.kind, row.id, row.number, row.effective_at.replace(tzinfo=UTC), row.body)
