"""An endpoint that is called, and since when it fails, also beyond the process that saw it begin."""

import asyncio
from dataclasses import dataclass
from typing import Protocol

from master_dataset.webhooks.endpoint import Endpoint
from master_dataset.webhooks.endpoint_state import EndpointState

SETTLED_SECONDS = 60.0
"""Within it whatever blocked a store when the process before ended was tried again."""
SEEN_SECONDS = 30.0
"""How it is doing is said at least so often, though nothing has changed."""


class AtWork(Protocol):
    """Telling."""

    @property
    def failing_since(self) -> float | None:
        """Since when, in seconds since 1970, a store is tried again and again."""

    async def run(self) -> None:
        """Until it is stopped."""

    def stop(self) -> None:
        """Call no more."""

    def skip(self, places: frozenset[tuple[str, int, int]]) -> None:
        """Go on without these records."""

    def state(self, failing_since: float | None) -> EndpointState:
        """How it is doing now."""


@dataclass
class Running:
    """`inherited`: since when it failed, as was known when it began at `begun_at`."""

    endpoint: Endpoint
    telling: AtWork
    task: asyncio.Task[None]
    begun_at: float
    inherited: float | None
    is_ending: bool = False
    _said: EndpointState | None = None
    _said_at: float = 0.0

    def failing_since(self, now: float) -> float | None:
        """None once nothing fails, and whatever did so before this process was tried again."""
        own = self.telling.failing_since
        if own is None and now - self.begun_at > SETTLED_SECONDS:
            self.inherited = None
        return min((each for each in (own, self.inherited) if each is not None), default=None)

    def is_beyond(self, now: float, seconds: float) -> bool:
        """Whether it has failed for so long, and does so still."""
        since = self.failing_since(now)
        return self.telling.failing_since is not None and since is not None and now - since > seconds

    def news(self, now: float) -> EndpointState | None:
        """How it is doing, if that is to be said."""
        state = self.telling.state(self.failing_since(now))
        if state == self._said and now - self._said_at < SEEN_SECONDS:
            return None
        self._said, self._said_at = state, now
        return state

    def stop(self) -> None:
        """Call it no more; it is gone when its task has ended."""
        self.is_ending = True
        self.telling.stop()
