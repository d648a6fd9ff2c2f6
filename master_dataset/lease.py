"""The right to do something alone, settled in Cassandra and lost when it is not renewed in time."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING
from uuid import uuid4

from master_dataset.errors import UpkeepRuns

if TYPE_CHECKING:
    from cassandra.cluster import Session

SECONDS = 900
"""How long a lease outlives its holder: longer than anything that is done between two renewals."""
_TAKE = f"INSERT INTO leases (name, holder) VALUES (?, ?) IF NOT EXISTS USING TTL {SECONDS}"  # noqa: S608 - our own number
_RENEW = f"UPDATE leases USING TTL {SECONDS} SET holder = ? WHERE name = ? IF holder = ?"  # noqa: S608 - likewise
_GIVE_BACK = "DELETE FROM leases WHERE name = ? IF holder = ?"


class Lease:
    """A lease that is held. `renew` before each step that nobody else may take."""

    def __init__(self, session: "Session", name: str) -> None:
        """`session` uses Galatea's keyspace."""
        self._session, self._name, self._holder = session, name, str(uuid4())

    def take(self) -> None:
        """UpkeepRuns if somebody else holds it."""
        self._settle(_TAKE, (self._name, self._holder))

    def renew(self) -> None:
        """UpkeepRuns if it was lost and somebody else may have taken it."""
        self._settle(_RENEW, (self._holder, self._name, self._holder))

    def give_back(self) -> None:
        """Another may take it at once."""
        self._session.execute(self._session.prepare(_GIVE_BACK), (self._name, self._holder))

    def _settle(self, statement: str, values: tuple[str, ...]) -> None:
        row = self._session.execute(self._session.prepare(statement), values).one()
        # A second try of the driver's finds what its first one has done.
        if not row.applied and getattr(row, "holder", None) != self._holder:
            message = f"another `{self._name}` runs, or was killed less than {SECONDS // 60} minutes ago"
            raise UpkeepRuns(message, do="wait for it, then the same again")


@contextmanager
def leased(session: "Session", name: str) -> Iterator[Lease]:
    """Hold it inside. UpkeepRuns if somebody else does."""
    lease = Lease(session, name)
    lease.take()
    try:
        yield lease
    finally:
        lease.give_back()
