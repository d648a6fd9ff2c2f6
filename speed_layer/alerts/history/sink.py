"""Reads the topic of alerts to its end, every partition, and tells how far the relay was when it got there."""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import NamedTuple, Protocol, TypeVar

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from master_dataset.errors import BrokerUnavailable
from master_dataset.kafka.lag import Probe
from master_dataset.kafka.topics import Topics
from views.alerts.alert import RELAY_GROUP, TOPIC

MOST_RECORDS = 500
PATIENCE_SECONDS = 0.5
CALL_SECONDS = 20.0
_LOST = (KafkaError.OFFSET_OUT_OF_RANGE, KafkaError._AUTO_OFFSET_RESET)  # noqa: SLF001 - its name
Answer = TypeVar("Answer")


class Told(NamedTuple):
    """A record of a partition; without a value, its end as it is now. `next_offset`: behind it."""

    partition: int
    next_offset: int
    received_at: datetime | None = None
    value: bytes | None = None


class Reach(NamedTuple):
    """Whoever has read the partition to `end` has every alert of what was received before `as_of`."""

    end: int
    as_of: datetime


class Outlet(Protocol):
    """The topic of alerts, and the relay that writes it. Every method raises BrokerUnavailable."""

    def bounds(self) -> Mapping[int, tuple[int, int]]:
        """By partition the first offset that is there, and the end."""

    def go_to(self, positions: Mapping[int, int]) -> None:
        """Read on from there."""

    def take(self) -> Sequence[Told] | None:
        """What is there, after a moment of waiting; None if records that were to come are gone."""

    def reach(self) -> Mapping[int, Reach]:
        """How far the relay is, of the partitions of which it can be said."""


class TopicOutlet:
    """Outlet. Assigned, never a member of a group."""

    def __init__(self, bootstrap: str, sources: Sequence[str], now: Callable[[], datetime]) -> None:
        """`sources`: the topics that the relay reads."""
        self._sources, self._now = sources, now
        self._topics, self._probe = Topics(bootstrap), Probe(bootstrap)
        usual = {
            "bootstrap.servers": bootstrap,
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            "log_level": 2,
            "error_cb": lambda _: None,
        }
        self._consumer = Consumer(
            {
                **usual,
                "group.id": "galatea.alert-history",
                "client.id": "galatea-alert-history",
                "enable.partition.eof": True,
                "auto.offset.reset": "error",
            }
        )
        self._relay = Consumer({**usual, "group.id": RELAY_GROUP})  # asked what is committed, and never joined

    def bounds(self) -> Mapping[int, tuple[int, int]]:
        """As Outlet."""
        return {number: self._bounds(number) for number in self._topics.partitions(TOPIC)}

    def go_to(self, positions: Mapping[int, int]) -> None:
        """As Outlet."""
        self._consumer.assign([TopicPartition(TOPIC, number, at) for number, at in positions.items()])

    def take(self) -> Sequence[Told] | None:
        """As Outlet."""
        found = []
        for message in self._asked(lambda: self._consumer.consume(MOST_RECORDS, PATIENCE_SECONDS)):
            error, place = message.error(), (message.partition() or 0, message.offset() or 0)
            if error is None:
                at = datetime.fromtimestamp(message.timestamp()[1] / 1000, UTC)
                found.append(Told(place[0], place[1] + 1, at, message.value()))
            elif error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001 - its name
                found.append(Told(*place))
            elif error.code() in _LOST:
                return None
        return found

    def reach(self) -> Mapping[int, Reach]:
        """As Outlet. Ends are asked for last, and of every record that was written, its transaction decided or not.

        What the relay has committed by then lies before them, also where the broker has yet to make it visible.
        """
        now = self._now()
        numbers = self._topics.partitions(TOPIC)
        places = [TopicPartition(source, number) for source in self._sources for number in numbers]
        found = self._asked(lambda: self._relay.committed(places, CALL_SECONDS))
        committed: dict[str, dict[int, int]] = {}
        for place in found:
            if place.offset >= 0:
                committed.setdefault(place.topic, {})[place.partition] = place.offset
        known = [number for number in numbers if all(number in committed.get(each, {}) for each in self._sources)]
        as_of = dict.fromkeys(known, now)
        for lag in self._probe.measure(self._sources, committed):
            if lag.oldest and lag.partition in as_of:
                as_of[lag.partition] = min(as_of[lag.partition], lag.oldest.received_at)
        ends = self._topics.end_offsets(TOPIC)
        return {number: Reach(ends[number], at) for number, at in as_of.items()}

    def _bounds(self, number: int) -> tuple[int, int]:
        place = TopicPartition(TOPIC, number)
        return self._asked(lambda: self._consumer.get_watermark_offsets(place, CALL_SECONDS))

    def _asked(self, call: Callable[[], Answer]) -> Answer:
        try:
            return call()
        except KafkaException as error:
            raise BrokerUnavailable(f"alerts cannot be read: {error}", do="galatea status") from error
