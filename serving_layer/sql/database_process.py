"""Calls of a database that is in a process of its own."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from threading import Lock, Thread
from typing import Any
from weakref import finalize

import duckdb
import pyarrow as pa
import structlog

from serving_layer.sql import database
from serving_layer.sql.database import CALL, Channel, Message, Setting

PATIENCE_SECONDS = 5.0
"""How long a call may go on after it was interrupted for the first time, before its process is killed."""
_INHERITED = ("PATH", "PYTHONPATH", "PYTHONHOME", "LD_LIBRARY_PATH", "LANG", "LC_ALL", "TZ")
_INHERITED_OF = ("MALLOC_", "ARROW_", "DUCKDB_")
_ERRORS: Mapping[str, type[Exception]] = {
    **{name: kind for name, kind in vars(duckdb).items() if isinstance(kind, type) and issubclass(kind, duckdb.Error)},
    "ArrowMemoryError": MemoryError,
    "MemoryError": MemoryError,
    "OSError": OSError,
}

log = structlog.get_logger()


class DatabaseEndedError(Exception):
    """The process of the database has ended.

    Attributes:
        was_killed: because a call went on after it was interrupted.
        has_begun: it was open before.
    """

    def __init__(self, *, was_killed: bool, has_begun: bool) -> None:
        """Set the attributes that the class describes."""
        super().__init__("the process of the database has ended")
        self.was_killed, self.has_begun = was_killed, has_begun


class DatabaseProcess:
    """The process of one database, until nothing refers to this. One thread calls it at a time; any may interrupt it.

    Every call raises DatabaseEndedError if the process ends meanwhile, or has ended before, and errors of DuckDB and
    Arrow by their names.
    """

    def __init__(self, megabytes: int) -> None:
        """Start it. OSError if that is not possible. `megabytes`: what it may allocate; macOS does not enforce it."""
        self._calls, self._interrupted_at = 0, float("inf")
        self._was_killed = self._has_begun = False
        self._lock = Lock()
        ours, theirs = socket.socketpair()
        control, self._control = os.pipe()
        os.set_blocking(self._control, False)
        numbers = (theirs.fileno(), control)
        command = [sys.executable, "-P", "-m", database.__name__, *map(str, (*numbers, megabytes))]
        try:
            self._process = subprocess.Popen(  # noqa: S603 - of ours
                command, stdin=subprocess.DEVNULL, pass_fds=numbers, env=_environment()
            )
        except BaseException:
            ours.close()
            os.close(self._control)
            raise
        finally:
            theirs.close()
            os.close(control)
        self._channel = Channel(ours)
        self._end = finalize(self, _end, self._process, self._control, self._lock, self._channel)

    @property
    def is_alive(self) -> bool:
        """Whether it can still be called."""
        return self._end.alive and self._process.poll() is None

    def open(self, settings: dict[str, Setting], setup: Sequence[tuple[str, Sequence[str]]]) -> None:
        """Open an empty database instead of the former one.

        Args:
            settings: configure it.
            setup: statements with their parameters, which are run before the configuration is locked.
        """
        self._call("open", settings, setup)
        self._has_begun = True

    def hold(self, name: str, table: pa.Table) -> None:
        """Register a table."""
        self._call("hold", name, table=table)

    def drop(self, name: str) -> None:
        """Remove a table that was registered."""
        self._call("drop", name)

    def prepare(self, sql: str) -> list[tuple[str, str]]:
        """Plan a query, whose rows `fetch` computes. Returns the names and types of its columns."""
        return [(name, kind) for name, kind in self._call("prepare", sql)]

    def fetch(self) -> pa.RecordBatch | None:
        """The next rows of the query; None: there are no more."""
        rows = self._call("fetch")
        return rows.to_batches()[0] if isinstance(rows, pa.Table) else None

    def values(self, sql: str, *parameters: str) -> list[list[Any]]:
        """All rows of a query that has few. Its values are texts, whole numbers, booleans and NULL."""
        found: list[list[Any]] = self._call("values", sql, *parameters)
        return found

    def interrupt(self) -> None:
        """Let the call that runs fail, if there is one. If it goes on for `PATIENCE_SECONDS`, its process is killed."""
        with self._lock:
            if not self._end.alive:
                return
            now = time.monotonic()
            self._interrupted_at = min(self._interrupted_at, now)
            if now - self._interrupted_at > PATIENCE_SECONDS:
                self._was_killed = True
                self._process.kill()
                return
            with suppress(BlockingIOError, BrokenPipeError):
                os.write(self._control, CALL.pack(self._calls))

    def close(self) -> None:
        """End the process."""
        self._end()

    def _call(self, name: str, *arguments: object, table: pa.Table | None = None) -> Any:  # noqa: ANN401 - of the call
        self._calls, self._interrupted_at = self._calls + 1, float("inf")
        try:
            self._channel.send({"number": self._calls, "name": name, "arguments": arguments})
            if table is not None:
                self._channel.send_rows(table.schema, table.to_batches())
            answer = self._received()
            found = self._channel.receive_rows() if name == "fetch" and answer.get("found") else answer.get("found")
        except (EOFError, OSError, ValueError) as error:
            self._log_end(name)
            raise DatabaseEndedError(was_killed=self._was_killed, has_begun=self._has_begun) from error
        except BaseException:  # part of the answer may be unread
            self._end()
            raise
        if "error" in answer:
            raise _ERRORS.get(answer["error"], RuntimeError)(answer["text"])
        return found

    def _received(self) -> Message:
        answer = self._channel.receive()
        if answer["number"] != self._calls:
            raise EOFError
        return answer

    def _log_end(self, name: str) -> None:
        was_closed = not self._end.alive
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(1)
        if not was_closed:
            code = self._process.returncode  # None: it goes on, and has sent something else than an answer
            log.warning("sql.database_ended", call=name, exit_code=code, was_killed=self._was_killed)
        self._end()


def _environment() -> dict[str, str]:
    """What it needs of that of this process, which has secrets."""
    return {name: value for name, value in os.environ.items() if name in _INHERITED or name.startswith(_INHERITED_OF)}


def _end(process: subprocess.Popen[bytes], control: int, lock: Lock, channel: Channel) -> None:
    """Returns at once: a process that has much memory takes a while to end."""
    process.kill()
    with lock:
        os.close(control)

    def await_end() -> None:
        process.wait()
        channel.close()

    with suppress(RuntimeError):  # while this process ends, too
        Thread(target=await_end, name="sql-database-end", daemon=True).start()
