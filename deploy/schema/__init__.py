"""The tables in Cassandra, as numbered CQL files that are applied once each, in order, and never edited afterwards."""

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING

from master_dataset.errors import OperatorError

if TYPE_CHECKING:
    from cassandra.cluster import Session

KEYSPACE = "galatea"


def migrate(session: "Session", keyspace: str = KEYSPACE, replication: int = 1) -> None:
    """Bring a keyspace to the newest schema. OperatorError if a file that was applied has been edited since."""
    strategy = "{'class': 'SimpleStrategy', 'replication_factor': %d}" % replication  # noqa: UP031 - braces of CQL
    session.execute(f"CREATE KEYSPACE IF NOT EXISTS {keyspace} WITH replication = {strategy}")
    session.set_keyspace(keyspace)
    session.execute("CREATE TABLE IF NOT EXISTS migrations (name text PRIMARY KEY, checksum text)")
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
                session.execute(statement)
            session.execute(record, (file.name, checksum))


def _statements(text: str) -> list[str]:
    lines = (line for line in text.splitlines() if not line.lstrip().startswith("--"))
    return [statement.strip() for statement in "\n".join(lines).split(";") if statement.strip()]
