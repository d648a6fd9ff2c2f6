"""One endpoint at work: its consumer group, its calls, and its state.

A `DesiredEndpoint` says what should run, an `EndpointWorker` is what runs, and a `RunningEndpoint` is the dispatcher's
record of it, including failures that began before this process.
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
    """Consumes the alerts of one endpoint and delivers them. Runs once."""

    def __init__(self, client: WebhookClient, delivery: Delivery, consumer: KeyedConsumer) -> None:
        """`client`: makes the calls; closed with the worker.

        `delivery`: the handler to which `consumer` passes records.
        """
        self._client, self._delivery, self._consumer = client, delivery, consumer

    async def run(self) -> None:
        """Until it is stopped. Raises what `KeyedConsumer.run` raises."""
        async with self._client:
            await self._consumer.run()

    def stop(self) -> None:
        """Start no more calls; `run` returns when the current ones are done or time out."""
        self._consumer.stop()

    def skip(self, places: Collection[Place]) -> None:
        """Continue without these records; one that blocks its store is dropped at once."""
        new = frozenset(places) - self._delivery.skipped
        self._delivery.skipped = frozenset(places)
        for place in new:
            self._consumer.wake(*place)

    @property
    def failing_since(self) -> float | None:
        """Since when (seconds since 1970) a store has been retried; None if none is."""
        return self._consumer.failing_since

    def state(self, failing_since: float | None) -> EndpointState:
        """The state now. `failing_since`: as it is to be reported."""
        backlog, client = self._consumer.backlog, self._client
        return EndpointState(
            failing_since=_at(failing_since),
            status=client.status,
            answered_at=_at(client.answered_at),
            delivered_at=_at(self._delivery.delivered_at),
            records=backlog.records,
            oldest_at=None if backlog.oldest_ms is None else _at(backlog.oldest_ms / 1000),
            blocking=tuple(_blocking(each) for each in self._consumer.blocked[:MOST_BLOCKED]),
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
"""Within that time, whatever was failing when the process before ended has been retried."""
SEEN_SECONDS = 30.0
"""The state is reported at least this often, even if it has not changed."""


class Worker(Protocol):
    """See `EndpointWorker`."""

    @property
    def failing_since(self) -> float | None:
        """Since when (seconds since 1970) a store has been retried; None if none is."""

    async def run(self) -> None:
        """Until it is stopped."""

    def stop(self) -> None:
        """Start no more calls."""

    def skip(self, places: frozenset[tuple[str, int, int]]) -> None:
        """Continue without these records."""

    def state(self, failing_since: float | None) -> EndpointState:
        """The state now."""


@dataclass
class RunningEndpoint:
    """`inherited`: since when it had been failing when it was started at `begun_at`."""

    endpoint: Endpoint
    worker: Worker
    task: asyncio.Task[None]
    begun_at: float
    inherited: float | None
    is_ending: bool = False
    _reported: EndpointState | None = None
    _reported_at: float = 0.0

    def failing_since(self, now: float) -> float | None:
        """None once nothing fails and what failed before this process has been retried."""
        own = self.worker.failing_since
        if own is None and now - self.begun_at > SETTLED_SECONDS:
            self.inherited = None
        return min((each for each in (own, self.inherited) if each is not None), default=None)

    def is_beyond(self, now: float, seconds: float) -> bool:
        """Whether it has failed for longer than that, and still fails."""
        since = self.failing_since(now)
        return self.worker.failing_since is not None and since is not None and now - since > seconds

    def news(self, now: float) -> EndpointState | None:
        """The state if it has to be reported: because it has changed, or from time to time."""
        state = self.worker.state(self.failing_since(now))
        if state == self._reported and now - self._reported_at < SEEN_SECONDS:
            return None
        self._reported, self._reported_at = state, now
        return state

    def stop(self) -> None:
        """Stop the worker. It has stopped when its task has ended."""
        self.is_ending = True
        self.worker.stop()


class DesiredEndpoint(NamedTuple):
    """An endpoint that is not removed.

    Attributes:
        endpoint: The endpoint.
        is_suspended: Whether it must not be called.
        failing_since: As reported last, in seconds since 1970.
        skipped: Records to continue without.
        has_begun: Whether its consumer group has committed a position before.
    """

    endpoint: Endpoint
    is_suspended: bool = False
    failing_since: float | None = None
    skipped: frozenset[Place] = frozenset()
    has_begun: bool = False


class EndpointStore(Protocol):
    """Where endpoints are stored. Every method raises DependencyUnavailableError."""

    async def desired(self) -> Sequence[DesiredEndpoint]:
        """The endpoints that are not removed."""

    async def mark_begun(self, endpoint: Endpoint) -> None:
        """Record that its consumer group has committed a position."""

    async def suspend(self, endpoint: Endpoint) -> None:
        """Stop calls until it is resumed."""

    async def save_state(self, endpoint: Endpoint, state: EndpointState) -> None:
        """Store its state."""
