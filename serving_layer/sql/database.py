"""A process with one database, DuckDB in memory: `python -m serving_layer.sql.database DATA CONTROL MEGABYTES`.

Statements come from tenants. DuckDB counts only part of the memory that they need, and interrupts them only between
batches of rows. Whatever a statement does here, only this process has to be ended.

It is started often, so it imports little.
"""

import os
import resource
import struct
import sys
from collections.abc import Iterable, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection
from threading import Lock, Thread
from typing import NoReturn

import duckdb
import pyarrow as pa

BATCH_ROWS = 2048
"""How many rows of a result are sent at once."""
CALL = struct.Struct("Q")
"""What is written to CONTROL: the number of the call to interrupt, counted from 1."""
Setting = str | bool | int | float | list[str]


class Database:
    """What the other process calls, by name. Errors are those of DuckDB and Arrow."""

    def __init__(self) -> None:
        """Nothing is open."""
        self._connection = duckdb.connect(":memory:")
        self._found: duckdb.DuckDBPyRelation | None = None
        self._batches: pa.RecordBatchReader | None = None

    def open(self, settings: dict[str, Setting], setup: Sequence[tuple[str, Sequence[str]]]) -> None:
        """Open an empty database instead of the former one.

        Args:
            settings: configure it.
            setup: statements with their parameters, which are run before the configuration is locked.
        """
        self._forget()
        self._connection.close()
        self._connection = duckdb.connect(":memory:", config=settings)
        for statement, parameters in setup:
            self._connection.execute(statement, parameters)
        self._connection.execute("SET enable_external_access = false")
        self._connection.execute("SET lock_configuration = true")

    def hold(self, name: str, rows: bytes) -> None:
        """Have a table of this name. `rows`: as a stream of Arrow IPC."""
        self._connection.register(name, pa.ipc.open_stream(rows).read_all())

    def drop(self, name: str) -> None:
        """Have this table no more."""
        self._forget()
        self._connection.unregister(name)

    def prepare(self, sql: str) -> list[tuple[str, str]]:
        """Plan a query, whose rows `fetch` computes. Returns the names and types of its columns."""
        self._forget()
        self._found = self._connection.sql(sql)
        return [(name, str(kind)) for name, kind in zip(self._found.columns, self._found.types, strict=True)]

    def fetch(self) -> bytes | None:
        """The next rows of the query, as a stream of Arrow IPC; None: there are no more."""
        if self._batches is None:
            self._batches = self._prepared().to_arrow_reader(BATCH_ROWS)
        try:
            batch = self._batches.read_next_batch()
        except StopIteration:
            self._forget()
            return None
        return packed(batch.schema, [batch])

    def values(self, sql: str, parameters: Sequence[str]) -> list[tuple[object, ...]]:
        """All rows of a query that has few."""
        self._forget()
        return self._connection.execute(sql, parameters).fetchall()

    def interrupt(self) -> None:
        """Let the call that runs fail. Any thread may call this."""
        self._connection.interrupt()

    def _prepared(self) -> duckdb.DuckDBPyRelation:
        if self._found is None:
            raise RuntimeError("no query is prepared")
        return self._found

    def _forget(self) -> None:
        self._found = self._batches = None


class _Calls:
    """Runs calls one after another. An interruption that comes late does not concern the next call."""

    def __init__(self, database: Database) -> None:
        """`database`: what is called."""
        self._database, self._number, self._is_running, self._lock = database, 0, False, Lock()

    def follow(self, control: int) -> None:
        """Interrupt calls as they are named. At the end of the file, which is that of the other process, end this."""
        while len(named := os.read(control, CALL.size)) == CALL.size:
            with self._lock, suppress(duckdb.Error):  # of a database that is being opened
                if self._is_running and CALL.unpack(named) == (self._number,):
                    self._database.interrupt()
        os._exit(0)

    def run(self, name: str, arguments: Sequence[object]) -> tuple[bool, object]:
        """Whether the call was successful, and what it returned, or the error."""
        with self._lock:
            self._number, self._is_running = self._number + 1, True
        try:
            return True, getattr(self._database, name)(*arguments)
        except Exception as error:  # noqa: BLE001 - the edge of the process: the other one raises it
            return False, error
        finally:
            with self._lock:
                self._is_running = False


def packed(schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> bytes:
    """Rows as a stream of Arrow IPC."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema) as stream:
        for batch in batches:
            stream.write_batch(batch)
    rows: bytes = sink.getvalue().to_pybytes()
    return rows


def main(data: int, control: int, megabytes: int) -> NoReturn:
    """Answer calls until the other process ends or closes its end.

    Args:
        data: the file descriptor of a socket: names and arguments of calls, and what they returned.
        control: that of a pipe: numbers of calls to interrupt.
        megabytes: what this process may allocate.
    """
    _, most = resource.getrlimit(resource.RLIMIT_DATA)
    resource.setrlimit(resource.RLIMIT_DATA, (megabytes * 2**20, most))
    calls = _Calls(Database())
    Thread(target=calls.follow, args=(control,), daemon=True).start()
    with Connection(data) as connection:
        while True:
            try:
                name, arguments = connection.recv()
            except EOFError:
                os._exit(0)  # DuckDB complains about an orderly end
            connection.send(calls.run(name, arguments))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
