"""Rows of Cassandra as Arrow batches, and back."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa
from cassandra.concurrent import execute_concurrent_with_args
from cassandra.query import UNSET_VALUE, SimpleStatement

from deploy.backup.mark import RestoreMark
from views.control.publication import Pointer, PointerRow, Publication

if TYPE_CHECKING:
    from cassandra.cluster import Session

    from deploy.backup.tables import KeptTable

WRITTEN_AT, EXPIRES = "_written_at", "_expires_s"
"""Columns of a file beside those of the table: a write timestamp in microseconds, and a lifetime in seconds."""
STATIC = "static"
_COLLECTED = "UPDATE publications SET collected_at = ? WHERE series = 'galatea' AND publication = ? IF current = ?"
_KEYS_AT_ONCE = 5_000
_IN_FLIGHT = 32
_TYPES: Mapping[str, pa.DataType] = {
    "text": pa.string(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "boolean": pa.bool_(),
    "blob": pa.binary(),
    "timestamp": pa.timestamp("ms", tz="UTC"),
    "date": pa.date32(),
}
_MAP, _SET = re.compile(r"map<(\w+), (\w+)>"), re.compile(r"set<(\w+)>")


class Keyspace(Protocol):
    """What backup and restore need of a keyspace. Methods raise what the driver raises."""

    def tables(self) -> Sequence[str]:
        """Return the names of its tables."""

    def columns(self, table: str) -> Mapping[str, str]:
        """Return the columns of a table with their types as CQL, without static ones."""

    def read(self, table: "KeptTable", schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a table as they are, in batches of this schema."""

    def write(self, table: "KeptTable", rows: pa.RecordBatch) -> None:
        """Write rows, and do not touch columns that are null."""

    def count(self, table: str) -> int:
        """Return how many rows there are."""

    def holds_rows(self, table: str) -> bool:
        """Return whether there are any rows."""

    def pointer(self) -> Pointer:
        """Return what is published."""

    def publication(self, number: int) -> Publication | None:
        """Return one entry of the history."""

    def publish(self, seen: Pointer, new: Publication) -> bool:
        """Publish one without cells, so that it counts as collected. False if the pointer has moved since `seen`."""

    def unfinished_restore(self) -> str | None:
        """Return the id of the backup that is being restored, or was when it was interrupted."""

    def begin_restore(self, backup: str) -> bool:
        """Note that this backup is being restored. False if the note is there already."""

    def end_restore(self, backup: str) -> None:
        """Remove the note."""


def arrow_type(cql: str) -> pa.DataType:
    """Return the Arrow type of a column. LookupError if the type of the column is new to backups."""
    if found := _MAP.fullmatch(cql):
        return pa.map_(_TYPES[found[1]], _TYPES[found[2]])
    if found := _SET.fullmatch(cql):
        return pa.list_(_TYPES[found[1]])
    return _TYPES[cql]


def arrow_schema(table: "KeptTable", columns: Mapping[str, str]) -> pa.Schema:
    """Return the schema of the file of a table with these columns."""
    fields = [(name, arrow_type(cql)) for name, cql in columns.items()]
    more = [(WRITTEN_AT, pa.int64())] if table.written_at else []
    return pa.schema([*fields, *more, *([(EXPIRES, pa.int32())] if table.expires else [])])


class CassandraKeyspace:
    """The keyspace of a session."""

    def __init__(self, session: "Session") -> None:
        """`session` uses Galatea's keyspace."""
        self._session = session
        self._pointer, self._mark = PointerRow(session), RestoreMark(session)

    def tables(self) -> Sequence[str]:
        """See `Keyspace`."""
        query = "SELECT table_name FROM system_schema.tables WHERE keyspace_name = %s"
        return sorted(row.table_name for row in self._session.execute(query, (self._session.keyspace,)))

    def columns(self, table: str) -> Mapping[str, str]:
        """See `Keyspace`."""
        query = "SELECT column_name, type, kind FROM system_schema.columns WHERE keyspace_name = %s AND table_name = %s"
        rows = self._session.execute(query, (self._session.keyspace, table))
        return {row.column_name: row.type for row in rows if row.kind != STATIC}

    def read(self, table: "KeptTable", schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """See `Keyspace`. Rows are read page by page."""
        more = {WRITTEN_AT: f"writetime({table.written_at})", EXPIRES: f"ttl({table.expires})"}
        selected = [
            f"{more[name]} AS c{number}" if name in more else f"{name} AS c{number}"
            for number, name in enumerate(schema.names)
        ]
        query = f"SELECT {', '.join(selected)} FROM {table.name}"  # noqa: S608 - our own names
        page: list[Sequence[Any]] = []
        for row in self._session.execute(SimpleStatement(query, fetch_size=table.rows_at_once)):
            page.append([_plain(value) for value in row])
            if len(page) == table.rows_at_once:
                yield _batch(page, schema)
                page = []
        if page:
            yield _batch(page, schema)

    def write(self, table: "KeptTable", rows: pa.RecordBatch) -> None:
        """See `Keyspace`."""
        names = [name for name in rows.schema.names if name not in {WRITTEN_AT, EXPIRES}]
        using = " USING TIMESTAMP ?" if table.written_at else " USING TTL ?" if table.expires else ""
        cql = f"INSERT INTO {table.name} ({', '.join(names)}) VALUES ({', '.join('?' * len(names))}){using}"  # noqa: S608 - our own names
        ordered = rows.select([*names, *(name for name in rows.schema.names if name not in names)])
        columns = [
            [UNSET_VALUE if value is None else _of_driver(value, field.type) for value in column.to_pylist()]
            for column, field in zip(ordered.columns, ordered.schema, strict=True)
        ]
        values = list(zip(*columns, strict=True))
        insert = self._session.prepare(cql)
        # The driver refuses a message while its socket has no room, which happens with megabytes under way.
        at_once = _IN_FLIGHT if table.rows_at_once > _IN_FLIGHT else 1
        execute_concurrent_with_args(self._session, insert, values, concurrency=at_once, raise_on_first_error=True)

    def count(self, table: str) -> int:
        """See `Keyspace`. By reading keys page by page: a count of Cassandra's own may take longer than it waits."""
        query = "SELECT column_name, kind FROM system_schema.columns WHERE keyspace_name = %s AND table_name = %s"
        rows = self._session.execute(query, (self._session.keyspace, table))
        keys = [row.column_name for row in rows if row.kind in {"partition_key", "clustering"}]
        keys_only = SimpleStatement(f"SELECT {', '.join(keys)} FROM {table}", fetch_size=_KEYS_AT_ONCE)  # noqa: S608 - likewise
        return sum(1 for _ in self._session.execute(keys_only))

    def holds_rows(self, table: str) -> bool:
        """See `Keyspace`."""
        return self._session.execute(f"SELECT * FROM {table} LIMIT 1").one() is not None  # noqa: S608 - likewise

    def pointer(self) -> Pointer:
        """See `Keyspace`."""
        return self._pointer.read()

    def publication(self, number: int) -> Publication | None:
        """See `Keyspace`."""
        return self._pointer.publication(number)

    def publish(self, seen: Pointer, new: Publication) -> bool:
        """See `Keyspace`. What forbids to go back to it is written first."""
        collected = self._session.prepare(_COLLECTED)
        if not self._session.execute(collected, (new.published_at, new.number, seen.publication)).one().applied:
            return False
        return self._pointer.publish(seen, new)

    def unfinished_restore(self) -> str | None:
        """See `Keyspace`."""
        return self._mark.read()

    def begin_restore(self, backup: str) -> bool:
        """See `Keyspace`."""
        return self._mark.begin(backup)

    def end_restore(self, backup: str) -> None:
        """See `Keyspace`."""
        self._mark.end(backup)


def _batch(rows: Sequence[Sequence[Any]], schema: pa.Schema) -> pa.RecordBatch:
    columns = zip(*rows, strict=True)
    return pa.RecordBatch.from_arrays(
        [pa.array(list(column), field.type) for column, field in zip(columns, schema, strict=True)], schema=schema
    )


def _plain(value: Any) -> Any:  # noqa: ANN401 - any value of the driver
    """Return a value of the driver in a form that Arrow takes."""
    if value is None or isinstance(value, str | int | bytes):
        return value
    if hasattr(value, "date") and hasattr(value, "days_from_epoch"):
        return value.date()
    if hasattr(value, "items"):
        return list(value.items())
    return value if hasattr(value, "tzinfo") else list(value)


def _of_driver(value: Any, kind: pa.DataType) -> Any:  # noqa: ANN401 - any value of a column
    """Return a value of Arrow in the form that the driver takes."""
    if pa.types.is_map(kind):
        return dict(value)
    return set(value) if pa.types.is_list(kind) else value
