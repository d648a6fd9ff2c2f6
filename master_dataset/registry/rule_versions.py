"""Versions of alert rules and stores, each with the time from which it is in effect. Versions are only ever added.

A version applies to records received from `effective_at` on, which lies a little after it is written, so that every
reader knows it by then. Two writers of the same number are distinguished by a compare-and-set.

A writer may be suspended between choosing that time and writing, or Cassandra may execute the write late. The version
would then be in effect for records that were already evaluated without it. So a write is void if it is late:

    put down a permit, which Cassandra forgets after some seconds (TTL) -> choose `effective_at`
        -> add the versions and remove the permit, by one compare-and-set: if the permit is still there

A permit is a row of the same partition, under a token that is used once. So the second step is executed before the
permit expires, or never, and nobody has to confirm or reject anything: a reader finds versions that are valid, and no
others. With p, the life of a permit, and s, the skew that clocks may have:

- The time is chosen when the permit is there. So the permit expires no later than p + s after it is chosen, where s is
  for the clocks of two nodes of Cassandra: one that stamped the permit, one that finds it expired.
- A reading that does not have a version began before the version was added, as it is serial: a write that is under way
  is completed by it, or has to begin again. By the reader's clock it began less than p + 2 s after the time was chosen.
- So no version that it does not have is in effect before `delay` - p - 2 s after it began (`RuleVersions.horizon`).

Whoever is killed between the steps leaves a permit behind, which expires and gives nobody else a right. If the outcome
of a step is unknown, a serial read settles it; a write that was not executed by then is void once there is another
permit of its writer. Readers of a former release, which count on half a delay, are right if the delay is at least
2 p + 3 s: 35 seconds where it is 60. They take a permit for a removed rule without name that is never in effect.

It is assumed that no node of Cassandra is suspended for as long as that within the second statement, between looking at
its clock and choosing the ballot, or with both statements of a writer whose driver has sent the first one again.
"""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Literal, NamedTuple
from uuid import uuid4

from cassandra import ConsistencyLevel
from cassandra.query import BatchStatement

from master_dataset.cassandra_tables import CASSANDRA_UNAVAILABLE
from master_dataset.errors import CassandraUnavailableError
from master_dataset.parsing.results import UNIX_EPOCH
from master_dataset.registry.one_write import one_write

if TYPE_CHECKING:
    from cassandra.cluster import Session

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
_PERMIT = "permit"
"""The kind of a permit. Its id is that of its writer, its body the token."""
_OF_PERMIT = f"WHERE bucket = {_BUCKET} AND kind = '{_PERMIT}' AND id = ? AND number = 0"
_ALLOW = f"UPDATE alert_versions USING TTL ? SET effective_at = ?, body = ? {_OF_PERMIT} IF body != ?"  # noqa: S608 - our own names
"""By compare-and-set, as a permit is removed by one: only then do their timestamps have an order."""
_USE = f"DELETE FROM alert_versions {_OF_PERMIT} IF body = ?"  # noqa: S608 - likewise
_NEVER = datetime(9999, 1, 1, tzinfo=UTC)
_SHORTEST_PERMIT, _LONGEST_PERMIT = 2, 10
"""Seconds. Cassandra counts whole ones, so that one of a second could expire at once."""
_TRIES = 3


class VersionRow(NamedTuple):
    """One version. `id`: of a store its id, of a rule `tenant/id`. `body`: JSON; empty if it was removed."""

    kind: Kind
    id: str
    number: int
    effective_at: datetime
    body: str


class _Draft(NamedTuple):
    """A version that has no time yet. `before`: the version that it follows."""

    kind: Kind
    id: str
    body: str
    before: VersionRow | None

    @property
    def number(self) -> int:
        return self.before.number + 1 if self.before else 1

    def version(self, at: datetime) -> VersionRow:
        """It is not in effect before the version that it follows."""
        at = max(at, self.before.effective_at) if self.before else at
        return VersionRow(self.kind, self.id, self.number, at, self.body)


class RuleEdit(NamedTuple):
    """A new version of a rule. `body`: empty to remove it. `after`: the number of the version before; 0 for none."""

    id: str
    body: str
    after: int


class RuleVersions:
    """The table `alert_versions`. Thread-safe. All methods raise the driver's errors.

    Those that add versions raise CassandraUnavailableError, too: again and again, a write came too late.
    """

    def __init__(
        self, session: "Session", delay: timedelta, now: Callable[[], datetime] = lambda: datetime.now(UTC)
    ) -> None:
        """`session` uses Galatea's keyspace. `delay`: how long after it is written a version takes effect."""
        self._session, self._now = session, now
        self.delay = delay
        self._permitted = max(_SHORTEST_PERMIT, min(_LONGEST_PERMIT, int(delay.total_seconds()) // 4))
        self._writer = uuid4().hex
        self._one_write = threading.Lock()  # a writer has one permit at a time

    def horizon(self, skew: timedelta) -> timedelta:
        """Return how long after a reading began no version is in effect that it does not have.

        Half of the delay at most, because writers of a former release may be as late as that. Negative if the delay is
        too short for the skew: a reader then has to wait.
        """
        return min((self.delay - skew) / 2, self.delay - timedelta(seconds=self._permitted) - 2 * skew)

    def read(self) -> Iterator[VersionRow]:
        """Yield every version, those of one rule or store newest first.

        A serial read settles a write whose answer was lost: it is done or undone, and cannot appear later.
        """
        read = self._session.prepare(_READ)
        read.consistency_level = ConsistencyLevel.SERIAL
        for row in self._session.execute(read, (_BUCKET,)):
            if row.kind != _PERMIT:
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
            if added := self._write([_Draft(kind, id_, body, before)]):
                return added[0]

    def follow(self, id_: str, body: str, after: int) -> VersionRow | None:
        """Add a version of a rule behind number `after` (0: the first one). None if the rule has moved on."""
        before = self.newest("rule", id_)
        if (before.number if before else 0) != after:
            return None
        added = self._write([_Draft("rule", id_, body, before)])
        return added[0] if added else None

    def follow_all(self, changes: Sequence[RuleEdit]) -> Sequence[VersionRow] | None:
        """Add a version of each of these rules, as `follow` does: of all, or None if one of them has moved on.

        All versions are in one partition, so that one compare-and-set writes them together. BadFileError: they are too
        large for that; none is written.
        """
        before = [self.newest("rule", edit.id) for edit in changes]
        if any((row.number if row else 0) != edit.after for row, edit in zip(before, changes, strict=True)):
            return None
        with one_write(changes):
            return self._write(
                [_Draft("rule", edit.id, edit.body, row) for row, edit in zip(before, changes, strict=True)]
            )

    def effective_at(self, now: datetime | None = None) -> datetime:
        """Return when a version takes effect that is written now."""
        earliest = (now or self._now()) + self.delay
        return earliest + (UNIX_EPOCH - earliest) % GRID

    def _write(self, drafts: Sequence[_Draft]) -> Sequence[VersionRow] | None:
        """Write a version of each draft: of all, or of none if one of their numbers is taken (None)."""
        for _ in range(_TRIES):
            with self._one_write:
                token = self._allow()
                at = self.effective_at()  # not before the permit is there
                versions = [draft.version(at) for draft in drafts]
                if self._commit(token, versions):
                    return versions
            newest = [self.newest(draft.kind, draft.id) for draft in drafts]
            if any(row and row.number >= draft.number for row, draft in zip(newest, drafts, strict=True)):
                return None
        message = f"A version of a rule was not written within the {self._permitted} seconds that it may take."
        raise CassandraUnavailableError(message, do="Try again; `galatea status` says what is wrong.")

    def _allow(self) -> str:
        """Put down a permit in place of the former one; returns its token."""
        token = uuid4().hex
        self._session.execute(self._session.prepare(_ALLOW), (self._permitted, _NEVER, token, self._writer, token))
        return token

    def _commit(self, token: str, versions: Sequence[VersionRow]) -> bool:
        """Use the permit to add versions; whether all were added, or none."""
        batch, add, now = BatchStatement(), self._session.prepare(_ADD), self._now()
        batch.add(self._session.prepare(_USE), (self._writer, token))
        for each in versions:
            batch.add(add, (_BUCKET, each.kind, each.id, each.number, each.effective_at, now, each.body))
        with suppress(*CASSANDRA_UNAVAILABLE):  # whether they were added is unknown; a serial read settles it
            if self._session.execute(batch).one().applied:
                return True
        # If the driver sent the batch again, the first one may have used the permit.
        newest, [first, *_] = self._session.prepare(_NEWEST), versions
        newest.consistency_level = ConsistencyLevel.SERIAL
        found = self._session.execute(newest, (_BUCKET, first.kind, first.id)).one()
        return found is not None and _row(found) == first


def _row(row: "VersionRow") -> VersionRow:
    return VersionRow(row.kind, row.id, row.number, row.effective_at.replace(tzinfo=UTC), row.body)
