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

from master_dataset import tracing
from master_dataset.errors import BrokerUnavailableError, CassandraUnavailableError
from master_dataset.kafka.producer import Delivery, DeliveryStatus, ProducerRecord, SentRecords
from master_dataset.parsing.columnar.reader import WORTHWHILE, columnar_reader
from master_dataset.parsing.json_bytes import MAX_BYTES
from master_dataset.parsing.masking import mask_value
from master_dataset.parsing.parse import parse
from master_dataset.parsing.results import DeadLetter, Reason
from master_dataset.registry.stores import DEFAULT_TERMS, Store, Terms
from master_dataset.source import Source
from serving_layer.errors import TooBusyError
from serving_layer.fair_semaphore import FairSemaphore
from serving_layer.ingest.events_body import EventsBody
from serving_layer.ingest.tokens import Sent, TokenWriter
from serving_layer.limits import LIMITS, Limits
from serving_layer.responses.dead_letters import EventOutcome, EventOutcomes, EventStatus
from views.control.token import EventToken


class EventResult(NamedTuple):
    """What happened to one event.

    `reason` is a stable code, `pointer` the JSON pointer of the field (empty for the whole record). `sentence` never
    quotes the value.
    """

    outcome: EventStatus
    reason: str | None = None
    pointer: str | None = None
    sentence: str | None = None

    @classmethod
    def rejected(cls, dead_letter: DeadLetter) -> "EventResult":
        """The result of an event that would become this dead letter."""
        return cls(EventStatus.REJECTED, dead_letter.reason, dead_letter.field, dead_letter.sentence)


ACCEPTED = EventResult(EventStatus.ACCEPTED)
UNKNOWN = EventResult(
    EventStatus.UNKNOWN,
    BrokerUnavailableError.code,
    None,
    "The broker did not confirm it in time. If you send it again, it counts once.",
)
TOO_LARGE = EventResult(EventStatus.REJECTED, Reason.TOO_LARGE, "", f"The record is larger than {MAX_BYTES:,} bytes.")
RECENT_DAYS = 31
"""Events of these days cost no more than their bytes."""
_DAY_MS = 86_400_000
FOREIGN_STORE, TOO_OLD = "foreign_store", "too_old"
"""The reasons that do not come from the parser: one depends on the sender, one on a setting."""


def _foreign_store(pointer: str) -> EventResult:
    """Reject a store that is not the sender's, in the same way whether or not the store exists."""
    sentence = f"`{pointer}` names a store that does not belong to the sender."
    return EventResult(EventStatus.REJECTED, FOREIGN_STORE, pointer, sentence)


def _too_old(pointer: str, days: int) -> EventResult:
    sentence = f"`{pointer}` lies more than {days:,} days before the record was received."
    return EventResult(EventStatus.REJECTED, TOO_OLD, pointer, sentence)


class EventResults:
    """The results of a request's events, in their order; there is at least one."""

    def __init__(self, items: Sequence[EventResult], token: EventToken | None = None) -> None:
        """Set the results of a request.

        Args:
            items: one per event.
            token: of the accepted ones; None if it is not known where they are.
        """
        self.items, self.token = items, token
        self.counts = collections.Counter(item.outcome for item in items)
        self.past_days = 0
        """How many different days before the last `RECENT_DAYS` the events that were sent are of."""

    def status(self) -> HTTPStatus:
        """202 if all are accepted, 422 if all are rejected, else 207. BrokerUnavailableError if all are unknown."""
        if self.counts[EventStatus.UNKNOWN] == len(self.items):
            message = "The broker did not confirm any of the events in time."
            raise BrokerUnavailableError(message, do="Send the same request again: duplicates count once.")
        if self.counts[EventStatus.ACCEPTED] == len(self.items):
            return HTTPStatus.ACCEPTED
        none = self.counts[EventStatus.REJECTED] == len(self.items)
        return HTTPStatus.UNPROCESSABLE_ENTITY if none else HTTPStatus.MULTI_STATUS

    def response(self) -> EventOutcomes:
        """The response body: counts, and each event with its index in the request."""
        return EventOutcomes(
            accepted=self.counts[EventStatus.ACCEPTED],
            rejected=self.counts[EventStatus.REJECTED],
            unknown=self.counts[EventStatus.UNKNOWN],
            items=[EventOutcome(at, *item) for at, item in enumerate(self.items)],
            token=self.token.text() if self.token and self.token.topics else None,
        )


class ValidEvent(NamedTuple):
    """An event that may be sent. `happened_ms`: milliseconds since 1970."""

    record: ProducerRecord
    happened_ms: int


@dataclass(frozen=True)
class EventValidator:
    """Decides whether a record is an event that its sender may send. One per request.

    The parser is the one of the archive, so an accepted event does not become a dead letter there, unless it repeats
    an identity with different content, which no single record can show.

    Args:
        source: whose records are validated.
        stores: the registered stores by id.
        tenant: whose stores the sender may send events of; None for any store, registered or not.
        received_us: the time of receipt in microseconds since 1970. The broker's own timestamp is slightly later.
        oldest_days: how long before its receipt an event may have happened. Each day costs the archive a file and
            a rebuild its time, so a key must not name thousands of them.
    """

    source: Source[Any]
    stores: Mapping[str, Store]
    tenant: str | None
    received_us: int
    oldest_days: int = LIMITS.ingest_oldest_days

    def validate(self, records: Sequence[bytes]) -> "Sequence[ValidEvent | EventResult]":
        """Return each record to send, masked and keyed by store as in `galatea ingest`, or why it is rejected."""
        reader = columnar_reader(self.source) if len(records) >= WORTHWHILE else None
        if reader is None:
            return [self._validated(record) for record in records]
        found = reader.stores_and_times(records, self._terms_of, self.received_us)
        return [
            self._validated(record) if event is None else self._admitted(*event, record, is_plain=True)
            for event, record in zip(found, records, strict=True)
        ]

    def _validated(self, record: bytes) -> "ValidEvent | EventResult":
        parsed = parse(self.source, record, self._terms_of, received_us=self.received_us)
        if isinstance(parsed, DeadLetter):
            return EventResult.rejected(parsed)
        return self._admitted(parsed.store, parsed.happened_ms, record, is_plain=False)

    def _admitted(self, store: str, happened_ms: int, record: bytes, *, is_plain: bool) -> "ValidEvent | EventResult":
        """The event to send. `is_plain`: there is nothing to mask, as the columnar reader is sure of it."""
        if self.tenant is not None and self._own(store) is None:
            return _foreign_store(f"/{self.source.store}")
        if happened_ms < self.received_us // 1000 - self.oldest_days * _DAY_MS:
            return _too_old(f"/{self.source.happened_at}", self.oldest_days)
        value = record if is_plain else mask_value(self.source, record)
        return ValidEvent(ProducerRecord(store.encode(), value), happened_ms)

    def _own(self, store: str) -> Store | None:
        """The registered store of this id that the sender may send events of; None if there is none."""
        known = self.stores.get(store)
        return known if known and self.tenant in (None, known.tenant) else None

    def _terms_of(self, store: str) -> Terms:
        """Default terms for stores of others, as for unknown ones: the reason of a rejection would tell them apart."""
        own = self._own(store)
        return own.terms if own else DEFAULT_TERMS


DELIVERY_TIMEOUT_SECONDS = 7.0
"""A safety net: the producer itself gives up earlier."""
INLINE_BYTES, INLINE_EVENTS = 16_384, 100
"""Bodies up to this size are validated on the event loop: it takes milliseconds, and a thread costs time too."""
QUEUED_BODIES, QUEUED_BODIES_OF_TENANT = 3, 2
"""For the thread that validates: so many that it need not wait, and so few that another tenant's body is soon next."""
RESULTS = {
    DeliveryStatus.ACKNOWLEDGED: ACCEPTED,
    DeliveryStatus.UNCONFIRMED: UNKNOWN,
    DeliveryStatus.TOO_LARGE: TOO_LARGE,
}
EVENTS = Counter("galatea_ingested_events", "Events received over HTTP, by outcome.", ("source", "outcome"))

Registry = Callable[[], Awaitable[tuple[str, Mapping[str, Store]]]]


class EventProducer(Protocol):
    """Sends records: `master_dataset.kafka.producer.AsyncProducer`, or a fake in tests."""

    def send(self, topic: str, records: Sequence[ProducerRecord]) -> SentRecords:
        """Queue all records in order. Raises BufferError, and queues none, if there is no room."""


class IngestService:
    """Ingests the events of requests. One per process and event loop."""

    def __init__(  # noqa: PLR0913 - the parts of the service
        self,
        producer: EventProducer,
        registry: Registry,
        now_us: Callable[[], int],
        limits: Limits = LIMITS,
        refuse_low: Callable[[], None] = lambda: None,
        *,
        tokens: TokenWriter,
    ) -> None:
        """Set the parts of the service.

        Args:
            producer: sends the records.
            registry: reads the version of the store registry and its stores.
            now_us: the current time in microseconds since 1970.
            limits: of requests.
            refuse_low: raises DiskLowError if the broker's disk is nearly full.
            tokens: makes the tokens of accepted events.
        """
        self._tokens = tokens
        self._producer, self._registry, self._now_us = producer, registry, now_us
        self._limits, self.refuse_low = limits, refuse_low
        self._stores: Mapping[str, Store] | None = None
        self.in_flight = 0
        # A thread of its own, so that large requests block neither the event loop nor the threads of queries. One is
        # enough: validation is Python code, which runs in one thread at a time anyway.
        self._validation = ThreadPoolExecutor(1, "validation")
        self._semaphore = FairSemaphore(QUEUED_BODIES, QUEUED_BODIES_OF_TENANT)

    @contextmanager
    def admitted(self) -> Iterator[None]:
        """Count a request while it is in progress, once its body has arrived: slow senders do not count.

        Raises:
            TooBusyError: too many are in progress.
        """
        limit = self._limits.ingests_in_flight
        if self.in_flight >= limit:
            raise TooBusyError(f"{limit} requests with events are already in progress.", do="Send the request again.")
        self.in_flight += 1
        try:
            yield
        finally:
            self.in_flight -= 1

    async def ingest(self, source: Source[Any], body: EventsBody, tenant: str | None) -> EventResults:
        """Validate the events of a body, send the valid ones, and wait for the broker.

        Args:
            source: whose events they are.
            body: the body of the request.
            tenant: whose stores the sender may send events of; None for any store.

        Returns:
            What happened to each event.

        Raises:
            TooBusyError: the producer's buffer is full; nothing was sent.
            CassandraUnavailableError: the store registry could not be read; nothing was sent.
            RequestError: whatever `EventsBody.records` raises.
        """
        oldest = self._limits.ingest_oldest_days
        validator = EventValidator(source, await self._known_stores(), tenant, self._now_us(), oldest)
        validated = await self._validated(validator, body)
        results = await self._send(source.topic, validated)
        recent = self._now_us() // 1000 // _DAY_MS - RECENT_DAYS
        days = {each.happened_ms // _DAY_MS for each in validated if isinstance(each, ValidEvent)}
        results.past_days = sum(day < recent for day in days)
        for outcome, count in results.counts.items():
            EVENTS.labels(source.topic, outcome).inc(count)
        return results

    async def _validated(self, validator: EventValidator, body: EventsBody) -> Sequence[ValidEvent | EventResult]:
        records = None if body.is_gzip or len(body.body) > INLINE_BYTES else body.records(self._limits)
        is_slow = validator.source.masked  # masking may parse a record many times
        if records is not None and len(records) <= INLINE_EVENTS and not is_slow:
            return validator.validate(records)

        def validate() -> Sequence[ValidEvent | EventResult]:
            return validator.validate(body.records(self._limits) if records is None else records)

        async with self._semaphore.hold(validator.tenant):
            return await asyncio.get_running_loop().run_in_executor(self._validation, validate)

    async def _send(self, topic: str, validated: Sequence[ValidEvent | EventResult]) -> EventResults:
        valid = [each for each in validated if isinstance(each, ValidEvent)]
        if not valid:
            return EventResults([each for each in validated if isinstance(each, EventResult)], EventToken())
        records = [each.record for each in valid]
        attributes: tracing.Attributes = {
            "messaging.system": "kafka",
            "messaging.operation.name": "send",
            "messaging.operation.type": "send",
            "messaging.destination.name": topic,
            "messaging.batch.message_count": len(records),
        }
        with tracing.span(f"send {topic}", "producer", attributes):
            if headers := tracing.record_headers():
                records = [each._replace(headers=headers) for each in records]
            deliveries = await self._sent(topic, records)
        sent = [Sent(delivery, each.happened_ms) for delivery, each in zip(deliveries, valid, strict=True)]
        outcomes = iter([RESULTS[each.status] for each in deliveries])
        results = [next(outcomes) if isinstance(each, ValidEvent) else each for each in validated]
        return EventResults(results, await self._tokens.token(topic, sent))

    async def _sent(self, topic: str, records: Sequence[ProducerRecord]) -> Sequence[Delivery]:
        try:
            sent = self._producer.send(topic, records)
        except BufferError as error:
            raise TooBusyError(
                "Too many events are already waiting for the broker.", do="Send the same request again."
            ) from error
        return await sent.deliveries(DELIVERY_TIMEOUT_SECONDS)

    async def _known_stores(self) -> Mapping[str, Store]:
        """While Cassandra is unavailable, no store can be registered, so the stores last read are still complete."""
        try:
            _, self._stores = await self._registry()
        except CassandraUnavailableError:
            if self._stores is None:
                raise
        return self._stores
