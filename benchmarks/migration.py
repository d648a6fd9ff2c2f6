"""How long `galatea migrate` takes in a keyspace with a million cells, and how long readers of these wait meanwhile.

The keyspace begins with the tables of the first release that had batch cells as they are now; every later migration is
then applied. Readers read blocks as an answer does. The baseline is what was promised: a minute, and five seconds.
"""

import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING
from unittest.mock import patch

from benchmarks import local
from benchmarks.report import Measured
from benchmarks.switch import FIRST_DAY, VIEW, LargeRun
from deploy import schema
from deploy.cassandra import connect
from views.core.cut import month_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cassandra.cluster import Session

FULL = 1_000_000
READERS = 2
FIRST_RELEASE = "007_leases.cql"
MOST_SECONDS, LONGEST_WAIT_SECONDS = 60.0, 5.0
SELECT = "SELECT day, block FROM batch_cells WHERE view_name = ? AND store = ? AND month = ? AND run = ?"


def migration(size: int) -> "Iterator[Measured]":
    """`size` cells. Only the schema is migrated: no migration writes cells again."""
    with local.own_home() as settings, local.running(settings, "cassandra"):
        address = settings.cassandra.address
        first = [file for file in Path(schema.__file__).parent.glob("*.cql") if file.name <= FIRST_RELEASE]
        session, keyspace = connect(replace(address, keyspace=None)), "bench_migration"
        with patch.object(schema, "_files", lambda: sorted(first)):  # the schema of the first release
            schema.migrate(session, keyspace)
        run = LargeRun.of(size, "bench")
        own = replace(address, keyspace=keyspace)
        sessions = [connect(own) for _ in range(1 + READERS)]
        run.write(lambda: sessions[0])
        readers = [_Reader(each, run) for each in sessions[1:]]
        for reader in readers:
            reader.start()
        began = time.monotonic()
        schema.migrate(session, keyspace)
        taken = time.monotonic() - began
        longest = max(reader.stop() for reader in readers)
        for each in (session, *sessions):
            each.cluster.shutdown()
    reads = sum(reader.reads for reader in readers)
    details = {"cells": run.cells, "from": FIRST_RELEASE, "to": schema.newest(), "reads": reads}
    yield Measured("migration", taken, MOST_SECONDS, "s", "limit", better="low", limit=1.0, details=details)
    yield Measured("migration, longest wait", longest, LONGEST_WAIT_SECONDS, "s", "limit", better="low", limit=1.0)


class _Reader(threading.Thread):
    """Reads the blocks of a month of a store, one store after the other, as a question about a month does."""

    def __init__(self, session: "Session", run: LargeRun) -> None:
        super().__init__(name="reader", daemon=True)
        self._session, self._cells, self._leave = session, run, threading.Event()
        self.reads, self._longest = 0, 0.0

    def run(self) -> None:
        """The work of the thread."""
        select, month = self._session.prepare(SELECT), month_of(FIRST_DAY)
        while not self._leave.is_set():
            store, began = str(1 + self.reads % self._cells.stores), time.monotonic()
            if not self._session.execute(select, (VIEW, store, month, self._cells.name)).all():
                raise LookupError(f"store {store} has no blocks")
            self.reads, self._longest = self.reads + 1, max(self._longest, time.monotonic() - began)

    def stop(self) -> float:
        """The longest wait for an answer, in seconds. RuntimeError if this thread had ended by itself."""
        if not self.is_alive():
            raise RuntimeError("a reader was refused")
        self._leave.set()
        self.join()
        return self._longest
