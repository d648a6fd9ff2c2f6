"""A process with one database, DuckDB in memory: `python -m serving_layer.sql.database DATA CONTROL MEGABYTES`.

Statements come from tenants. DuckDB counts only part of the memory that they need, and interrupts them only between
batches of rows. Whatever a statement does here, only this process has to be ended.

It is started often, so it imports little.
"""

import json
import os
import resource
import socket
import struct
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from threading import Lock, Thread
from typing import Any, NoReturn

import duckdb
import pyarrow as pa

BATCH_ROWS = 2048
"""How many rows of a result are sent at once."""
MOST_LINE_BYTES = 2**28
"""Of a message. A syntax tree is many times as long as its statement."""
CALL = struct.Struct("Q")
"""What is written to CONTROL: the number of the call to interrupt, counted from 1."""
Setting = str | bool | int | float | list[str]
Message = Mapping[str, Any]


class Channel:
    """Messages between the two processes: lines of JSON, and rows in Arrow's format. Nothing received is executed."""

    def __init__(self, end: socket.socket) -> None:
        """`end`: one of a pair of sockets."""
        self._reader, self._writer = end.makefile("rb"), end.makefile("wb")
        end.close()  # the files keep it open

    def send(self, message: Message) -> None:
        """Send a message."""
        self._writer.write(json.dumps(message).encode() + b"\n")
        self._writer.flush()

    def send_rows(self, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> None:
        """Send rows, which follow a message that announces them."""
        with pa.ipc.new_stream(self._writer, schema) as stream:
            for batch in batches:
                stream.write_batch(batch)
        self._writer.flush()

    def receive(self) -> Message:
        """The next message. EOFError: the other process has ended."""
        line = self._reader.readline(MOST_LINE_BYTES)
        if not line.endswith(b"\n"):
            raise EOFError
        found: Message = json.loads(line)
        return found

    def receive_rows(self) -> pa.Table:
        """The rows that follow a message. ArrowInvalid or OSError if they are not complete."""
        with pa.ipc.open_stream(self._reader) as stream:
            return stream.read_all()

    def close(self) -> None:
        """Close this end."""
        with suppress(OSError):  # what was not sent yet
            self._writer.close()
        self._reader.close()


class Database:
    """Runs calls, each in the name of a method. Errors are those of DuckDB and Arrow."""

    def __init__(self, channel: Channel) -> None:
        """Nothing is open. `channel`: what rows are sent and received over."""
        self._channel = channel
        self._connection = duckdb.connect(":memory:")
        self._found: duckdb.DuckDBPyRelation | None = None
        self._batches: pa.RecordBatchReader | None = None
        self.calls: Mapping[str, Callable[..., object]] = {
            "open": self._open,
            "hold": self._hold,
            "drop": self._drop,
            "prepare": self._prepare,
            "fetch": self._fetch,
            "values": self._values,
        }

    def interrupt(self) -> None:
        """Let the call that runs fail. Any thread may call this."""
        self._connection.interrupt()

    def _open(self, settings: dict[str, Setting], setup: Sequence[tuple[str, Sequence[str]]]) -> None:
        self._forget()
        self._connection.close()
        self._connection = duckdb.connect(":memory:", config=settings)
        for statement, parameters in setup:
            self._connection.execute(statement, parameters)
        self._connection.execute("SET enable_external_access = false")
        self._connection.execute("SET lock_configuration = true")

    def _hold(self, name: str) -> None:
        try:
            table = self._channel.receive_rows()
        except BaseException:  # noqa: BLE001 - the rest of them cannot be told from the next call
            os._exit(1)
        self._connection.register(name, table)

    def _drop(self, name: str) -> None:
        self._forget()
        self._connection.unregister(name)

    def _prepare(self, sql: str) -> list[tuple[str, str]]:
        self._forget()
        self._found = self._connection.sql(sql)
        return [(name, str(kind)) for name, kind in zip(self._found.columns, self._found.types, strict=True)]

    def _fetch(self) -> pa.RecordBatch | None:
        if self._batches is None:
            if self._found is None:
                raise RuntimeError("no query is prepared")
            self._batches = self._found.to_arrow_reader(BATCH_ROWS)
        try:
            return self._batches.read_next_batch()
        except StopIteration:
            self._forget()
            return None

    def _values(self, sql: str, *parameters: str) -> list[tuple[object, ...]]:
        self._forget()
        return self._connection.execute(sql, parameters).fetchall()

    def _forget(self) -> None:
        self._found = self._batches = None


class _Calls:
    """Answers calls, one after another. An interruption that comes late does not concern the next call."""

    def __init__(self, channel: Channel) -> None:
        self._channel, self._database = channel, Database(channel)
        self._number, self._is_running, self._lock = 0, False, Lock()

    def follow(self, control: int) -> None:
        """Interrupt calls as they are named. At the end of the file, which is that of the other process, end this."""
        while len(named := os.read(control, CALL.size)) == CALL.size:
            with self._lock, suppress(duckdb.Error):  # of a database that is being opened
                if self._is_running and CALL.unpack(named) == (self._number,):
                    self._database.interrupt()
        os._exit(0)

    def answer(self, call: Message) -> None:
        """Run a call, and send what it returns, or its error."""
        number = call["number"]
        with self._lock:
            self._number, self._is_running = number, True
        try:
            found = self._database.calls[call["name"]](*call["arguments"])
        except Exception as error:  # noqa: BLE001 - the edge of the process: the other one raises it
            self._channel.send({"number": number, "error": type(error).__name__, "text": str(error)})
            return
        finally:
            with self._lock:
                self._is_running = False
        if isinstance(found, pa.RecordBatch):
            self._channel.send({"number": number, "found": True})
            self._channel.send_rows(found.schema, [found])
        else:
            self._channel.send({"number": number, "found": found})


def main(data: int, control: int, megabytes: int) -> NoReturn:
    """Answer calls until the other process ends or closes its end.

    Args:
        data: the file descriptor of a socket: calls, and what they returned.
        control: that of a pipe: numbers of calls to interrupt.
        megabytes: what this process may allocate; less if it may allocate less already.
    """
    _, most = resource.getrlimit(resource.RLIMIT_DATA)
    wanted = megabytes * 2**20
    resource.setrlimit(resource.RLIMIT_DATA, (wanted if most == resource.RLIM_INFINITY else min(wanted, most), most))
    channel = Channel(socket.socket(fileno=data))
    calls = _Calls(channel)
    Thread(target=calls.follow, args=(control,), daemon=True).start()
    while True:
        try:
            call = channel.receive()
        except EOFError:
            os._exit(0)  # DuckDB complains about an orderly end
        calls.answer(call)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
