"""What an audit of alerts reads and writes: two topics in Kafka, and the record of audits in Cassandra.

A publication does not write alerts itself: it requests records on the topic of corrections, and the alert processor
emits them once.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import orjson
import structlog
from confluent_kafka import Consumer, KafkaException, Message, Producer, TopicPartition

from master_dataset.errors import BrokerUnavailableError
from master_dataset.kafka.client_settings import producer_settings
from master_dataset.kafka.connection import KafkaConnection
from master_dataset.kafka.record import headers_of_message
from master_dataset.kafka.topics import Topics
from views.alerts.alert import (
    ALERTS_TOPIC,
    CORRECTIONS_TOPIC,
    PROCESSOR_GROUP,
    Alert,
    AlertStatus,
    alert_statuses,
    parse_instant_ms,
)
from views.alerts.signatures import AlertSignatures, RecordPlace

if TYPE_CHECKING:
    from cassandra.cluster import Session

_GIVE_UP_SECONDS = 30.0
_MAX_IN_FLIGHT = 10_000

_WAIT_SECONDS = 1.0
_STALLED_SECONDS = 120.0
"""Longer than the broker leaves a transaction open."""
_AHEAD_MS = 24 * 3_600_000
"""How long before its window a record can be written: an event may be an hour ahead of its receipt.

The rest allows for clock differences.
"""
_AT_ONCE = 1000
log = structlog.get_logger()
_QUIET = {"enable.auto.commit": False, "log_level": 2, "error_cb": lambda _: None}


class CorrectionRequest(NamedTuple):
    """A record that a publication requested, and its position."""

    partition: int
    offset: int
    record: Alert


class AlertLog:
    """The topics of one cluster. Every method raises BrokerUnavailableError, and CassandraUnavailableError."""

    def __init__(self, kafka: KafkaConnection, signatures: AlertSignatures) -> None:
        """`kafka`: the cluster. `signatures`: sign requests, and tell which records are ours."""
        self._kafka, self._topics, self._signatures = kafka, Topics(kafka), signatures

    def emitted(self, since_ms: int) -> Iterator[Alert]:
        """The committed alerts about windows that began since then, up to the current end of the topic."""
        return (each.record for each in self._read(ALERTS_TOPIC, since_ms, self._topics.end_offsets(ALERTS_TOPIC)))

    def request_ends(self) -> Mapping[int, int]:
        """The end offsets of the topic of corrections."""
        return self._topics.end_offsets(CORRECTIONS_TOPIC)

    def requests(
        self, since_ms: int, ends: Mapping[int, int], begin: Mapping[int, int] | None = None
    ) -> Iterator[CorrectionRequest]:
        """The requested records about windows that began since then, before `ends` and from `begin` on."""
        return self._read(CORRECTIONS_TOPIC, since_ms, ends, begin)

    def begin_signing(self) -> None:
        """Let requests count from now on only if they are signed. CassandraUnavailableError."""
        self._signatures.begin(CORRECTIONS_TOPIC, self.request_ends())

    def request(self, records: Sequence[Alert]) -> None:
        """Request records. A record that is requested twice is emitted once."""
        failed: list[str] = []

        def delivered(error: object, _: Message) -> None:
            if error is not None:
                failed.append(str(error))

        producer = Producer(producer_settings(self._kafka, "galatea-alert-audit", _GIVE_UP_SECONDS))
        try:
            for each in records:
                while len(producer) >= _MAX_IN_FLIGHT:  # the client's queue is full
                    producer.poll(_WAIT_SECONDS)
                value = each.to_json()
                headers = self._signatures.headers(CORRECTIONS_TOPIC, value)
                producer.produce(CORRECTIONS_TOPIC, value, each.store, headers=headers, on_delivery=delivered)
                producer.poll(0)
            left = producer.flush(2 * _GIVE_UP_SECONDS)
        except (KafkaException, BufferError) as error:
            raise _away(str(error)) from error
        if left or failed:
            raise _away(failed[0] if failed else f"{left} records were not acknowledged")

    def processor_positions(self, topics: Sequence[str]) -> dict[str, dict[int, int]]:
        """The committed positions of the alert processor: the alerts for earlier records have been emitted."""
        consumer = Consumer({**self._kafka.client(), "group.id": PROCESSOR_GROUP, **_QUIET})
        try:
            places = [TopicPartition(topic, part) for topic in topics for part in self._topics.partitions(topic)]
            found: dict[str, dict[int, int]] = {}
            for place in consumer.committed(places, _GIVE_UP_SECONDS):
                if place.offset >= 0:
                    found.setdefault(place.topic, {})[place.partition] = place.offset
        except KafkaException as error:
            raise _away(str(error)) from error
        finally:
            consumer.close()
        return found

    def _read(
        self, topic: str, since_ms: int, ends: Mapping[int, int], begin: Mapping[int, int] | None = None
    ) -> Iterator[CorrectionRequest]:
        """Yield one record at a time, so that they are never all in memory."""
        self._signatures.refresh()
        try:
            # The broker stamps records, so every record about these windows comes after this offset.
            first = self._topics.offsets_since(topic, since_ms - _AHEAD_MS) if since_ms > _AHEAD_MS else {}
            starts = {n: max(first.get(n, 0), (begin or {}).get(n, 0)) for n in ends}
            at = {number: min(offset, ends[number]) for number, offset in starts.items()}
            for each in self._records(topic, at, ends) if at != ends else ():
                if parse_instant_ms(each.record.window.start) >= since_ms:
                    yield each
        except KafkaException as error:
            raise _away(str(error)) from error

    def _records(self, topic: str, at: dict[int, int], ends: Mapping[int, int]) -> Iterator[CorrectionRequest]:
        """Read up to the end of everything written; waits for open transactions."""
        consumer = Consumer(
            {
                **self._kafka.client(),
                "group.id": "galatea.alert-audit",
                "enable.partition.eof": True,
                "isolation.level": "read_committed",
                "auto.offset.reset": "earliest",
                **_QUIET,
            }
        )
        try:
            consumer.assign([TopicPartition(topic, number, offset) for number, offset in at.items()])
            moved_at = time.monotonic()
            while any(at[number] < end for number, end in ends.items()):
                before = sum(at.values())
                for message in consumer.consume(_AT_ONCE, 0.5):
                    number, offset = message.partition() or 0, message.offset() or 0
                    at[number] = max(at[number], offset + (message.error() is None))
                    if message.error() is None and (record := self._record(topic, message)) is not None:
                        yield CorrectionRequest(number, offset, record)
                if sum(at.values()) > before:
                    moved_at = time.monotonic()
                elif time.monotonic() - moved_at > _STALLED_SECONDS:
                    raise _away(f"`{topic}` was not read to its end: nothing arrived for {_STALLED_SECONDS:.0f} s")
        finally:
            consumer.close()

    def _record(self, topic: str, message: Message) -> Alert | None:
        """None for a record that another program wrote; the alert processor makes it a dead letter."""
        value, place = message.value() or b"", RecordPlace(topic, message.partition() or 0, message.offset() or 0)
        if not self._signatures.is_ours(place, value, headers_of_message(message)):
            log.warning("alert_audit.not_signed", place="/".join(map(str, place)))
            return None
        try:
            return Alert.from_json(value)
        except msgspec.ValidationError as error:
            log.warning("alert_audit.unreadable", place="/".join(map(str, place)), error=str(error))
            return None


def _away(why: str) -> BrokerUnavailableError:
    return BrokerUnavailableError(f"alerts cannot be audited: {why}", do="galatea status; the next rebuild tries again")


@dataclass(frozen=True)
class EmittedAlerts:
    """The emitted alerts and the requested ones, as one audit sees them.

    Attributes:
        topics: The topics.
        seen: How far the last finished audit had read the requests, by partition.
        ends: The current end of the requests, by partition.
        unseen: Filled by `statuses`: ids of requests behind `seen`. They come from an audit that was overtaken, by
            numbers that are no longer the newest, so they are judged again.
    """

    topics: AlertLog
    seen: Mapping[int, int]
    ends: Mapping[int, int]
    unseen: set[str] = field(default_factory=set)

    def statuses(self, since_ms: int) -> Mapping[str, AlertStatus]:
        """The alerts about windows that began since then. BrokerUnavailableError."""
        return alert_statuses(self.topics.emitted(since_ms), (each.record for each in self._requests(since_ms)))

    def has_foreign_requests(self, publication: int) -> bool:
        """Whether another publication has made requests behind `seen`. BrokerUnavailableError."""
        behind = {number: self._seen(number) for number in self.ends}
        return any(each.record.publication != publication for each in self.topics.requests(0, self.ends, behind))

    def _requests(self, since_ms: int) -> Iterator[CorrectionRequest]:
        for each in self.topics.requests(since_ms, self.ends):
            if each.offset >= self._seen(each.partition):
                self.unseen.add(each.record.alert_id)
            yield each

    def _seen(self, partition: int) -> int:
        """0 if the topic was recreated since."""
        seen = self.seen.get(partition, 0)
        return seen if seen <= self.ends.get(partition, 0) else 0


_SERIES = "galatea"
_READ = "SELECT publication, told FROM alert_audits WHERE series = ?"
_BEGIN = "INSERT INTO alert_audits (publication, audited_at, told, series) VALUES (?, ?, ?, ?) IF NOT EXISTS"
_MOVE = "UPDATE alert_audits SET publication = ?, audited_at = ?, told = ? WHERE series = ? IF publication = ?"
_REQUEST_POSITIONS = "asked"
"""The key within the column `told`, which is JSON."""


class LastAudit(NamedTuple):
    """`publication`: its number, 0 for none. `request_positions`: how far it had read the requests, by partition."""

    publication: int
    request_positions: Mapping[int, int]


class AuditTable:
    """The table `alert_audits`: by which publication alerts were audited last. Raises the errors of the driver."""

    def __init__(self, session: "Session") -> None:
        """`session` uses Galatea's keyspace."""
        self._session = session

    def read(self) -> LastAudit:
        """The last audit. A row of a former release says nothing about requests; then none count as read."""
        row = self._session.execute(self._session.prepare(_READ), (_SERIES,)).one()
        summary: dict[str, Any] = orjson.loads(row.told) if row and row.told else {}
        positions = {int(partition): end for partition, end in summary.get(_REQUEST_POSITIONS, {}).items()}
        return LastAudit(int(row.publication) if row else 0, positions)

    def move(self, seen: int, to: LastAudit, counts: Mapping[str, int]) -> bool:
        """Record the audit `to` and the counts of its corrections. False if another was recorded since `seen`."""
        positions = {str(partition): end for partition, end in sorted(to.request_positions.items())}
        summary = orjson.dumps({**counts, _REQUEST_POSITIONS: positions}).decode()
        values = (to.publication, datetime.now(UTC), summary, _SERIES)
        cql, more = (_MOVE, (seen,)) if seen else (_BEGIN, ())
        row = self._session.execute(self._session.prepare(cql), (*values, *more)).one()
        # A retry of the driver finds what its first attempt has written.
        return bool(row.applied) or getattr(row, "publication", None) == to.publication
