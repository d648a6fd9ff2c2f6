"""Which recomputes somebody works on: one process each, and no two of the same views and days at once.

A row in Cassandra, which expires when it is not written again; a process of this machine that is gone is known to be
so at once. It spares two runs the work of which only one could publish. Exactness does not rest on it, but on the
compare-and-set of the switch.
"""

import os
import socket
import threading
from collections.abc import Iterable, Mapping
from datetime import UTC, date, datetime, timedelta
from types import TracebackType
from typing import TYPE_CHECKING, Self
from uuid import uuid4

import orjson
import psutil
import structlog
from cassandra import DriverException
from cassandra.cluster import NoHostAvailable

from master_dataset.errors import RecomputeRunning

if TYPE_CHECKING:
    from cassandra.cluster import Session

    from batch_layer.recompute.plan import Plan

TTL_SECONDS = 60
_AGAIN_SECONDS = 15.0
_INSERT = (
    "INSERT INTO running_recomputes (series, id, holder, partitions) VALUES ('galatea', ?, ?, ?) IF NOT EXISTS "  # noqa: S608 - a number of ours
    f"USING TTL {TTL_SECONDS}"
)
_TAKE = (
    f"UPDATE running_recomputes USING TTL {TTL_SECONDS} SET holder = ?, partitions = ? "  # noqa: S608 - likewise
    "WHERE series = 'galatea' AND id = ? IF holder = ?"
)
_LEAVE = "DELETE FROM running_recomputes WHERE series = 'galatea' AND id = ? IF holder = ?"
_DAY = timedelta(days=1)

Spans = Mapping[str, list[tuple[str, str]]]
"""View to (first, last) days, both included, ISO."""

log = structlog.get_logger()


class Running:
    """From entering to leaving a recompute is worked on by the process that does so."""

    def __init__(self, session: "Session", id_: str) -> None:
        """`session` uses Galatea's keyspace."""
        self._session, self._id = session, id_
        self.host = socket.gethostname()
        myself = {"host": self.host, "pid": os.getpid(), "created": psutil.Process().create_time()}
        self._holder = orjson.dumps(myself | {"attempt": str(uuid4())}).decode()
        self._partitions = "{}"
        self._left = threading.Event()
        self._writing = threading.Thread(target=self._stay, name="running", daemon=True)

    def __enter__(self) -> Self:
        """RecomputeRunning if a living process works on it already."""
        insert = self._session.prepare(_INSERT)
        found = self._session.execute(insert, (self._id, self._holder, self._partitions)).one()
        # A second try of the driver's finds what its first one has done.
        is_taken = not found.applied and found.holder != self._holder
        if is_taken and (_lives(found.holder) or not self._takes(found.holder)):
            by = orjson.loads(found.holder)
            message = f"recompute `{self._id}` is being worked on by process {by['pid']} on {by['host']}"
            raise RecomputeRunning(message, do=f"galatea recompute show {self._id}, and wait for it")
        self._writing.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Let others have it."""
        self._left.set()
        self._writing.join()
        self._session.execute(self._session.prepare(_LEAVE), (self._id, self._holder))

    def claim(self, plan: "Plan") -> None:
        """Say what this one recomputes. RecomputeRunning if another one that came first does so already."""
        own, at = spans(plan), datetime.now(UTC).isoformat()
        self._partitions = orjson.dumps({"at": at, "days": own}).decode()
        if not self.renews():
            raise self.lost()
        query = self._session.prepare("SELECT id, holder, partitions FROM running_recomputes WHERE series = 'galatea'")
        for other in self._session.execute(query):
            if other.id == self._id or other.holder is None or not _lives(other.holder):
                continue
            claimed = orjson.loads(other.partitions or "{}")
            view = overlapping(own, claimed.get("days", {}))
            if view and (claimed["at"], other.id) < (at, self._id):
                message = f"recompute `{other.id}` works on days of `{view}` that this one would recompute too"
                raise RecomputeRunning(message, do=f"galatea recompute show {other.id}, and wait for it")

    def renews(self) -> bool:
        """Whether it is still this process that works on it; then it is for another while."""
        return self._takes(self._holder)

    def lost(self) -> RecomputeRunning:
        """The error of a process that stood still for so long that another one may have taken over."""
        message = f"recompute `{self._id}` was not renewed in time, so another process may have taken it over"
        return RecomputeRunning(message, do=f"galatea recompute show {self._id}; then: galatea rebuild --id {self._id}")

    def _takes(self, from_: str) -> bool:
        values = (self._holder, self._partitions, self._id, from_)
        row = self._session.execute(self._session.prepare(_TAKE), values).one()
        return row.applied or getattr(row, "holder", None) == self._holder

    def _stay(self) -> None:
        while not self._left.wait(_AGAIN_SECONDS):
            try:
                if not self.renews():
                    log.warning("recompute.hold_lost", recompute=self._id)
            except (DriverException, NoHostAvailable) as error:
                log.warning("recompute.hold_not_written", recompute=self._id, error=str(error))


def spans(plan: "Plan") -> Spans:
    """The days of each view, those that follow each other as one span."""
    return {view.name: list(_joined(days)) for view, days in plan.work if days}


def overlapping(one: Spans, other: Spans) -> str | None:
    """A view of which both have a day."""
    for view, own in one.items():
        for first, last in own:
            if any(first <= theirs[1] and theirs[0] <= last for theirs in other.get(view, ())):
                return view
    return None


def _joined(days: Iterable[date]) -> Iterable[tuple[str, str]]:
    ordered = sorted(days)
    first = ordered[0]
    for day, after in zip(ordered, [*ordered[1:], None], strict=True):
        if after != day + _DAY:
            yield first.isoformat(), day.isoformat()
            if after is not None:
                first = after


def _lives(holder: str) -> bool:
    """Of a process on another machine only the row tells, which expires."""
    by = orjson.loads(holder)
    if by["host"] != socket.gethostname():
        return True
    try:
        process = psutil.Process(by["pid"])
        is_it = abs(process.create_time() - by["created"]) < 1.0
        return is_it and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
