"""Calls of a database that is in a process of its own."""

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from multiprocessing import Pipe
from typing import Any
from weakref import finalize

import pyarrow as pa

from serving_layer.sql import database
from serving_layer.sql.database import CALL, Setting, packed

PATIENCE_SECONDS = 5.0
"""How long a call may go on after it was interrupted for the first time, before its process is ended."""


class DatabaseEndedError(Exception):
    """The process of the database has ended. `was_interrupted`: because a call was not to be interrupted otherwise."""

    def __init__(self, *, was_interrupted: bool) -> None:
        """See the class."""
        super().__init__("the process of the database has ended")
        self.was_interrupted = was_interrupted


class DatabaseProcess:
    """The process of one database, until nothing refers to this. One thread calls it at a time; any may interrupt it.

    Every call raises DatabaseEndedError if the process ends meanwhile, or has ended before.
    """

    def __init__(self, megabytes: int) -> None:
        """Start it. `megabytes`: what it may allocate; macOS does not enforce it."""
        self._data, theirs = Pipe()
        control, self._control = os.pipe()
        os.set_blocking(self._control, False)
        self._calls, self._interrupted_at, self._is_killed = 0, float("inf"), False
        numbers = (theirs.fileno(), control)
        command = [sys.executable, "-m", database.__name__, *map(str, (*numbers, megabytes))]
        try:
            self._process = subprocess.Popen(  # noqa: S603 - of ours
                command, stdin=subprocess.DEVNULL, pass_fds=numbers, env=_environment()
            )
        finally:
            theirs.close()
            os.close(control)
        self._end = finalize(self, _end, self._process, self._control)

    @property
    def is_alive(self) -> bool:
        """Whether it can still be called."""
        return self._process.poll() is None

    def open(self, settings: dict[str, Setting], setup: Sequence[tuple[str, Sequence[str]]]) -> None:
        """See `Database.open`."""
        self._call("open", settings, setup)

    def hold(self, name: str, table: pa.Table) -> None:
        """Have a table of this name."""
        self._call("hold", name, packed(table.schema, table.to_batches()))

    def drop(self, name: str) -> None:
        """Have this table no more."""
        self._call("drop", name)

    def prepare(self, sql: str) -> list[tuple[str, str]]:
        """Plan a query, whose rows `fetch` computes. Returns the names and types of its columns."""
        found: list[tuple[str, str]] = self._call("prepare", sql)
        return found

    def fetch(self) -> pa.RecordBatch | None:
        """The next rows of the query; None: there are no more."""
        rows = self._call("fetch")
        return None if rows is None else pa.ipc.open_stream(rows).read_next_batch()

    def values(self, sql: str, *parameters: str) -> list[tuple[Any, ...]]:
        """All rows of a query that has few."""
        found: list[tuple[Any, ...]] = self._call("values", sql, parameters)
        return found

    def interrupt(self) -> None:
        """Let the call that runs fail, if there is one; the process is ended if that goes on nevertheless."""
        if not self._end.alive:
            return
        now = time.monotonic()
        self._interrupted_at = min(self._interrupted_at, now)
        if now - self._interrupted_at > PATIENCE_SECONDS:
            self._is_killed = True
            self._process.kill()
            return
        with suppress(BlockingIOError, BrokenPipeError):
            os.write(self._control, CALL.pack(self._calls))

    def close(self) -> None:
        """End the process."""
        self._end()

    def _call(self, name: str, *arguments: object) -> Any:  # noqa: ANN401 - of the method that is called
        self._calls, self._interrupted_at = self._calls + 1, float("inf")
        try:
            self._data.send((name, arguments))
            is_done, found = self._data.recv()
        except (EOFError, OSError) as error:
            self._end()
            raise DatabaseEndedError(was_interrupted=self._is_killed) from error
        if not is_done:
            raise found
        return found


def _environment() -> dict[str, str]:
    """That of this process without our settings, some of which are secret."""
    return {name: value for name, value in os.environ.items() if not name.startswith("GALATEA_")}


def _end(process: subprocess.Popen[bytes], control: int) -> None:
    process.kill()
    process.wait()
    os.close(control)
