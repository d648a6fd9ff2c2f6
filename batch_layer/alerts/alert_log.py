"""The topics of alerts as an audit reads and writes them: what was told, what was asked for, and what is to be told."""

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import msgspec
from confluent_kafka import Consumer, KafkaException, Message, Producer, TopicPartition

from master_dataset.errors import BrokerUnavailable
from master_dataset.kafka.producer_settings import producer_settings
from master_dataset.kafka.topics import Topics
from views.alerts.alert import CORRECTIONS, RELAY_GROUP, TOPIC, Alert, instant_ms

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


class Request(NamedTuple):
    """A record that a publication asked for, and where it lies."""

    partition: int
    offset: int
    record: Alert


class AlertLog:
    """Of one cluster. Every method raises BrokerUnavailable."""

    def __init__(self, bootstrap: str) -> None:
        """`bootstrap`: host:port of any broker."""
        self._bootstrap, self._topics = bootstrap, Topics(bootstrap)

    def told(self, since_ms: int) -> Iterator[Alert]:
        """What was told of windows that began since then: all that was written by now, and is committed."""
        return (each.record for each in self._read(TOPIC, since_ms, self._topics.end_offsets(TOPIC)))

    def asked_ends(self) -> Mapping[int, int]:
        """How far what publications asked for goes by now, by partition."""
        return self._topics.end_offsets(CORRECTIONS)

    def asked(
        self, since_ms: int, ends: Mapping[int, int], begin: Mapping[int, int] | None = None
    ) -> Iterator[Request]:
        """What publications asked for, likewise, before these ends, and from there on where that is said."""
        return self._read(CORRECTIONS, since_ms, ends, begin)

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
                producer.produce(CORRECTIONS, value=each.to_json(), key=each.store, on_delivery=delivered)
                producer.poll(0)
            left = producer.flush(2 * _GIVE_UP_SECONDS)
        except (KafkaException, BufferError) as error:
            raise _away(str(error)) from error
        if left or failed:
            raise _away(failed[0] if failed else f"{left} records were not acknowledged")

    def relay_positions(self, topics: Sequence[str]) -> dict[str, dict[int, int]]:
        """How far the relay has read, and told what came of it."""
        consumer = Consumer({"bootstrap.servers": self._bootstrap, "group.id": RELAY_GROUP, **_QUIET})
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
    ) -> Iterator[Request]:
        """One after the other: they are never all in memory."""
        try:
            # The broker stamps records itself, so what is about these windows lies behind.
            first = self._topics.offsets_since(topic, since_ms - _AHEAD_MS) if since_ms > _AHEAD_MS else {}
            wanted = {n: max(first.get(n, 0), (begin or {}).get(n, 0)) for n in ends}
            at = {number: min(offset, ends[number]) for number, offset in wanted.items()}
            for each in self._records(topic, at, ends) if at != ends else ():
                if instant_ms(each.record.window.start) >= since_ms:
                    yield each
        except KafkaException as error:
            raise _away(str(error)) from error

    def _records(self, topic: str, at: dict[int, int], ends: Mapping[int, int]) -> Iterator[Request]:
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
                        yield Request(number, offset, record)
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


def _away(why: str) -> BrokerUnavailable:
    return BrokerUnavailable(f"alerts cannot be looked at: {why}", do="galatea status; the next rebuild tries again")
