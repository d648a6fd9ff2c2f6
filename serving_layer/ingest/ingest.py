"""Ingest events over HTTP: validate each event, send the valid ones to Kafka, respond once the broker has answered."""

import asyncio
import collections
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, NamedTuple, Protocol

from prometheus_client import Counter

from master_dataset.errors import BrokerUnavailableError, CassandraUnavailableError
from master_dataset.kafka.producer import DeliveryStatus, ProducerRecord
from master_dataset.parsing.json_bytes import MAX_BYTES
from master_dataset.parsing.masking import mask_value
from master_dataset.parsing.parse import parse
from master_dataset.parsing.results import DeadLetter, Reason
from master_dataset.registry.stores import DEFAULT_TERMS, Store, Terms
from master_dataset.source import Source
from serving_layer.api.limits import LIMITS, Limits
from serving_layer.errors import TooBusyError
from serving_layer.ingest.events_body import EventsBody
from serving_layer.responses.events import EventOutcome, EventOutcomes, EventStatus


class EventResult(NamedTuple):
    """One event. `reason`: a code that stays. `pointer`: the JSON pointer of the field, empty for the whole record.

    `sentence` never quotes the value.
    """

    outcome: EventStatus
    reason: str | None = None
    pointer: str | None = None
    sentence: str | None = None

    @classmethod
    def refused(cls, letter: DeadLetter) -> "EventResult":
        """What would become a dead letter."""
        return cls(EventStatus.REJECTED, letter.reason, letter.field, letter.sentence)


ACCEPTED = EventResult(EventStatus.ACCEPTED)
UNKNOWN = EventResult(
    EventStatus.UNKNOWN,
    BrokerUnavailableError.code,
    None,
    "The broker did not confirm it in time; sent again it counts once.",
)
TOO_LARGE = EventResult(EventStatus.REJECTED, Reason.TOO_LARGE, "", f"The record is larger than {MAX_BYTES:,} bytes.")
FOREIGN_STORE = "foreign_store"
"""The one reason that is none of the parser's: it depends on who sends."""


def foreign(pointer: str) -> EventResult:
    """An event of a store that is not the sender's, whether or not there is such a store."""
    return EventResult(
        EventStatus.REJECTED, FOREIGN_STORE, pointer, f"`{pointer}` names a store that is none of the sender's."
    )


class EventResults:
    """Of one request, in the order of its events; there is at least one."""

    def __init__(self, items: Sequence[EventResult]) -> None:
        """`items`: one for each event."""
        self.items = items
        self.counts = collections.Counter(item.outcome for item in items)

    def status(self) -> HTTPStatus:
        """202 if all are accepted, 422 if all are rejected, else 207. BrokerUnavailableError if all are unknown."""
        if self.counts[EventStatus.UNKNOWN] == len(self.items):
            message = "The broker did not confirm any of the events in time."
            raise BrokerUnavailableError(message, do="Send the same again: what arrives twice counts once.")
        if self.counts[EventStatus.ACCEPTED] == len(self.items):
            return HTTPStatus.ACCEPTED
        none = self.counts[EventStatus.REJECTED] == len(self.items)
        return HTTPStatus.UNPROCESSABLE_ENTITY if none else HTTPStatus.MULTI_STATUS

    def response(self) -> EventOutcomes:
        """Counts, and every event by its place in the request, from 0 on."""
        return EventOutcomes(
            accepted=self.counts[EventStatus.ACCEPTED],
            rejected=self.counts[EventStatus.REJECTED],
            unknown=self.counts[EventStatus.UNKNOWN],
            items=[EventOutcome(at, *item) for at, item in enumerate(self.items)],
        )


@dataclass(frozen=True)
class EventValidator:
    """Of one request. `tenant`: whose stores the sender may speak for; None: any store, registered or not.

    `received_us`: microseconds since 1970 by this process's clock. The broker's own stamp is a little later.
    """

    source: Source[Any]
    stores: Mapping[str, Store]
    tenant: str | None
    received_us: int

    def judged(self, record: bytes) -> ProducerRecord | EventResult:
        """What is to be sent, masked and keyed by store as `galatea ingest` does it; or why it is rejected."""
        parsed = parse(self.source, record, self._terms_of, received_us=self.received_us)
        if isinstance(parsed, DeadLetter):
            return EventResult.refused(parsed)
        if self.tenant is not None and not self._is_own(parsed.store):
            return foreign(f"/{self.source.store}")
        return ProducerRecord(parsed.store.encode(), mask_value(self.source, record))

    def _is_own(self, store: str) -> bool:
        return store in self.stores and self.stores[store].tenant == self.tenant

    def _terms_of(self, store: str) -> Terms:
        return self.stores[store].terms if store in self.stores else DEFAULT_TERMS


PATIENCE_SECONDS = 7.0
"""The courier gives up earlier; this is for the day on which it does not."""
SMALL = 16_384
"""Bytes of a body that is judged at once: the worst of them takes some milliseconds, and a thread its own time."""
ITEM_OF = {
    DeliveryStatus.ACKNOWLEDGED: ACCEPTED,
    DeliveryStatus.UNCONFIRMED: UNKNOWN,
    DeliveryStatus.TOO_LARGE: TOO_LARGE,
}
EVENTS = Counter(
    "galatea_ingested_events", "Events that were sent over HTTP, by what became of them.", ("source", "outcome")
)

Registry = Callable[[], Awaitable[tuple[int, Mapping[str, Store]]]]


class EventProducer(Protocol):
    """Where records go: `master_dataset.kafka.producer.Courier`, or a double of it."""

    def send(self, topic: str, records: Sequence[ProducerRecord]) -> Sequence[asyncio.Future[DeliveryStatus]]:
        """Take all of them, in their order; BufferError, and none is taken, if there is no room."""


class IngestService:
    """One per process and event loop."""

    def __init__(
        self,
        carrier: EventProducer,
        registry: Registry,
        now_us: Callable[[], int],
        limits: Limits = LIMITS,
        refuse_low: Callable[[], None] = lambda: None,
    ) -> None:
        """`registry`: its version and the stores in it. `now_us`: microseconds since 1970. `refuse_low`: DiskLowError."""
        self._carrier, self._registry, self._now_us = carrier, registry, now_us
        self._limits, self.refuse_low = limits, refuse_low
        self._stores: Mapping[str, Store] | None = None
        self.in_flight = 0
        # A thread of its own, so that large requests keep neither the event loop nor the threads of readers busy. One
        # is enough: judging is Python, of which one thread runs at a time anyway.
        self._judging = ThreadPoolExecutor(1, "judging")

    @contextmanager
    def admitted(self) -> Iterator[None]:
        """Around a request whose body has arrived: a slow sender takes no place from others. TooBusyError."""
        most = self._limits.ingests_in_flight
        if self.in_flight >= most:
            raise TooBusyError(f"{most} requests that bring events are in flight already.", do="Send it again.")
        self.in_flight += 1
        try:
            yield
        finally:
            self.in_flight -= 1

    async def take(self, source: Source[Any], posted: EventsBody, tenant: str | None) -> EventResults:
        """What became of each event; `tenant` as in EventValidator. TooBusyError, and nothing was sent; CassandraUnavailableError, likewise.

        What EventsBody refuses is refused.
        """
        judge = EventValidator(source, await self._known_stores(), tenant, self._now_us())
        if posted.is_gzip or len(posted.body) > SMALL or source.masked:  # masking may parse a record many times
            running = asyncio.get_running_loop().run_in_executor(self._judging, _judged, judge, posted, self._limits)
            judged = await running
        else:
            judged = _judged(judge, posted, self._limits)
        outcomes = EventResults(await self._sent(source.topic, judged))
        for outcome, count in outcomes.counts.items():
            EVENTS.labels(source.topic, outcome).inc(count)
        return outcomes

    async def _sent(self, topic: str, judged: Sequence[ProducerRecord | EventResult]) -> Sequence[EventResult]:
        try:
            waiting = self._carrier.send(topic, [each for each in judged if isinstance(each, ProducerRecord)])
        except BufferError as error:
            raise TooBusyError("Too many events wait for the broker already.", do="Send the same again.") from error
        if waiting:
            await asyncio.wait(waiting, timeout=PATIENCE_SECONDS)
        told = iter([ITEM_OF[each.result()] if each.done() else UNKNOWN for each in waiting])
        return [next(told) if isinstance(each, ProducerRecord) else each for each in judged]

    async def _known_stores(self) -> Mapping[str, Store]:
        """While Cassandra is away no store can be registered, so what was read last is what there is."""
        try:
            _, self._stores = await self._registry()
        except CassandraUnavailableError:
            if self._stores is None:
                raise
        return self._stores


def _judged(judge: EventValidator, posted: EventsBody, limits: Limits) -> Sequence[ProducerRecord | EventResult]:
    return [judge.judged(record) for record in posted.records(limits)]
