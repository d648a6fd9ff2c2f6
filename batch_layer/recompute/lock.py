"""Locks of recomputes: one process works on each, and no two on the same days of a view at once.

A lock is a row in Cassandra that expires unless it is renewed; a process of this machine that has ended is detected at
once. Locks only save work, because only one of two runs based on one publication can publish. Exactness depends on the
compare-and-set of the switch.
"""

import os
import socket
import threading
from collections.abc import Iterable, Mapping
from datetime import UTC, date, datetime
from types import TracebackType
from typing import TYPE_CHECKING, Self
from uuid import uuid4

import msgspec
import psutil
import structlog

from master_dataset.cassandra_tables import CASSANDRA_UNAVAILABLE
from master_dataset.errors import RecomputeRunningError
from views.core.local_time import ONE_DAY

if TYPE_CHECKING:
    from cassandra.cluster import Session

    from batch_layer.plan import Plan

TTL_SECONDS = 60
_RENEW_SECONDS = 15.0
_INSERT = (
    "INSERT INTO running_recomputes (series, id, holder, partitions) VALUES ('galatea', ?, ?, ?) IF NOT EXISTS "  # noqa: S608 - a number of ours
    f"USING TTL {TTL_SECONDS}"
)
_TAKE = (
    f"UPDATE running_recomputes USING TTL {TTL_SECONDS} SET holder = ?, partitions = ? "  # noqa: S608 - likewise
    "WHERE series = 'galatea' AND id = ? IF holder = ?"
)
_RELEASE = "DELETE FROM running_recomputes WHERE series = 'galatea' AND id = ? IF holder = ?"

Spans = Mapping[str, list[tuple[str, str]]]
"""View to (first, last) days, both included, ISO."""

log = structlog.get_logger()


class _Holder(msgspec.Struct, frozen=True):
    """The process that holds a lock. `attempt` distinguishes attempts of one process."""

    host: str
    pid: int
    created: float
    attempt: str = ""

    @classmethod
    def read(cls, text: str) -> Self:
        return msgspec.json.decode(text, type=cls)

    @property
    def is_alive(self) -> bool:
        """Whether the process is running. On another machine, it is until its row expires."""
        if self.host != socket.gethostname():
            return True
        try:
            process = psutil.Process(self.pid)
            is_it = abs(process.create_time() - self.created) < 1.0
            return is_it and process.status() != psutil.STATUS_ZOMBIE
        except psutil.NoSuchProcess:
            return False


class _Claim(msgspec.Struct, frozen=True, omit_defaults=True):
    """The days that a recompute works on, and since when; empty before it has claimed any."""

    at: str = ""
    days: Spans = {}


class RecomputeLock:
    """Held while the `with` block runs."""

    def __init__(self, session: "Session", id_: str) -> None:
        """`session` uses Galatea's keyspace."""
        self._session, self._id = session, id_
        self.host = socket.gethostname()
        self._holder = _json(_Holder(self.host, os.getpid(), psutil.Process().create_time(), str(uuid4())))
        self._claim = _Claim()
        self._released = threading.Event()
        self._renewing = threading.Thread(target=self._keep_renewing, name="recompute-lock", daemon=True)

    def __enter__(self) -> Self:
        """RecomputeRunningError if a living process works on it already."""
        insert = self._session.prepare(_INSERT)
        found = self._session.execute(insert, (self._id, self._holder, _json(self._claim))).one()
        # A retry by the driver finds what its first attempt has done.
        is_held = not found.applied and found.holder != self._holder
        if is_held and (_Holder.read(found.holder).is_alive or not self._take(found.holder)):
            by = _Holder.read(found.holder)
            message = f"recompute `{self._id}` is being worked on by process {by.pid} on {by.host}"
            raise RecomputeRunningError(message, do=f"galatea recompute show {self._id}, and wait for it")
        self._renewing.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Release it."""
        self._released.set()
        self._renewing.join()
        self._session.execute(self._session.prepare(_RELEASE), (self._id, self._holder))

    def claim(self, plan: "Plan") -> None:
        """Claim the plan's days. RecomputeRunningError if another recompute that came first has claimed one of them."""
        own = self._claim = _Claim(datetime.now(UTC).isoformat(), spans(plan))
        if not self.renew():
            raise self.lost()
        query = self._session.prepare("SELECT id, holder, partitions FROM running_recomputes WHERE series = 'galatea'")
        for other in self._session.execute(query):
            if other.id == self._id or other.holder is None or not _Holder.read(other.holder).is_alive:
                continue
            claimed = msgspec.json.decode(other.partitions or "{}", type=_Claim)
            view = overlapping(own.days, claimed.days)
            if view and (claimed.at, other.id) < (own.at, self._id):
                message = f"recompute `{other.id}` works on days of `{view}` that this one would recompute too"
                raise RecomputeRunningError(message, do=f"galatea recompute show {other.id}, and wait for it")

    def renew(self) -> bool:
        """Extend the lock. False if another process holds it."""
        return self._take(self._holder)

    def lost(self) -> RecomputeRunningError:
        """The error of a process that was paused for so long that another one may have taken over."""
        message = f"recompute `{self._id}` was not renewed in time, so another process may have taken it over"
        return RecomputeRunningError(
            message, do=f"galatea recompute show {self._id}; then: galatea rebuild --id {self._id}"
        )

    def _take(self, from_: str) -> bool:
        values = (self._holder, _json(self._claim), self._id, from_)
        row = self._session.execute(self._session.prepare(_TAKE), values).one()
        return row.applied or getattr(row, "holder", None) == self._holder

    def _keep_renewing(self) -> None:
        while not self._released.wait(_RENEW_SECONDS):
            try:
                if not self.renew():
                    log.warning("recompute.lock_lost", recompute=self._id)
            except CASSANDRA_UNAVAILABLE as error:
                log.warning("recompute.lock_not_renewed", recompute=self._id, error=str(error))


def is_any_running(session: "Session") -> bool:
    """Whether a living process works on a recompute."""
    rows = session.execute(session.prepare("SELECT holder FROM running_recomputes WHERE series = 'galatea'"))
    return any(row.holder is not None and _Holder.read(row.holder).is_alive for row in rows)


def spans(plan: "Plan") -> Spans:
    """The days of each view, with consecutive days as one span."""
    return {view.name: list(_joined(days)) for view, days in plan.work if days}


def overlapping(one: Spans, other: Spans) -> str | None:
    """A view for which both have a common day."""
    for view, own in one.items():
        for first, last in own:
            if any(first <= theirs[1] and theirs[0] <= last for theirs in other.get(view, ())):
                return view
    return None


def _joined(days: Iterable[date]) -> Iterable[tuple[str, str]]:
    ordered = sorted(days)
    first = ordered[0]
    for day, after in zip(ordered, [*ordered[1:], None], strict=True):
        if after != day + ONE_DAY:
            yield first.isoformat(), day.isoformat()
            if after is not None:
                first = after


def _json(value: msgspec.Struct) -> str:
    return msgspec.json.encode(value).decode()
