"""The topics of alerts as an audit reads and writes them: what was told, what was asked for, and what is to be told.

What one audit knows of the alerts that were told, and of what was asked for since another one has moved on.

`alert_audits` in Cassandra: by which publication alerts were looked at last.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import orjson
from confluent_kafka import Consumer, KafkaException, Message, Producer, TopicPartition

from master_dataset.errors import BrokerUnavailableError
from master_dataset.kafka.client_settings import producer_settings
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

if TYPE_CHECKING:
    from cassandra.cluster import Session

_GIVE_UP_SECONDS = 30.0
_MOST_WAITING = 10_000
"""Records on their way at once."""
_WAIT_SECONDS = 1.0
_STALLED_SECONDS = 120.0
"""For so long nothing may come. A transaction that nobody ends is ended by the broker before that."""
_AHEAD_MS = 24 * 3_600_000
"""So long before a window begins nobody can have said anything of it: an event may be an hour ahead of its receipt, and
no broker's clock is off by as much as the rest."""
_AT_ONCE = 1000
_QUIET = {"enable.auto.commit": False, "log_level": 2, "error_cb": lambda _: None}


class CorrectionRequest(NamedTuple):
    """A record that a publication asked for, and where it lies."""

    partition: int
    offset: int
    record: Alert


class AlertLog:
    """Of one cluster. Every method raises BrokerUnavailableError."""

    def __init__(self, bootstrap: str) -> None:
        """`bootstrap`: host:port of any broker."""
        self._bootstrap, self._topics = bootstrap, Topics(bootstrap)

    def told(self, since_ms: int) -> Iterator[Alert]:
        """What was told of windows that began since then: all that was written by now, and is committed."""
        return (each.record for each in self._read(ALERTS_TOPIC, since_ms, self._topics.end_offsets(ALERTS_TOPIC)))

    def asked_ends(self) -> Mapping[int, int]:
        """How far what publications asked for goes by now, by partition."""
        return self._topics.end_offsets(CORRECTIONS_TOPIC)

    def asked(
        self, since_ms: int, ends: Mapping[int, int], begin: Mapping[int, int] | None = None
    ) -> Iterator[CorrectionRequest]:
        """What publications asked for, likewise, before these ends, and from there on where that is said."""
        return self._read(CORRECTIONS_TOPIC, since_ms, ends, begin)

    def ask(self, records: Sequence[Alert]) -> None:
        """Have the relay tell these. Asked for twice, they are told once."""
        failed: list[str] = []

        def delivered(error: object, _: Message) -> None:
            if error is not None:
                failed.append(str(error))

        producer = Producer(producer_settings(self._bootstrap, "galatea-alert-audit", _GIVE_UP_SECONDS))
        try:
            for each in records:
                while len(producer) >= _MOST_WAITING:  # the client holds so much and no more
                    producer.poll(_WAIT_SECONDS)
                producer.produce(CORRECTIONS_TOPIC, value=each.to_json(), key=each.store, on_delivery=delivered)
                producer.poll(0)
            left = producer.flush(2 * _GIVE_UP_SECONDS)
        except (KafkaException, BufferError) as error:
            raise _away(str(error)) from error
        if left or failed:
            raise _away(failed[0] if failed else f"{left} records were not acknowledged")

    def relay_positions(self, topics: Sequence[str]) -> dict[str, dict[int, int]]:
        """How far the relay has read, and told what came of it."""
        consumer = Consumer({"bootstrap.servers": self._bootstrap, "group.id": PROCESSOR_GROUP, **_QUIET})
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
        """One after the other: they are never all in memory."""
        try:
            # The broker stamps records itself, so what is about these windows lies behind.
            first = self._topics.offsets_since(topic, since_ms - _AHEAD_MS) if since_ms > _AHEAD_MS else {}
            wanted = {n: max(first.get(n, 0), (begin or {}).get(n, 0)) for n in ends}
            at = {number: min(offset, ends[number]) for number, offset in wanted.items()}
            for each in self._records(topic, at, ends) if at != ends else ():
                if parse_instant_ms(each.record.window.start) >= since_ms:
                    yield each
        except KafkaException as error:
            raise _away(str(error)) from error

    def _records(self, topic: str, at: dict[int, int], ends: Mapping[int, int]) -> Iterator[CorrectionRequest]:
        """To the end of everything that was written, its transaction decided or not: that is waited for."""
        consumer = Consumer(
            {
                "bootstrap.servers": self._bootstrap,
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
                    if message.error() is None and (record := _record(message.value())) is not None:
                        yield CorrectionRequest(number, offset, record)
                if sum(at.values()) > before:
                    moved_at = time.monotonic()
                elif time.monotonic() - moved_at > _STALLED_SECONDS:
                    raise _away(f"`{topic}` was not read to its end: nothing came for {_STALLED_SECONDS:.0f} s")
        finally:
            consumer.close()


def _record(value: bytes | None) -> Alert | None:
    try:
        return Alert.from_json(value or b"")
    except msgspec.DecodeError:  # nobody's
        return None


def _away(why: str) -> BrokerUnavailableError:
    return BrokerUnavailableError(
        f"alerts cannot be looked at: {why}", do="galatea status; the next rebuild tries again"
    )


@dataclass(frozen=True)
class EmittedAlerts:
    """`seen`: how far requests were read by the audit that moved on last; `ends`: how far they go by now.

    Whoever is overtaken asks behind what the other one has read, by numbers that are the newest no more. So `unseen`,
    the ids of what lies there, is filled while the log is read, and is judged anew.
    """

    topics: AlertLog
    seen: Mapping[int, int]
    ends: Mapping[int, int]
    unseen: set[str] = field(default_factory=set)

    def standings(self, since_ms: int) -> Mapping[str, AlertStatus]:
        """Of alerts about windows that began since then. BrokerUnavailableError."""
        return alert_statuses(self.topics.told(since_ms), (each.record for each in self._asked(since_ms)))

    def is_asked_by_others(self, publication: int) -> bool:
        """Whether records were asked for, behind what was seen, that rest on another publication. BrokerUnavailableError."""
        behind = {number: self._seen(number) for number in self.ends}
        return any(each.record.publication != publication for each in self.topics.asked(0, self.ends, behind))

    def _asked(self, since_ms: int) -> Iterator[CorrectionRequest]:
        for each in self.topics.asked(since_ms, self.ends):
            if each.offset >= self._seen(each.partition):
                self.unseen.add(each.record.alert_id)
            yield each

    def _seen(self, partition: int) -> int:
        """0 in a topic that is another one than was read."""
        seen = self.seen.get(partition, 0)
        return seen if seen <= self.ends.get(partition, 0) else 0


_SERIES = "galatea"
_READ = "SELECT publication, told FROM alert_audits WHERE series = ?"
_BEGIN = "INSERT INTO alert_audits (publication, audited_at, told, series) VALUES (?, ?, ?, ?) IF NOT EXISTS"
_MOVE = "UPDATE alert_audits SET publication = ?, audited_at = ?, told = ? WHERE series = ? IF publication = ?"
_ASKED = "asked"


class LastAudit(NamedTuple):
    """`publication`: its number; 0: of none. `asked`: how far requests for corrections were read then, by partition."""

    publication: int
    asked: Mapping[int, int]


class AuditTable:
    """Errors are the driver's."""

    def __init__(self, session: "Session") -> None:
        """`session` uses Galatea's keyspace."""
        self._session = session

    def read(self) -> LastAudit:
        """By which one it was. Of a row that does not say how far requests were read, none count as read."""
        row = self._session.execute(self._session.prepare(_READ), (_SERIES,)).one()
        told: dict[str, Any] = orjson.loads(row.told) if row and row.told else {}
        return LastAudit(
            int(row.publication) if row else 0, {int(number): end for number, end in told.get(_ASKED, {}).items()}
        )

    def move(self, seen: int, to: LastAudit, told: Mapping[str, int]) -> bool:
        """Say that `to` was looked at. False if somebody else has moved it since it was `seen`."""
        said = {**told, _ASKED: {str(number): end for number, end in sorted(to.asked.items())}}
        values = (to.publication, datetime.now(UTC), orjson.dumps(said).decode(), _SERIES)
        cql, more = (_MOVE, (seen,)) if seen else (_BEGIN, ())
        row = self._session.execute(self._session.prepare(cql), (*values, *more)).one()
        # A second try of the driver's finds what its first one has done.
        return bool(row.applied) or getattr(row, "publication", None) == to.publication
