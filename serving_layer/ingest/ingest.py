"""Takes the events of a request: judges each, hands over what is good, and answers when the broker has answered."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, Protocol

from prometheus_client import Counter

from master_dataset.errors import StoreUnavailable
from master_dataset.kafka.producer import Fate, Outgoing
from master_dataset.registry.stores import Store
from master_dataset.source import Source
from serving_layer.api.limits import LIMITS, Limits
from serving_layer.errors import TooBusy
from serving_layer.ingest.body import Posted
from serving_layer.ingest.outcomes import ACCEPTED, TOO_LARGE, UNKNOWN, Item, Outcomes
from serving_layer.ingest.validator import Judge

PATIENCE_SECONDS = 7.0
"""The courier gives up earlier; this is for the day on which it does not."""
SMALL = 16_384
"""Bytes of a body that is judged at once: the worst of them takes some milliseconds, and a thread its own time."""
ITEM_OF = {Fate.ACKNOWLEDGED: ACCEPTED, Fate.UNCONFIRMED: UNKNOWN, Fate.TOO_LARGE: TOO_LARGE}
EVENTS = Counter(
    "galatea_ingested_events", "Events that were sent over HTTP, by what became of them.", ("source", "outcome")
)

Registry = Callable[[], Awaitable[tuple[int, Mapping[str, Store]]]]


class Carrier(Protocol):
    """Where records go: `master_dataset.kafka.producer.Courier`, or a double of it."""

    def send(self, topic: str, records: Sequence[Outgoing]) -> Sequence[asyncio.Future[Fate]]:
        """Take all of them, in their order; BufferError, and none is taken, if there is no room."""


class Ingest:
    """One per process and event loop."""

    def __init__(
        self,
        carrier: Carrier,
        registry: Registry,
        now_us: Callable[[], int],
        limits: Limits = LIMITS,
        refuse_low: Callable[[], None] = lambda: None,
    ) -> None:
        """`registry`: its version and the stores in it. `now_us`: microseconds since 1970. `refuse_low`: DiskLow."""
        self._carrier, self._registry, self._now_us = carrier, registry, now_us
        self._limits, self.refuse_low = limits, refuse_low
        self._stores: Mapping[str, Store] | None = None
        self.in_flight = 0
        # A thread of its own, so that large requests keep neither the event loop nor the threads of readers busy. One
        # is enough: judging is Python, of which one thread runs at a time anyway.
        self._judging = ThreadPoolExecutor(1, "judging")

    @contextmanager
    def admitted(self) -> Iterator[None]:
        """Around a request whose body has arrived: a slow sender takes no place from others. TooBusy."""
        most = self._limits.ingests_in_flight
        if self.in_flight >= most:
            raise TooBusy(f"{most} requests that bring events are in flight already.", do="Send it again.")
        self.in_flight += 1
        try:
            yield
        finally:
            self.in_flight -= 1

    async def take(self, source: Source[Any], posted: Posted, tenant: str | None) -> Outcomes:
        """What became of each event; `tenant` as in Judge. TooBusy, and nothing was sent; StoreUnavailable, likewise.

        What Posted refuses is refused.
        """
        judge = Judge(source, await self._known_stores(), tenant, self._now_us())
        if posted.is_gzip or len(posted.body) > SMALL or source.masked:  # masking may parse a record many times
            running = asyncio.get_running_loop().run_in_executor(self._judging, _judged, judge, posted, self._limits)
            judged = await running
        else:
            judged = _judged(judge, posted, self._limits)
        outcomes = Outcomes(await self._sent(source.topic, judged))
        for outcome, count in outcomes.counts.items():
            EVENTS.labels(source.topic, outcome).inc(count)
        return outcomes

    async def _sent(self, topic: str, judged: Sequence[Outgoing | Item]) -> Sequence[Item]:
        try:
            waiting = self._carrier.send(topic, [each for each in judged if isinstance(each, Outgoing)])
        except BufferError as error:
            raise TooBusy("Too many events wait for the broker already.", do="Send the same again.") from error
        if waiting:
            await asyncio.wait(waiting, timeout=PATIENCE_SECONDS)
        told = iter([ITEM_OF[each.result()] if each.done() else UNKNOWN for each in waiting])
        return [next(told) if isinstance(each, Outgoing) else each for each in judged]

    async def _known_stores(self) -> Mapping[str, Store]:
        """While Cassandra is away no store can be registered, so what was read last is what there is."""
        try:
            _, self._stores = await self._registry()
        except StoreUnavailable:
            if self._stores is None:
                raise
        return self._stores


def _judged(judge: Judge, posted: Posted, limits: Limits) -> Sequence[Outgoing | Item]:
    return [judge.judged(record) for record in posted.records(limits)]
