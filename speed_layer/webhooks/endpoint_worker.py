"""One endpoint at work: its consumer group, its calls, and how it is doing.

An endpoint that is called, and since when it fails, also beyond the process that saw it begin.

What is wanted of whoever calls endpoints, and where it says how they are doing.
"""

import asyncio
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NamedTuple, Protocol

from master_dataset.kafka.consumer import BlockedKey, KeyedConsumer
from master_dataset.webhooks.endpoint import MOST_BLOCKED, BlockedRecord, Endpoint, EndpointState
from speed_layer.webhooks.client import WebhookClient
from speed_layer.webhooks.delivery import Delivery, Place


class EndpointWorker:
    """Runs once."""

    def __init__(self, sender: WebhookClient, delivery: Delivery, consuming: KeyedConsumer) -> None:
        """`sender`: its calls, whose connections end with it. `delivery`: what `consuming` hands records to."""
        self._sender, self._delivery, self._consuming = sender, delivery, consuming

    async def run(self) -> None:
        """Until it is stopped. What Consuming raises."""
        async with self._sender:
            await self._consuming.run()

    def stop(self) -> None:
        """Call no more; `run` returns when what is under way is done, or its time is over."""
        self._consuming.stop()

    def skip(self, places: Collection[Place]) -> None:
        """Go on without these records; one that blocks its store is gone at once."""
        new = frozenset(places) - self._delivery.skipped
        self._delivery.skipped = frozenset(places)
        for place in new:
            self._consuming.wake(*place)

    @property
    def failing_since(self) -> float | None:
        """Since when, in seconds since 1970, a store is tried again and again; None if none is."""
        return self._consuming.failing_since

    def state(self, failing_since: float | None) -> EndpointState:
        """How it is doing now. `failing_since`: as it is to be told."""
        behind, sender = self._consuming.backlog, self._sender
        return EndpointState(
            failing_since=_at(failing_since),
            status=sender.status,
            answered_at=_at(sender.answered_at),
            delivered_at=_at(self._delivery.delivered_at),
            records=behind.records,
            oldest_at=None if behind.oldest_ms is None else _at(behind.oldest_ms / 1000),
            blocking=tuple(_blocking(each) for each in self._consuming.blocked[:MOST_BLOCKED]),
            refusing_since=_at(self._delivery.refusing_since),
        )


def _blocking(blocked: BlockedKey) -> BlockedRecord:
    record = blocked.record
    store = record.key.decode(errors="replace")
    since = datetime.fromtimestamp(blocked.since, UTC)
    return BlockedRecord(record.topic, record.partition, record.offset, store, since, blocked.why)


def _at(seconds: float | None) -> datetime | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC)


SETTLED_SECONDS = 60.0
"""Within it whatever blocked a store when the process before ended was tried again."""
SEEN_SECONDS = 30.0
"""How it is doing is said at least so often, though nothing has changed."""


class Worker(Protocol):
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
class RunningEndpoint:
    """`inherited`: since when it failed, as was known when it began at `begun_at`."""

    endpoint: Endpoint
    telling: Worker
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


class DesiredEndpoint(NamedTuple):
    """An endpoint that is not removed. `failing_since`: as it was told last. `skipped`: what it goes on without.

    `has_begun`: the broker knew where it stands.
    """

    endpoint: Endpoint
    is_suspended: bool = False
    failing_since: float | None = None
    skipped: frozenset[Place] = frozenset()
    has_begun: bool = False


class EndpointStore(Protocol):
    """All of them. Every method raises Unavailable."""

    async def wanted(self) -> Sequence[DesiredEndpoint]:
        """Those that are not removed."""

    async def begun(self, endpoint: Endpoint) -> None:
        """From now on the broker knows where it stands."""

    async def suspend(self, endpoint: Endpoint) -> None:
        """Call it no more until somebody resumes it."""

    async def see(self, endpoint: Endpoint, state: EndpointState) -> None:
        """How it is doing."""
