"""The tables in Cassandra, as numbered CQL files that are applied once each, in order, and never edited afterwards."""

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from cassandra import DriverException

from master_dataset.errors import CassandraUnavailableError, OperatorError

if TYPE_CHECKING:
    from cassandra.cluster import Session

_DEFINES = ("CREATE ", "ALTER ", "DROP ")
_AGREEMENT_SECONDS = 60


def migrate(session: "Session", keyspace: str, replication: int | Mapping[str, int] = 1) -> None:
    """Bring a keyspace to the newest schema. OperatorError if a file that was applied has been edited since.

    Args:
        session: A session for this alone: it learns no tables by itself.
        keyspace: Its name.
        replication: Copies of each row of a new keyspace: their number, or those of each data centre.
    """
    definition = _Definition(session)
    definition.change(f"CREATE KEYSPACE IF NOT EXISTS {keyspace} WITH replication = {_strategy(replication)}")
    definition.change(f"CREATE TABLE IF NOT EXISTS {keyspace}.migrations (name text PRIMARY KEY, checksum text)")
    definition.agree()
    session.set_keyspace(keyspace)
    applied = {row.name: row.checksum for row in session.execute("SELECT name, checksum FROM migrations")}
    record = session.prepare("INSERT INTO migrations (name, checksum) VALUES (?, ?)")
    for file in sorted(Path(__file__).parent.glob("*.cql")):
        text = file.read_text()
        checksum = hashlib.sha256(text.encode()).hexdigest()
        if applied.get(file.name, checksum) != checksum:
            message = f"`{file.name}` was applied to keyspace `{keyspace}` with another content"
            raise OperatorError(message, do="restore the file and put the change into a new one")
        if file.name not in applied:
            for statement in _statements(text):
                definition.change(statement)
            definition.agree()
            session.execute(record, (file.name, checksum))


def _strategy(replication: int | Mapping[str, int]) -> str:
    """Return the replication of a keyspace as CQL."""
    if isinstance(replication, int):
        return f"{{'class': 'SimpleStrategy', 'replication_factor': {replication}}}"
    copies = "".join(f", '{name}': {number}" for name, number in replication.items())
    return f"{{'class': 'NetworkTopologyStrategy'{copies}}}"


class _Definition:
    """The definition of the tables, changed by one node; the others are waited for only when rows are touched."""

    def __init__(self, session: "Session") -> None:
        self._session, self._cluster = session, session.cluster
        self._cluster.schema_metadata_enabled = False
        self._cluster.max_schema_agreement_wait = 0
        self._node = self._cluster.get_control_connection_host()

    def change(self, statement: str) -> None:
        if not statement.startswith(_DEFINES):
            self.agree()
        self._session.execute(statement, host=self._node)

    def agree(self) -> None:
        """Until every living node knows what was changed. CassandraUnavailableError if one does not in time."""
        try:
            self._cluster.refresh_schema_metadata(_AGREEMENT_SECONDS)
        except DriverException as error:
            message = f"Cassandra's nodes do not agree on the tables after {_AGREEMENT_SECONDS} s"
            raise CassandraUnavailableError(message, do="galatea status") from error


def _statements(text: str) -> list[str]:
    lines = (line for line in text.splitlines() if not line.lstrip().startswith("--"))
    return [statement.strip() for statement in "\n".join(lines).split(";") if statement.strip()]
