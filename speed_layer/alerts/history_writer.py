"""Reads the topic of alerts to its end, every partition, and tells how far the relay was when it got there.

Folds the topic of alerts into the tables that serving lists, and says as of when the tables are whole.

Rows first, then how far they go: killed anywhere, it folds some records again, which writes the same rows. It holds
no more than the records of one call.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import NamedTuple, Protocol, TypeVar

import msgspec
import structlog
from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from master_dataset.errors import BrokerUnavailableError, CassandraUnavailableError, DependencyUnavailableError
from master_dataset.kafka.lag import LagProbe
from master_dataset.kafka.topics import Topics
from speed_layer.alerts.history_table import HistoryPosition
from views.alerts.alert import ALERTS_TOPIC, PROCESSOR_GROUP

MOST_RECORDS = 500
PATIENCE_SECONDS = 0.5
CALL_SECONDS = 20.0
_LOST = (KafkaError.OFFSET_OUT_OF_RANGE, KafkaError._AUTO_OFFSET_RESET)  # noqa: SLF001 - its name
Answer = TypeVar("Answer")


class TopicRecord(NamedTuple):
    """A record of a partition; without a value, its end as it is now. `next_offset`: behind it."""

    partition: int
    next_offset: int
    received_at: datetime | None = None
    value: bytes | None = None


class Completeness(NamedTuple):
    """Whoever has read the partition to `end` has every alert of what was received before `as_of`."""

    end: int
    as_of: datetime


class AlertsTopic(Protocol):
    """The topic of alerts, and the relay that writes it. Every method raises BrokerUnavailableError."""

    def bounds(self) -> Mapping[int, tuple[int, int]]:
        """By partition the first offset that is there, and the end."""

    def go_to(self, positions: Mapping[int, int]) -> None:
        """Read on from there."""

    def take(self) -> Sequence[TopicRecord] | None:
        """What is there, after a moment of waiting; None if records that were to come are gone."""

    def reach(self) -> Mapping[int, Completeness]:
        """How far the relay is, of the partitions of which it can be said."""


class KafkaAlertsTopic:
    """Outlet. Assigned, never a member of a group."""

    def __init__(self, bootstrap: str, sources: Sequence[str], now: Callable[[], datetime]) -> None:
        """`sources`: the topics that the relay reads."""
        self._sources, self._now = sources, now
        self._topics, self._probe = Topics(bootstrap), LagProbe(bootstrap)
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
        self._relay = Consumer({**usual, "group.id": PROCESSOR_GROUP})  # asked what is committed, and never joined

    def bounds(self) -> Mapping[int, tuple[int, int]]:
        """As Outlet."""
        return {number: self._bounds(number) for number in self._topics.partitions(ALERTS_TOPIC)}

    def go_to(self, positions: Mapping[int, int]) -> None:
        """As Outlet."""
        self._consumer.assign([TopicPartition(ALERTS_TOPIC, number, at) for number, at in positions.items()])

    def take(self) -> Sequence[TopicRecord] | None:
        """As Outlet."""
        found = []
        for message in self._asked(lambda: self._consumer.consume(MOST_RECORDS, PATIENCE_SECONDS)):
            error, place = message.error(), (message.partition() or 0, message.offset() or 0)
            if error is None:
                at = datetime.fromtimestamp(message.timestamp()[1] / 1000, UTC)
                found.append(TopicRecord(place[0], place[1] + 1, at, message.value()))
            elif error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001 - its name
                found.append(TopicRecord(*place))
            elif error.code() in _LOST:
                return None
        return found

    def reach(self) -> Mapping[int, Completeness]:
        """As Outlet. Ends are asked for last, and of every record that was written, its transaction decided or not.

        What the relay has committed by then lies before them, also where the broker has yet to make it visible.
        """
        now = self._now()
        numbers = self._topics.partitions(ALERTS_TOPIC)
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
        ends = self._topics.end_offsets(ALERTS_TOPIC)
        return {number: Completeness(ends[number], at) for number, at in as_of.items()}

    def _bounds(self, number: int) -> tuple[int, int]:
        place = TopicPartition(ALERTS_TOPIC, number)
        return self._asked(lambda: self._consumer.get_watermark_offsets(place, CALL_SECONDS))

    def _asked(self, call: Callable[[], Answer]) -> Answer:
        try:
            return call()
        except KafkaException as error:
            raise BrokerUnavailableError(f"alerts cannot be read: {error}", do="galatea status") from error


MEASURE_SECONDS = 2.0
WAIT_SECONDS = 2.0
TIDY_SECONDS = 600.0
log = structlog.get_logger()


class AlertHistory(Protocol):
    """Where alerts are kept. Every method raises CassandraUnavailableError."""

    def keep(self, value: bytes) -> None:
        """Fold a record of the topic."""

    def reached(self) -> Mapping[int, HistoryPosition]:
        """How far each partition is folded."""

    def reach(self, partition: int, kept: HistoryPosition, now: datetime) -> None:
        """Say how far it is folded."""

    def move_open(self, beat: Callable[[], None], now: datetime) -> None:
        """Have what is open in the tables of today, before anything is folded into these."""

    def tidy(self, beat: Callable[[], None], now: datetime) -> None:
        """Forget places in which nothing is open any more."""


class HistoryWriter:
    """Of every partition. `beat` is called whenever there is progress."""

    def __init__(
        self,
        outlet: AlertsTopic,
        history: AlertHistory,
        now: Callable[[], datetime],
        beat: Callable[[], None] = lambda: None,
    ) -> None:
        """Nothing is read yet."""
        self._outlet, self._history, self._now, self._beat = outlet, history, now, beat
        self._kept: dict[int, HistoryPosition] = {}
        self._said: dict[int, HistoryPosition] = {}
        self._wanted: Mapping[int, Completeness] = {}
        self._torn: set[int] = set()
        self._measured_at = self._tidied_at = float("-inf")

    def run(self) -> None:
        """Until the process ends; whatever is away is waited for."""
        while True:
            try:
                self.begin()
                while self.go_on():
                    self._beat()
            except DependencyUnavailableError as error:
                log.warning("alert_history.waiting", why=str(error))
            self._beat()
            time.sleep(WAIT_SECONDS)

    def begin(self) -> None:
        """From where the tables end. What is gone from the topic by now is said to be missing. Unavailable."""
        self._history.move_open(self._beat, self._now())
        reached = self._history.reached()
        self._kept, self._torn, self._wanted = {}, set(), {}
        for number, (first, end) in self._outlet.bounds().items():
            before = reached.get(number, HistoryPosition(0, None, None))
            is_other_log = before.position > end
            at = first if is_other_log else max(first, before.position)
            if is_other_log or first > before.position:
                self._torn.add(number)
                log.error("alert_history.gap", partition=number, kept=before.position, first=first)
            self._kept[number] = before._replace(position=at)
        self._said = {number: kept for number, kept in reached.items() if number not in self._torn}
        self._outlet.go_to({number: kept.position for number, kept in self._kept.items()})

    def go_on(self) -> bool:
        """Fold what is there. Whether that can go on; if not, begin again. Unavailable."""
        told = self._outlet.take()
        if told is None:
            return False
        for each in told:
            self._fold(each)
        if time.monotonic() - self._measured_at >= MEASURE_SECONDS:
            if not self._wanted:
                self._wanted = dict(self._outlet.reach())
            self._measured_at = time.monotonic()
        self._arrive()
        if time.monotonic() - self._tidied_at >= TIDY_SECONDS:
            self._tidied_at = time.monotonic()
            self._tidy()
        return True

    def _tidy(self) -> None:
        try:
            self._history.tidy(self._beat, self._now())
        except CassandraUnavailableError as error:  # nothing is wrong for want of it
            log.warning("alert_history.untidy", why=str(error))

    def _fold(self, told: TopicRecord) -> None:
        if told.value:
            try:
                self._history.keep(told.value)
            except msgspec.MsgspecError:  # nobody but the relay writes here
                log.exception("alert_history.unreadable", partition=told.partition, next_offset=told.next_offset)
        kept = self._kept[told.partition]
        if told.partition in self._torn:
            self._torn.discard(told.partition)
            kept = kept._replace(complete_from=told.received_at or self._now())
        self._kept[told.partition] = kept._replace(position=max(kept.position, told.next_offset))

    def _arrive(self) -> None:
        """Say how far the rows go, and as of when, where the end that was measured is reached."""
        for number, kept in self._kept.items():
            wanted = self._wanted.get(number)
            if wanted and kept.position >= wanted.end and number not in self._torn:
                as_of = max(kept.as_of, wanted.as_of) if kept.as_of else wanted.as_of
                self._kept[number] = kept._replace(as_of=as_of)
                self._wanted = {other: reach for other, reach in self._wanted.items() if other != number}
        now = self._now()
        for number, kept in self._kept.items():
            if kept != self._said.get(number) and number not in self._torn:
                self._history.reach(number, kept, now)
                self._said[number] = kept
