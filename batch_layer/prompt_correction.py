"""Prompt correction: events that the speed layer leaves to batch start a rebuild by themselves, if it is small.

The speed layer notes each epoch in which it has left events to batch. Such an epoch is due once a cut can cover it. The
processes that look for due epochs agree by a lease: the one that takes it starts the rebuild, and keeps the lease until
the rebuild has ended. Then it lets the lease expire, which is the pause before the next one, also after a crash.

This decides when a rebuild starts, and nothing else. It is the same rebuild that `galatea rebuild` starts.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol

import structlog
from prometheus_client import Counter, Gauge

from batch_layer.plan import RecomputePlanner
from batch_layer.rebuild import is_small
from batch_layer.recompute.lock import is_any_running
from master_dataset.cassandra_tables import (
    LATE_EVENTS,
    LATE_EVENTS_FAILED,
    LATE_EVENTS_LEFT,
    AlarmTable,
    has_lease,
)
from master_dataset.errors import RecomputeNotSmallError
from views.control.publication import Pointer, PointerRow
from views.control.recompute import ENDS, Recompute, Recomputes

if TYPE_CHECKING:
    from batch_layer.context import BatchContext

LEASE_SECONDS = 30
"""How long the lease outlives, at least, a process that was killed while its rebuild ran."""
LONGEST_PAUSE_SECONDS = 600
"""After rebuilds that have failed one after another, the pause grows to this, unless it is longer by itself."""

OUTCOMES = Counter(
    "galatea_prompt_corrections", "Rebuilds that late events have started, or left to the schedule.", ("outcome",)
)
WAITING = Gauge(
    "galatea_prompt_correction_waiting_seconds",
    "For how long due late events have started no rebuild, because other recomputes are under way.",
)
LONG_WAIT_SECONDS = 900
"""A wait that is longer is logged, again and again."""
log = structlog.get_logger()


class LeftBecause(StrEnum):
    """Why late events wait for the next publication that somebody else starts."""

    ROLLED_BACK = "rolled_back"
    """An operator has gone back to an older publication, which a rebuild would undo."""
    CHANGED_DEFINITIONS = "changed_definitions"
    """Views were changed, so the next rebuild recomputes all days, together with another generation."""
    NOT_SMALL = "not_small"
    """It would need Spark, or recompute too many days."""


@dataclass(frozen=True)
class Limits:
    """When late events start a rebuild.

    Attributes:
        epoch: Length of a receipt epoch.
        delay: How long after the end of an epoch its events are due: at least the skew, or no cut would cover them.
        pause: Between the end of one rebuild and the start of the next, in seconds.
    """

    epoch: timedelta
    delay: timedelta
    pause: int


class PauseLease(Protocol):
    """The exclusive right to correct, see `master_dataset.cassandra_tables.Lease`."""

    def take(self) -> None:
        """Acquire it. LeaseHeldError if another process holds it, or held it a moment ago."""

    def renew(self, seconds: int | None = None) -> None:
        """Extend it. LeaseHeldError if it was lost."""

    def release(self) -> None:
        """Let others take it."""


class PublishedState(Protocol):
    """What is published, what waits, and what works on it."""

    def pointer(self) -> Pointer:
        """What is published now."""

    def oldest_late_epoch(self, since: datetime) -> datetime | None:
        """The first epoch, at `since` or later, in which events were left to batch; None if there is none."""

    def is_left(self, pointer: Pointer) -> bool:
        """Whether `leave` was called for this publication."""

    def leave(self, publication: int, why: LeftBecause) -> None:
        """Note that there will be no prompt correction before the next publication."""

    def fail(self, publication: int, problem: str) -> None:
        """Note that one has failed."""

    def other_work(self) -> str | None:
        """What recompute is under way, for the operator; None if none is."""

    def reason_to_leave(self) -> LeftBecause | None:
        """Why there should be no prompt correction after the current publication; None if there should."""

    def recompute(self, id_: str) -> Recompute:
        """Its record."""


class PromptCorrection:
    """What one process does: call `step` again and again."""

    def __init__(
        self,
        state: PublishedState,
        lease: Callable[[], PauseLease],
        limits: Limits,
        start: Callable[[], str],
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        """Nothing is started yet.

        Args:
            state: Of the deployment.
            lease: Makes the lease of one rebuild. All have the same name, so that one waits for the pause of another.
            limits: When a rebuild starts.
            start: Starts a rebuild of what has changed in the background, and returns its id.
            now: The clock.
        """
        self._state, self._limits, self._start, self._now = state, limits, start, now
        self._new_lease, self._lease = lease, lease()
        self._running: tuple[int, str] | None = None  # (base publication, recompute id)
        self._failures = 0
        self._waiting_since: datetime | None = None
        self._logged_at: datetime | None = None

    def step(self) -> None:
        """Start a rebuild if one is due, or see whether the one that was started has ended.

        Raises what Cassandra, the object store and `start` raise; nothing has to be undone then.
        """
        if self._running is not None:
            self._follow(*self._running)
        elif self._due():
            self._lease = self._new_lease()
            if has_lease(self._lease.take):
                self._begin()
        else:
            self._note_wait(None)

    def _due(self) -> Pointer | None:
        """What is published, if it has to be followed by a prompt correction."""
        pointer = self._state.pointer()
        if not pointer.publication:
            return None
        epoch = self._state.oldest_late_epoch(pointer.cut)
        if epoch is None or self._now() < epoch + self._limits.epoch + self._limits.delay:
            return None
        return None if self._state.is_left(pointer) else pointer

    def _begin(self) -> None:
        """Start one if all agrees, now that no other process can. What is raised leaves the lease to expire."""
        pointer = self._due()  # another process may have corrected in the meantime
        work = self._state.other_work() if pointer else None
        self._note_wait(work)
        if pointer is None or work is not None:
            self._lease.release()
            return
        if (why := self._state.reason_to_leave()) is not None:
            self._leave(pointer.publication, why)
            return
        id_ = self._start()
        self._running = pointer.publication, id_
        log.info("prompt_correction.started", publication=pointer.publication, recompute=id_)

    def _note_wait(self, work: str | None) -> None:
        """Report for how long late events have waited for that work; None: they do not wait for any.

        What is queued in a scheduler may never begin. Nothing else would say that late events wait for it.
        """
        now = self._now()
        self._waiting_since = None if work is None else self._waiting_since or now
        if self._waiting_since is None:
            self._logged_at = None
            WAITING.set(0)
            return
        long = timedelta(seconds=LONG_WAIT_SECONDS)
        WAITING.set((now - self._waiting_since).total_seconds())
        if now - (self._logged_at or self._waiting_since) >= long:
            self._logged_at = now
            log.warning("prompt_correction.waiting", since=self._waiting_since.isoformat(), waits_for=work)

    def _leave(self, publication: int, why: LeftBecause) -> None:
        self._state.leave(publication, why)
        OUTCOMES.labels("left").inc()
        log.info("prompt_correction.left_to_schedule", publication=publication, reason=why)
        self._lease.release()

    def _follow(self, publication: int, id_: str) -> None:
        done = self._state.recompute(id_)
        if done.state not in ENDS:
            if not has_lease(self._lease.renew):  # Cassandra was away for longer than it lasts
                has_lease(self._lease.take)
            return
        self._running = None
        if done.problem and done.problem.code == RecomputeNotSmallError.code:  # more days were archived meanwhile
            self._leave(publication, LeftBecause.NOT_SMALL)
            return
        OUTCOMES.labels(done.state).inc()
        log.info("prompt_correction.ended", recompute=id_, state=done.state)
        self._failures = self._failures + 1 if done.state == "failed" else 0
        if done.state == "failed":
            problem = done.problem.message if done.problem else "it is not known why"
            self._state.fail(publication, f"recompute `{id_}`: {problem}")
        pause = min(self._limits.pause * 2**self._failures, max(self._limits.pause, LONGEST_PAUSE_SECONDS))
        has_lease(lambda: self._lease.renew(pause))


@dataclass(frozen=True)
class StoredState:
    """`PublishedState` of a deployment.

    Attributes:
        context: The deployment.
        others: What works on a recompute without holding its lock at the moment, such as a scheduler; None: nothing.
    """

    context: "BatchContext"
    others: Callable[[], str | None]

    def pointer(self) -> Pointer:
        """See `PublishedState`."""
        return PointerRow(self.context.session).read()

    def oldest_late_epoch(self, since: datetime) -> datetime | None:
        """See `PublishedState`."""
        return self._alarms.oldest(LATE_EVENTS, since)

    def is_left(self, pointer: Pointer) -> bool:
        """See `PublishedState`."""
        return self._alarms.is_noticed(LATE_EVENTS_LEFT, pointer.cut, str(pointer.publication))

    def leave(self, publication: int, why: LeftBecause) -> None:
        """See `PublishedState`."""
        self._alarms.notice(LATE_EVENTS_LEFT, datetime.now(UTC), str(publication), why)

    def fail(self, publication: int, problem: str) -> None:
        """See `PublishedState`."""
        self._alarms.notice(LATE_EVENTS_FAILED, datetime.now(UTC), str(publication), problem)

    def other_work(self) -> str | None:
        """See `PublishedState`."""
        return "a recompute that runs" if is_any_running(self.context.session) else self.others()

    def reason_to_leave(self) -> LeftBecause | None:
        """See `PublishedState`."""
        pointer = self.pointer()
        published = PointerRow(self.context.session).publication(pointer.publication)
        if published is not None and published.restores:
            return LeftBecause.ROLLED_BACK
        if dict(pointer.definitions) != dict(self.context.definitions):
            return LeftBecause.CHANGED_DEFINITIONS
        plan = RecomputePlanner(self.context).expected()
        fits = is_small(plan, self.context.few_events, self.context.prompt_correction_days)
        return None if fits else LeftBecause.NOT_SMALL

    def recompute(self, id_: str) -> Recompute:
        """See `PublishedState`."""
        return Recomputes(self.context.session).find(id_)

    @property
    def _alarms(self) -> AlarmTable:
        return AlarmTable(self.context.session)
