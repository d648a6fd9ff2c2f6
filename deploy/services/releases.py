"""The table `process_releases`: which version of the program each process runs, so that two at once are seen.

It also says which layouts of speed rows the process reads (ADR 0071, ADR 0072), so that none is written before all of
them read it.

Every process writes its row again and again, and rows end by themselves. A failure is only logged: no process needs it.
"""

import re
import threading
from typing import TYPE_CHECKING, NamedTuple
from uuid import uuid4

import structlog
from cassandra import DriverException

from deploy.cassandra import session_of
from deploy.process import installed_release
from master_dataset.cassandra_tables import CASSANDRA_UNAVAILABLE
from master_dataset.errors import CassandraAccessError, CassandraUnavailableError

if TYPE_CHECKING:
    from collections.abc import Callable

    from cassandra.cluster import Session

    from deploy.settings import Settings

WRITE_SECONDS, LIVE_SECONDS = 20.0, 60
"""How often a process writes its row, and how long the row outlives it."""
_INSERT = (
    "INSERT INTO process_releases (component, process, release, reads_by_store, reads_receipt_blocks) "
    "VALUES (?, ?, ?, true, true) USING TTL ?"
)
_SELECT = "SELECT component, reads_by_store, reads_receipt_blocks FROM process_releases"
_ANSWER, _READ = ("api", "sql"), ("archive", "speed")
_NUMBER = re.compile(r"-[0-9]+$")

log = structlog.get_logger()


class ReleaseRecorder:
    """Records the release of one process."""

    def __init__(self, connect: "Callable[[], Session]", name: str, release: str) -> None:
        """`name` of the process: `api`, `api-2` and so on, which are one component."""
        self._connect, self._component, self._release = connect, _NUMBER.sub("", name), release
        self._process = uuid4().hex

    def start(self) -> None:
        """Record it until the process ends, in a thread."""
        threading.Thread(target=self._keep_recording, name="release", daemon=True).start()

    def record(self) -> bool:
        """Write the row. Returns whether that succeeded."""
        try:
            session = self._connect()
            values = (self._component, self._process, self._release, LIVE_SECONDS)
            session.execute(session.prepare(_INSERT), values)
        except (CassandraAccessError, CassandraUnavailableError, DriverException, *CASSANDRA_UNAVAILABLE) as error:
            log.warning("release.not_recorded", component=self._component, error=str(error))
            return False
        return True

    def _keep_recording(self) -> None:
        pause = threading.Event()
        while True:
            self.record()
            pause.wait(WRITE_SECONDS)


class ReadLayouts(NamedTuple):
    """What every process reads: speed rows by store, and receipts in blocks."""

    by_store: bool
    receipt_blocks: bool


def read_layouts(session: "Session") -> ReadLayouts:
    """What every process that has recorded its release within a minute reads.

    One that answers must be among them: early releases record nothing, so none at all proves nothing.
    """
    rows = list(session.execute(_SELECT))
    known = any(row.component in _ANSWER for row in rows)
    return ReadLayouts(
        known and all(row.reads_by_store for row in rows), known and all(row.reads_receipt_blocks for row in rows)
    )


def are_records_read(session: "Session") -> bool:
    """Whether an archive or a speed layer has been running within a minute."""
    return any(row.component in _READ for row in session.execute(_SELECT))


def record_release(settings: "Settings", name: str) -> None:
    """Record the release of this process until it ends. `name` as in `galatea status`."""
    ReleaseRecorder(lambda: session_of(settings.cassandra.address), name, installed_release()).start()
