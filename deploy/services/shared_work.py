"""Shares work among the processes of one component: each part has one process at a time, and a killed one is replaced.

Every process writes again and again that it is there, in a row that expires, and holds a lease for each part that it
works on. It takes free parts until it has its share, which is the number of parts divided by that of processes, rounded
up, and gives up what it has beyond that. So the parts of a killed process are taken over once its leases have expired,
and a process that joins gets some of those of the others.

A lease keeps processes out of each other's way, and no more: one that was suspended for longer than its leases last
goes on for a moment when another has its part. Whatever it then writes has to be refused or to be a repetition, which
archive and speed layer guarantee by what they record with each micro-batch.
"""

import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from math import ceil
from typing import Protocol

import structlog

from master_dataset.cassandra_tables import CASSANDRA_UNAVAILABLE, has_lease

LEASE_SECONDS = 3
"""How long a lease, and the row of a process, outlive a process that was killed."""
RENEW_SECONDS = 1.25
"""Twice before a lease ends. Each renewal is a lightweight transaction, and the archive has one for each source."""
REHEARSED = 100
"""Records of each partition that a process reads before it takes over the work of another one."""
_START = "start"
"""The lease of a process that looks whether it is the first one."""

log = structlog.get_logger()


class ExclusiveLease(Protocol):
    """The exclusive right to do something. Its methods block."""

    def take(self) -> None:
        """LeaseHeldError if another process holds it."""

    def renew(self) -> None:
        """LeaseHeldError if it was lost."""

    def release(self) -> None:
        """Release it, so that another process can take it immediately."""


class Leases(Protocol):
    """The leases of a deployment. Every method raises what is in CASSANDRA_UNAVAILABLE."""

    def lease(self, name: str, seconds: int) -> ExclusiveLease:
        """Return a lease of this process, not taken yet."""

    def show(self, name: str, seconds: int) -> None:
        """List this name for that many seconds. No other process may use it."""

    def hide(self, name: str) -> None:
        """List it no longer."""

    def names(self) -> Sequence[str]:
        """Return the names that are listed, and those of the leases that somebody holds."""


class SharedWork:
    """What one process does of the work of a component."""

    def __init__(self, leases: Leases, component: str, parts: Sequence[str], process: str) -> None:
        """Create it without any part.

        Args:
            leases: Those of the deployment.
            component: What the processes have in common, as in `galatea status`.
            parts: What there is to do.
            process: Identifies this process; no other one may have the same.
        """
        self._leases, self._parts = leases, tuple(parts)
        self._part_prefix, self._process_prefix = f"{component}/", f"{component} process/"
        self._me = self._process_prefix + process
        self._own = {part: leases.lease(self._part_prefix + part, LEASE_SECONDS) for part in parts}
        self._own[_START] = leases.lease(f"{component} {_START}", LEASE_SECONDS)
        self._held: set[str] = set()  # keys of `_own`
        self._renewals: Future[None] | None = None
        self._lock = threading.RLock()  # a signal handler may call `leave` inside of `release`
        """Held while a lease is renewed or released, so that none is taken again that was just released."""
        self._has_left = threading.Event()

    def join(self, if_first: Callable[[], None] = lambda: None) -> None:
        """Take part from now on. `if_first` is called if no other process takes part; others wait until it is done.

        Raises what is in CASSANDRA_UNAVAILABLE, and what `if_first` raises.
        """
        while not has_lease(self._own[_START].take):
            self._has_left.wait(RENEW_SECONDS)
        self._held.add(_START)
        self._renewals = ThreadPoolExecutor(1, thread_name_prefix="leases").submit(self._keep_renewing)
        if not any(name.startswith(self._process_prefix) for name in self._leases.names()):
            if_first()
        self._leases.show(self._me, LEASE_SECONDS)
        self.release(_START)

    @property
    def held(self) -> frozenset[str]:
        """The parts that this process is to work on, at the moment. Raises what has ended the renewals."""
        if self._renewals is not None and self._renewals.done():
            self._renewals.result()
        return frozenset(self._held - {_START})

    def beyond_share(self) -> Sequence[str]:
        """Return parts of `held` to give up: end the work on each, then call `release`. CASSANDRA_UNAVAILABLE."""
        return sorted(self.held)[self._share(self._leases.names()) :]

    def release(self, part: str) -> None:
        """Let another process work on it. CASSANDRA_UNAVAILABLE: it can when the lease has expired."""
        with self._lock:
            self._held.discard(part)
            self._own[part].release()

    def take(self) -> None:
        """Take free parts up to the share of this process. CASSANDRA_UNAVAILABLE."""
        if len(self.held) == len(self._parts):
            return
        names = set(self._leases.names())
        for part in self._parts:
            if len(self.held) >= self._share(names):
                return
            if self._part_prefix + part not in names and part not in self._held and has_lease(self._own[part].take):
                with self._lock:
                    self._held.add(part)

    def confirm(self, part: str) -> bool:
        """Whether nobody else has meanwhile taken a part of `held`: ask before work begins. CASSANDRA_UNAVAILABLE."""
        self._renew(part)
        return part in self.held

    def leave(self) -> None:
        """Take part no longer, and let others have what this process held. CASSANDRA_UNAVAILABLE."""
        self._has_left.set()
        for part in sorted(self._held):
            self.release(part)
        self._leases.hide(self._me)

    def renew(self) -> None:
        """Stay the process of each part that is held; one that another process has meanwhile is held no longer.

        CASSANDRA_UNAVAILABLE, after all of them: what may not have been renewed stays held, until another process is
        known to have it.
        """
        unknown: Exception | None = None
        for part in sorted(self._held):
            try:
                self._renew(part)
            except CASSANDRA_UNAVAILABLE as error:
                unknown = error
        if _START not in self._held:
            self._leases.show(self._me, LEASE_SECONDS)
        if unknown is not None:
            raise unknown

    def _renew(self, part: str) -> None:
        with self._lock:
            if part not in self._held:
                return
            lease = self._own[part]
            if not has_lease(lease.renew) and not has_lease(lease.take):
                self._held.discard(part)
                log.warning("shared_work.lost", part=part)

    def _keep_renewing(self) -> None:
        while not self._has_left.wait(RENEW_SECONDS):
            try:
                self.renew()
            except CASSANDRA_UNAVAILABLE as error:
                log.warning("shared_work.not_renewed", error=type(error).__name__)

    def _share(self, names: Iterable[str]) -> int:
        """The greatest number of parts to hold, with the processes that are listed."""
        others = {name for name in names if name.startswith(self._process_prefix)}
        return ceil(len(self._parts) / len(others | {self._me}))
