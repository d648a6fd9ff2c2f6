"""One endpoint at work: its consumer group, its calls, and how it is doing."""

from collections.abc import Collection
from datetime import UTC, datetime

from master_dataset.kafka.consumer import Blocked, Consuming
from master_dataset.webhooks.endpoint_state import MOST_BLOCKED, Blocking, EndpointState
from speed_layer.webhooks.delivery import Delivery, Place
from speed_layer.webhooks.sender import Sender


class Telling:
    """Runs once."""

    def __init__(self, sender: Sender, delivery: Delivery, consuming: Consuming) -> None:
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
        behind, sender = self._consuming.behind, self._sender
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


def _blocking(blocked: Blocked) -> Blocking:
    record = blocked.record
    store = record.key.decode(errors="replace")
    since = datetime.fromtimestamp(blocked.since, UTC)
    return Blocking(record.topic, record.partition, record.offset, store, since, blocked.why)


def _at(seconds: float | None) -> datetime | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC)
