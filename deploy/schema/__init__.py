"""The tables in Cassandra, as numbered CQL files that are applied once each, in order, and never edited afterwards."""

import hashlib
import os
import re
import socket
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Self
from uuid import UUID, uuid5

from cassandra import DriverException

from master_dataset.errors import CassandraUnavailableError, OperatorError

if TYPE_CHECKING:
    from cassandra.cluster import Cluster, Session

_DEFINES = ("CREATE ", "ALTER ", "DROP ")
_AGREEMENT_SECONDS = 60
_MIGRATIONS, _IDS = "migrations", UUID("6f1d0a54-5b9e-4e5c-9a0c-3d6f5b1f7a10")
_LOCK, _LOCK_SECONDS, _POLL_SECONDS = "lock", 300, 0.5
_USABLE_SINCE = "usable_since"
USABLE_SINCE = "034_former_terms.cql"
"""Releases that know this file can work with the tables of this one, so one can return to them.

Whoever adds a file that earlier releases cannot work with names it here.
"""
_ADDED_COLUMN = re.compile(r"(ALTER TABLE \w+ ADD) (?!IF NOT EXISTS )")


def pending(session: "Session", keyspace: str) -> Sequence[Path]:
    """Return the files that have not been applied to a keyspace, in order; all of them if it does not exist.

    Raises:
        OperatorError: A file that was applied has been edited since, or a newer release has applied one.
        CassandraUnavailableError: Nodes do not agree on the tables.
    """
    return _Applied.read(session, keyspace).pending()


def to_apply(session: "Session", keyspace: str) -> Sequence[Path]:
    """Return the files that `migrate` would apply: none if a newer release has been here whose tables this one can use.

    Raises:
        OperatorError: A file that was applied has been edited since, or this release cannot use the tables.
        CassandraUnavailableError: Nodes do not agree on the tables.
    """
    applied = _Applied.read(session, keyspace)
    return [] if applied.newer and applied.is_usable else applied.pending()


class _Applied(NamedTuple):
    """What was done to a keyspace. `checksums`: of the files that were applied. `usable_since`: as USABLE_SINCE."""

    keyspace: str
    checksums: Mapping[str, str]
    usable_since: str

    @classmethod
    def read(cls, session: "Session", keyspace: str) -> Self:
        _agree(session.cluster, keyspace)
        found = session.cluster.metadata.keyspaces.get(keyspace)
        if found is None or _MIGRATIONS not in found.tables:
            return cls(keyspace, {}, "")
        rows = session.execute(f"SELECT name, checksum FROM {keyspace}.{_MIGRATIONS}")  # noqa: S608 - our own names
        checksums = {row.name: row.checksum for row in rows}
        checksums.pop(_LOCK, None)
        return cls(keyspace, checksums, checksums.pop(_USABLE_SINCE, ""))

    @property
    def newer(self) -> Sequence[str]:
        """Files that this release does not know."""
        return sorted(self.checksums.keys() - {file.name for file in _files()})

    @property
    def is_usable(self) -> bool:
        """Whether the newest release that was here says that this one can use its tables."""
        return self.usable_since in {file.name for file in _files()}

    def pending(self) -> Sequence[Path]:
        files = _files()
        for name in self.newer:
            of = f"keyspace `{self.keyspace}`"
            message = f"a newer release has applied `{name}` to {of}, which this one does not know"
            raise OperatorError(message, do="use that release, or a newer one")
        self._refuse_edited(files)
        return [file for file in files if file.name not in self.checksums]

    def _refuse_edited(self, files: Sequence[Path]) -> None:
        for file in files:
            if self.checksums.get(file.name, checksum := _checksum(file)) != checksum:
                message = f"`{file.name}` was applied to keyspace `{self.keyspace}` with another content"
                raise OperatorError(message, do="restore the file and put the change into a new one")


def newest() -> str:
    """Return the name of the last file of this release. They are in order by their names."""
    return _files()[-1].name


class RunningMigration(NamedTuple):
    """Who holds the lock of migrations, and for how many seconds at most after its last step."""

    holder: str
    seconds: int


def running_migration(session: "Session", keyspace: str) -> RunningMigration | None:
    """Return the process that is changing the tables, or was killed while it did; None if there is none."""
    found = session.execute(
        f"SELECT checksum, TTL(checksum) AS seconds FROM {keyspace}.{_MIGRATIONS} WHERE name = %s",  # noqa: S608 - our own names
        (_LOCK,),
    ).one()
    return RunningMigration(found.checksum, found.seconds) if found and found.checksum else None


def migrate(
    session: "Session",
    keyspace: str,
    replication: int | Mapping[str, int] = 1,
) -> None:
    """Bring a keyspace to the newest schema. A second process waits for the first.

    Args:
        session: A session for this alone: it learns no tables by itself.
        keyspace: Its name.
        replication: Copies of each row of a new keyspace: their number, or those of each data centre.

    Raises:
        OperatorError: As `to_apply`.
        CassandraUnavailableError: Another process takes too long, or nodes do not agree on the tables.
    """
    definition = _Definition(session, keyspace)
    definition.change(f"CREATE KEYSPACE IF NOT EXISTS {keyspace} WITH replication = {_strategy(replication)}")
    # With an id of its own, each of two that create it at the same time creates the same table.
    definition.change(
        f"CREATE TABLE IF NOT EXISTS {keyspace}.{_MIGRATIONS} (name text PRIMARY KEY, checksum text) "
        f"WITH id = {uuid5(_IDS, keyspace)}"
    )
    definition.agree()
    session.set_keyspace(keyspace)
    with _alone(session) as still_alone:
        record = session.prepare("INSERT INTO migrations (name, checksum) VALUES (?, ?)")
        files = to_apply(session, keyspace)
        if files:  # also in a new keyspace, and before older releases could meet the first of them
            session.execute(record, (_USABLE_SINCE, USABLE_SINCE))
        for file in files:
            still_alone()
            for statement in _statements(file.read_text()):
                definition.change(statement)
            definition.agree()
            session.execute(record, (file.name, _checksum(file)))


def _files() -> Sequence[Path]:
    return sorted(Path(__file__).parent.glob("*.cql"))


def _checksum(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


@contextmanager
def _alone(session: "Session") -> Iterator[Callable[[], None]]:
    """Wait for the lock, and hold it; what is yielded prolongs it. It ends by itself if this process does not."""
    holder = f"{socket.gethostname()} {os.getpid()}"
    deadline = time.monotonic() + 2 * _LOCK_SECONDS
    lock = f"INSERT INTO migrations (name, checksum) VALUES (%s, %s) IF NOT EXISTS USING TTL {_LOCK_SECONDS}"  # noqa: S608 - our own number
    prolong = f"UPDATE migrations USING TTL {_LOCK_SECONDS} SET checksum = %s WHERE name = %s IF checksum = %s"  # noqa: S608 - likewise

    def still_alone() -> None:
        if not session.execute(prolong, (holder, _LOCK, holder)).one().applied:
            message = f"a file took more than {_LOCK_SECONDS} s, and another process may be changing the tables now"
            raise CassandraUnavailableError(message, do="galatea migrate")

    while not (found := session.execute(lock, (_LOCK, holder)).one()).applied:
        if time.monotonic() > deadline:
            message = f"another process has been changing the tables for too long: {found.checksum}"
            raise CassandraUnavailableError(message, do="look what it does, then: galatea migrate")
        time.sleep(_POLL_SECONDS)
    try:
        yield still_alone
    finally:
        session.execute("DELETE FROM migrations WHERE name = %s IF checksum = %s", (_LOCK, holder))


def _strategy(replication: int | Mapping[str, int]) -> str:
    """Return the replication of a keyspace as CQL."""
    if isinstance(replication, int):
        return f"{{'class': 'SimpleStrategy', 'replication_factor': {replication}}}"
    copies = "".join(f", '{name}': {number}" for name, number in replication.items())
    return f"{{'class': 'NetworkTopologyStrategy'{copies}}}"


class _Definition:
    """The definition of the tables, changed by one node; the others are waited for only when rows are touched."""

    def __init__(self, session: "Session", keyspace: str) -> None:
        self._session, self._cluster, self._keyspace = session, session.cluster, keyspace
        self._cluster.schema_metadata_enabled = False
        self._cluster.max_schema_agreement_wait = 0
        self._node = self._cluster.get_control_connection_host()

    def change(self, statement: str) -> None:
        if not statement.startswith(_DEFINES):
            self.agree()
        # Columns may be there, if an earlier process was killed before it noted that the file was applied.
        self._session.execute(_ADDED_COLUMN.sub(r"\1 IF NOT EXISTS ", statement), host=self._node)

    def agree(self) -> None:
        _agree(self._cluster, self._keyspace)


def _agree(cluster: "Cluster", keyspace: str) -> None:
    """Until every living node knows what was changed. CassandraUnavailableError if one does not in time.

    Only what is asked for here is read then: to read the definitions of all tables takes seconds.
    """
    try:
        cluster.refresh_keyspace_metadata(keyspace, _AGREEMENT_SECONDS)
        cluster.refresh_table_metadata(keyspace, _MIGRATIONS, 0)
    except DriverException as error:
        message = f"Cassandra's nodes do not agree on the tables after {_AGREEMENT_SECONDS} s"
        raise CassandraUnavailableError(message, do="galatea status") from error


def _statements(text: str) -> list[str]:
    lines = (line for line in text.splitlines() if not line.lstrip().startswith("--"))
    return [statement.strip() for statement in "\n".join(lines).split(";") if statement.strip()]
