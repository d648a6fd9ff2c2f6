"""Copies the topic of alerts into the tables that serving lists, and records as of when the tables are complete.

    poll -> write rows -> save the position -> poll -> ...

Rows are written by key, so a writer that is killed anywhere writes some rows again, with the same content. To say as of
when the tables are complete, it measures how far the alert processor has come, and waits until it has read the alerts
up to there.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import NamedTuple, Protocol, TypeVar

import structlog
from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition
from prometheus_client import Counter

from master_dataset.errors import BrokerUnavailableError, CassandraUnavailableError, DependencyUnavailableError
from master_dataset.kafka.connection import KafkaConnection
from master_dataset.kafka.lag import LagProbe
from master_dataset.kafka.record import headers_of_message
from master_dataset.kafka.topics import Topics
from master_dataset.parsing.parse import Headers
from speed_layer.alerts.fold import LogRecord
from speed_layer.alerts.history_table import HistoryPosition
from speed_layer.alerts.intake import AlertIntake
from views.alerts.alert import ALERTS_TOPIC, PROCESSOR_GROUP

POLL_RECORDS = 500
POLL_SECONDS = 0.5
CALL_SECONDS = 20.0
MEASURE_SECONDS = 2.0
RESTART_SECONDS = 2.0
PRUNE_SECONDS = 600.0
_LOST = (KafkaError.OFFSET_OUT_OF_RANGE, KafkaError._AUTO_OFFSET_RESET)  # noqa: SLF001 - its name
Answer = TypeVar("Answer")
UNREADABLE = Counter(
    "galatea_alert_history_unreadable", "Records of the topic of alerts that are no alerts of ours, and not listed."
)
log = structlog.get_logger()


class TopicRecord(NamedTuple):
    """A record of a partition, or its end (without a value). `next_offset` is the offset after it."""

    partition: int
    next_offset: int
    received_at: datetime | None = None
    value: bytes | None = None
    headers: Headers = ()


class Completeness(NamedTuple):
    """Up to `end`, a partition contains every alert about events received before `as_of`."""

    end: int
    as_of: datetime


class AlertsTopic(Protocol):
    """The topic of alerts, and the progress of the processor that writes it. Raises BrokerUnavailableError."""

    def bounds(self) -> Mapping[int, tuple[int, int]]:
        """Partition to its first offset and its end offset."""

    def seek(self, positions: Mapping[int, int]) -> None:
        """Read on from these positions."""

    def poll(self) -> Sequence[TopicRecord] | None:
        """The next records, or none after a short wait; None if the next records to read have been deleted."""

    def completeness(self) -> Mapping[int, Completeness]:
        """The progress of the processor, for the partitions where it is known."""


class KafkaAlertsTopic:
    """Implements `AlertsTopic` with an assigned consumer: it joins no group."""

    def __init__(self, kafka: KafkaConnection, sources: Sequence[str], now: Callable[[], datetime]) -> None:
        """`sources`: the topics that the alert processor reads."""
        self._sources, self._now = sources, now
        self._topics, self._probe = Topics(kafka), LagProbe(kafka)
        usual = {
            **kafka.client(),
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
        self._processor = Consumer({**usual, "group.id": PROCESSOR_GROUP})  # only to read what is committed

    def bounds(self) -> Mapping[int, tuple[int, int]]:
        """See `AlertsTopic`."""
        return {partition: self._bounds(partition) for partition in self._topics.partitions(ALERTS_TOPIC)}

    def seek(self, positions: Mapping[int, int]) -> None:
        """See `AlertsTopic`."""
        self._consumer.assign([TopicPartition(ALERTS_TOPIC, partition, at) for partition, at in positions.items()])

    def poll(self) -> Sequence[TopicRecord] | None:
        """See `AlertsTopic`."""
        found = []
        for message in self._call(lambda: self._consumer.consume(POLL_RECORDS, POLL_SECONDS)):
            error, partition, offset = message.error(), message.partition() or 0, message.offset() or 0
            if error is None:
                at = datetime.fromtimestamp(message.timestamp()[1] / 1000, UTC)
                headers = headers_of_message(message)
                found.append(TopicRecord(partition, offset + 1, at, message.value(), headers))
            elif error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001 - its name
                found.append(TopicRecord(partition, offset))
            elif error.code() in _LOST:
                return None
        return found

    def completeness(self) -> Mapping[int, Completeness]:
        """See `AlertsTopic`.

        The end offsets are read last, and include open transactions. So whatever the processor has committed by then
        lies before them, even if the broker has yet to make it visible.
        """
        now = self._now()
        numbers = self._topics.partitions(ALERTS_TOPIC)
        partitions = [TopicPartition(source, number) for source in self._sources for number in numbers]
        committed: dict[str, dict[int, int]] = {}
        for each in self._call(lambda: self._processor.committed(partitions, CALL_SECONDS)):
            if each.offset >= 0:
                committed.setdefault(each.topic, {})[each.partition] = each.offset
        known = [number for number in numbers if all(number in committed.get(each, {}) for each in self._sources)]
        as_of = dict.fromkeys(known, now)
        for lag in self._probe.measure(self._sources, committed):
            if lag.oldest and lag.partition in as_of:
                as_of[lag.partition] = min(as_of[lag.partition], lag.oldest.received_at)
        ends = self._topics.end_offsets(ALERTS_TOPIC)
        return {number: Completeness(ends[number], at) for number, at in as_of.items()}

    def _bounds(self, number: int) -> tuple[int, int]:
        partition = TopicPartition(ALERTS_TOPIC, number)
        return self._call(lambda: self._consumer.get_watermark_offsets(partition, CALL_SECONDS))

    def _call(self, call: Callable[[], Answer]) -> Answer:
        try:
            return call()
        except KafkaException as error:
            raise BrokerUnavailableError(f"alerts cannot be read: {error}", do="galatea status") from error


class AlertHistory(Protocol):
    """The tables of alerts. Every method raises CassandraUnavailableError."""

    def write(self, value: bytes) -> None:
        """Write the rows of a record. msgspec.ValidationError if it is no alert."""

    def positions(self) -> Mapping[int, HistoryPosition]:
        """How far each partition has been stored."""

    def save_position(self, partition: int, position: HistoryPosition, now: datetime) -> None:
        """Record how far a partition has been stored."""

    def migrate_open_alerts(self, beat: Callable[[], None], now: datetime) -> None:
        """Migrate the list of open alerts of a former release, once."""

    def prune(self, beat: Callable[[], None], now: datetime) -> None:
        """Delete hours without open alerts from the list of hours."""


class HistoryWriter:
    """Writes all partitions. `beat` is called whenever there is progress."""

    def __init__(
        self,
        topic: AlertsTopic,
        history: AlertHistory,
        intake: AlertIntake,
        now: Callable[[], datetime],
        beat: Callable[[], None] = lambda: None,
    ) -> None:
        """Start without reading anything. `intake`: tells which records are alerts of ours, and keeps the others."""
        self._topic, self._history, self._intake, self._now, self._beat = topic, history, intake, now, beat
        self._positions: dict[int, HistoryPosition] = {}
        self._saved: dict[int, HistoryPosition] = {}
        self._targets: Mapping[int, Completeness] = {}
        self._gaps: set[int] = set()
        self._measured_at = self._pruned_at = float("-inf")

    def run(self) -> None:
        """Run until the process ends; wait for dependencies that are unavailable."""
        while True:
            try:
                self.start()
                while self.step():
                    self._beat()
            except DependencyUnavailableError as error:
                log.warning("alert_history.waiting", error=str(error))
            self._beat()
            time.sleep(RESTART_SECONDS)

    def start(self) -> None:
        """Continue where the tables end; partitions from which records are missing are marked as having a gap.

        DependencyUnavailableError.
        """
        self._history.migrate_open_alerts(self._beat, self._now())
        self._intake.refresh()
        saved = self._history.positions()
        self._positions, self._gaps, self._targets = {}, set(), {}
        for partition, (first, end) in self._topic.bounds().items():
            before = saved.get(partition, HistoryPosition(0, None, None))
            is_recreated = before.position > end
            at = first if is_recreated else max(first, before.position)
            if is_recreated or first > before.position:
                self._gaps.add(partition)
                log.error("alert_history.gap", partition=partition, kept=before.position, first=first)
            self._positions[partition] = before._replace(position=at)
        self._saved = {partition: each for partition, each in saved.items() if partition not in self._gaps}
        self._topic.seek({partition: each.position for partition, each in self._positions.items()})

    def step(self) -> bool:
        """Write the available records. False if records were deleted: then start again. DependencyUnavailableError."""
        polled = self._topic.poll()
        if polled is None:
            return False
        for each in polled:
            self._write(each)
        self._intake.store_rejected()
        if time.monotonic() - self._measured_at >= MEASURE_SECONDS:
            if not self._targets:
                self._targets = dict(self._topic.completeness())
            self._measured_at = time.monotonic()
            self._intake.refresh()
        self._save()
        if time.monotonic() - self._pruned_at >= PRUNE_SECONDS:
            self._pruned_at = time.monotonic()
            self._prune()
        return True

    def _prune(self) -> None:
        try:
            self._history.prune(self._beat, self._now())
        except CassandraUnavailableError as error:  # failures do no harm: this only keeps a list short
            log.warning("alert_history.prune_failed", error=str(error))

    def _write(self, record: TopicRecord) -> None:
        if record.received_at is not None:
            received_ms = int(record.received_at.timestamp() * 1000)
            entry = LogRecord(record.next_offset - 1, received_ms, record.value, record.headers)
            if self._intake.alert(record.partition, entry) is None:
                UNREADABLE.inc()
            elif record.value:
                self._history.write(record.value)
        position = self._positions[record.partition]
        if record.partition in self._gaps:
            self._gaps.discard(record.partition)
            position = position._replace(complete_from=record.received_at or self._now())
        self._positions[record.partition] = position._replace(position=max(position.position, record.next_offset))

    def _save(self) -> None:
        """Save the positions, and as of when they are complete where the measured end is reached."""
        for partition, position in self._positions.items():
            target = self._targets.get(partition)
            if target and position.position >= target.end and partition not in self._gaps:
                as_of = max(position.as_of, target.as_of) if position.as_of else target.as_of
                self._positions[partition] = position._replace(as_of=as_of)
                self._targets = {other: each for other, each in self._targets.items() if other != partition}
        now = self._now()
        for partition, position in self._positions.items():
            if position != self._saved.get(partition) and partition not in self._gaps:
                self._history.save_position(partition, position, now)
                self._saved[partition] = position
