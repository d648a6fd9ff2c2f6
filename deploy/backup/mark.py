"""The note in Cassandra that a backup is being restored: until that is done, nothing else may work with the tables."""

from typing import TYPE_CHECKING

from cassandra import ConsistencyLevel

from master_dataset.errors import OperatorError

if TYPE_CHECKING:
    from cassandra.cluster import Session

_NAME = "restore"
_BEGIN = "INSERT INTO leases (name, holder) VALUES (?, ?) IF NOT EXISTS"
_END = "DELETE FROM leases WHERE name = ? IF holder = ?"
_READ = "SELECT holder FROM leases WHERE name = ?"


class RestoreMark:
    """A lease that does not expire. Its holder is the id of the backup."""

    def __init__(self, session: "Session") -> None:
        """`session` uses Galatea's keyspace."""
        self._session = session

    def read(self) -> str | None:
        """Return the id of the backup; None if nothing is being restored."""
        read = self._session.prepare(_READ)
        read.consistency_level = ConsistencyLevel.SERIAL
        row = self._session.execute(read, (_NAME,)).one()
        return row.holder if row else None

    def begin(self, backup: str) -> bool:
        """Write it. False if there is one already."""
        return bool(self._session.execute(self._session.prepare(_BEGIN), (_NAME, backup)).one().applied)

    def end(self, backup: str) -> None:
        """Remove that of this backup."""
        self._session.execute(self._session.prepare(_END), (_NAME, backup))


def refuse_unfinished_restore(session: "Session") -> None:
    """Raise OperatorError while a backup is being restored: half of the registry would be taken for all of it."""
    if (backup := RestoreMark(session).read()) is not None:
        message = f"a restore of the backup `{backup}` is running or was interrupted"
        raise OperatorError(message, do="let its `galatea restore` finish, or run it again; then start this again")
