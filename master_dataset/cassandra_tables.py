"""Small Cassandra tables that every layer shares: leases, alarms and the positions of the archive."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from cassandra import OperationTimedOut, RequestExecutionException, Unauthorized, Unavailable
from cassandra.cluster import NoHostAvailable
from cassandra.protocol import RequestExecutionException as UntranslatedExecutionException
from cassandra.protocol import ServerError

from master_dataset.errors import LeaseHeldError

if TYPE_CHECKING:
    from cassandra.cluster import Session

SECONDS = 900
"""How long a lease stays valid without a renewal: longer than any step between two renewals."""
_TAKE = "INSERT INTO leases (name, holder) VALUES (?, ?) IF NOT EXISTS USING TTL ?"
_RENEW = "UPDATE leases USING TTL ? SET holder = ? WHERE name = ? IF holder = ?"
_RELEASE = "DELETE FROM leases WHERE name = ? IF holder = ?"
_SHOW = "INSERT INTO leases (name, holder) VALUES (?, ?) USING TTL ?"
_HIDE = "DELETE FROM leases WHERE name = ?"
_NAMES = "SELECT name FROM leases"
_LISTING_SECONDS = 2.0
"""Timeout of requests for leases that last only a few seconds."""


class Lease:
    """The exclusive right to do something.

    It is lost unless renewed in time: call `renew` before each exclusive step.
    """

    def __init__(self, session: "Session", name: str, seconds: int = SECONDS, timeout: float | None = None) -> None:
        """Create it, not taken yet.

        Args:
            session: Uses Galatea's keyspace.
            name: Of what is to be done.
            seconds: How long the lease stays valid without a renewal.
            timeout: Seconds until a request counts as not answered; None: those of the session.
        """
        self._session, self._name, self._holder, self._seconds = session, name, str(uuid4()), seconds
        self._timeout = session.default_timeout if timeout is None else timeout
        self._take, self._renew, self._release = (session.prepare(each) for each in (_TAKE, _RENEW, _RELEASE))

    def take(self) -> None:
        """Acquire it. LeaseHeldError if another process holds it."""
        self._execute(self._take, (self._name, self._holder, self._seconds))

    def renew(self, seconds: int | None = None) -> None:
        """Extend it, by its usual time or by that many seconds. LeaseHeldError if it was lost: another may hold it."""
        self._execute(self._renew, (seconds or self._seconds, self._holder, self._name, self._holder))

    def release(self) -> None:
        """Release it, so that another process can acquire it immediately."""
        self._session.execute(self._release, (self._name, self._holder), timeout=self._timeout)

    def _execute(self, statement: Any, values: tuple[str | int, ...]) -> None:  # noqa: ANN401 - the driver's own
        row = self._session.execute(statement, values, timeout=self._timeout).one()
        # If the driver retried the request, the lease may already be held by the first attempt.
        if not row.applied and getattr(row, "holder", None) != self._holder:
            held = f"another process holds the lease `{self._name}`"
            message = f"{held}, or was killed less than {self._seconds} seconds ago"
            raise LeaseHeldError(message, do="wait for it to end, then run the command again")


def has_lease(take_or_renew: Callable[[], None]) -> bool:
    """Return whether this process has a lease after this call of `take` or `renew`."""
    try:
        take_or_renew()
    except LeaseHeldError:
        return False
    return True


class LeaseTable:
    """The table `leases`: who holds one, and which processes take part in shared work."""

    def __init__(self, session: "Session") -> None:
        """`session` uses Galatea's keyspace."""
        self._session = session
        self._show, self._hide, self._names = (session.prepare(each) for each in (_SHOW, _HIDE, _NAMES))

    def lease(self, name: str, seconds: int) -> Lease:
        """Return a lease, not taken yet."""
        return Lease(self._session, name, seconds, timeout=_LISTING_SECONDS)

    def show(self, name: str, seconds: int) -> None:
        """List this name for that many seconds. Only one process may use it, and not as the name of a lease."""
        self._session.execute(self._show, (name, name, seconds), timeout=_LISTING_SECONDS)

    def hide(self, name: str) -> None:
        """List it no longer."""
        self._session.execute(self._hide, (name,), timeout=_LISTING_SECONDS)

    def names(self) -> Sequence[str]:
        """Return the names that are listed, and those of the leases that somebody holds."""
        return [row.name for row in self._session.execute(self._names, timeout=_LISTING_SECONDS)]


@contextmanager
def leased(session: "Session", name: str, seconds: int = SECONDS) -> Iterator[Lease]:
    """Hold a lease inside the block. LeaseHeldError if another process holds it."""
    lease = Lease(session, name, seconds)
    lease.take()
    try:
        yield lease
    finally:
        lease.release()


CLOCK_STEPPED_BACK = "clock_stepped_back"
ALERTS_UNEXPLAINED = "alerts_unexplained"
ALERTS_MISROUTED = "alerts_miskeyed"
LATE_EVENTS = "late_events"
"""No alarm by itself: the start of an epoch in which events were received that the speed layer leaves to batch."""
LATE_EVENTS_LEFT = "late_events_left"
"""No alarm either: no prompt correction follows the publication `place`, for the reason `detail`."""
LATE_EVENTS_FAILED = "late_events_failed"
"""A prompt correction after the publication `place` has failed."""


_MOST = 1000
"""Rows of one alarm that are read."""


class AlarmTable:
    """The table `alarms`: a row for each observation; rows expire after 30 days."""

    def __init__(self, session: "Session") -> None:
        """`session` uses Galatea's keyspace."""
        self._session = session
        self._insert = session.prepare("INSERT INTO alarms (name, noticed_at, place, detail) VALUES (?, ?, ?, ?)")
        self._since = session.prepare("SELECT noticed_at, place FROM alarms WHERE name = ? AND noticed_at >= ? LIMIT ?")

    def oldest(self, name: str, since: datetime) -> datetime | None:
        """Return when this was first noticed at that time or later, UTC; None if it was not."""
        row = self._session.execute(self._since, (name, since, 1)).one()
        return None if row is None else row.noticed_at.replace(tzinfo=UTC)

    def is_noticed(self, name: str, since: datetime, place: str) -> bool:
        """Return whether this was noticed in that place, at that time or later."""
        return any(row.place == place for row in self._session.execute(self._since, (name, since, _MOST)))

    def notice(self, name: str, at: datetime, place: str, detail: str) -> None:
        """Write an alarm. `place`: where it happened. `detail`: one sentence for the operator."""
        self._session.execute(self._insert, (name, at, place, detail))


CASSANDRA_UNAVAILABLE = (
    RequestExecutionException,
    UntranslatedExecutionException,
    OperationTimedOut,
    NoHostAvailable,
    ServerError,
)
"""What the driver raises if nodes fail or do not answer in time. The request may still have been executed.

Rejected requests (`InvalidRequest`, `SyntaxException`, `Unauthorized`) are not among them: they show a bug.
"""


def unread_rights(error: BaseException) -> Unavailable | None:
    """Return what happened if a node rejected a request only because it could not read the rights; else None.

    A node that the others do not reach says so with `Unauthorized`, as if a right were missing.
    """
    is_unread = isinstance(error, Unauthorized) and "Unable to perform authorization" in str(error)
    return Unavailable(str(error)) if is_unread else None


class ArchivePositions:
    """The table `archive_positions`: everything before `position` of a partition is in the master dataset."""

    def __init__(self, session: "Session") -> None:
        """`session` uses Galatea's keyspace."""
        self._session = session
        # The position is also the write timestamp, so the greatest one wins whatever the order of writes.
        self._insert = session.prepare(
            "INSERT INTO archive_positions (topic, partition, position, received_at) "
            "VALUES (?, ?, ?, ?) USING TIMESTAMP ?"
        )

    def record(self, topic: str, partition: int, position: int, received_at: datetime) -> None:
        """Everything before `position` is archived. A smaller position than the recorded one is ignored."""
        self._session.execute(self._insert, (topic, partition, position, received_at, position))

    def read(self) -> dict[str, dict[int, int]]:
        """Topic to partition to position."""
        found: dict[str, dict[int, int]] = {}
        for row in self._session.execute("SELECT topic, partition, position FROM archive_positions"):
            found.setdefault(row.topic, {})[row.partition] = row.position
        return found
