"""The alert processor, a child process of `deploy.services.alerts`, which says how many partitions it reads.

    python -m deploy.services.alert_processor PARTITIONS PIPE

A thread per partition evaluates rules, one writes the alert history that the serving layer lists, one advances time.
If one thread ends, so does the process.
"""

import os
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Protocol

import structlog
from cassandra import DriverException
from confluent_kafka import KafkaException
from prometheus_client import Counter, Gauge

from deploy.backup.mark import refuse_unfinished_restore
from deploy.cassandra import session_of
from deploy.partitions import partitions_of
from deploy.process import start_parent_watchdog
from deploy.secrets_key import alert_signatures_of
from deploy.services.alerts import READY
from deploy.services.runner import Process
from deploy.settings import Settings
from master_dataset.cassandra_tables import ALERTS_MISROUTED, CASSANDRA_UNAVAILABLE, AlarmTable
from master_dataset.dead_letters.undelivered import UndeliveredRecords
from master_dataset.errors import BrokerUnavailableError, DependencyUnavailableError
from master_dataset.kafka.topics import Topics
from master_dataset.registry.registry import Registry
from master_dataset.registry.rule_versions import RuleVersions
from master_dataset.registry.stores import Store
from master_dataset.sources import registered_sources
from speed_layer.alerts.history_table import HistoryTable
from speed_layer.alerts.history_writer import HistoryWriter, KafkaAlertsTopic
from speed_layer.alerts.intake import AlertIntake
from speed_layer.alerts.processor import AlertProcessor, ProcessorConfig, known_alerts_retention
from speed_layer.alerts.rule_store import CassandraRuleStore, Ticker
from speed_layer.alerts.snapshots import Snapshots
from speed_layer.alerts.source import TransactionMonitor
from views.alerts.alert import ALERTS_TOPIC, Alert
from views.alerts.rule_history import RuleHistory, unusable_rules

if TYPE_CHECKING:
    from cassandra.cluster import Session

NOT_TICKED = Counter(
    "galatea_alerts_tick_failures", "Rounds in which stores were not recorded for alerts, or ticks not written."
)
_NAP_SECONDS = 1.0

log = structlog.get_logger()


class StoreNotes(Protocol):
    """The part of the rule store that the tick loop uses. Every method raises CassandraUnavailableError."""

    def record_stores(self, stores: Mapping[str, Store], beat: Callable[[], None]) -> None:
        """Record the registered stores that have not been recorded yet."""

    def read(self) -> RuleHistory:
        """Return the rules as of now."""


class TickWriter(Protocol):
    """Writes ticks into the topics that rules watch."""

    def tick(self, rule_history: RuleHistory) -> None:
        """Write a tick into each partition of these topics. BrokerUnavailableError."""


class TickLoop:
    """Records new stores and writes ticks, so that time advances for rules whose topics receive nothing."""

    def __init__(
        self, notes: StoreNotes, stores: Callable[[], Mapping[str, Store]], ticks: TickWriter, beat: Callable[[], None]
    ) -> None:
        """`stores` reads the registry, and may raise errors of the driver. `beat` sends a heartbeat."""
        self._notes, self._stores, self._ticks, self._beat = notes, stores, ticks, beat

    def run(self, seconds: float) -> None:
        """Run a round every `seconds` until the process ends."""
        while True:
            self.once()
            until = time.monotonic() + seconds
            while (left := until - time.monotonic()) > 0:
                self._beat()
                time.sleep(min(left, _NAP_SECONDS))

    def once(self) -> None:
        """Run one round. Temporary failures are logged and counted, and the next round tries again."""
        for step in (self._note, self._tick):
            try:
                step()
            except (DependencyUnavailableError, DriverException, *CASSANDRA_UNAVAILABLE) as error:
                NOT_TICKED.inc()
                log.warning("alerts.tick_failed", error=str(error))
            self._beat()

    def _note(self) -> None:
        stores = self._stores()
        self._beat()
        self._notes.record_stores(stores, self._beat)

    def _tick(self) -> None:
        history = self._notes.read()
        self._beat()
        self._ticks.tick(history)


MISROUTED = Counter("galatea_alerts_miskeyed", "Events that alerts ignore: not in their store's partition.", ("topic",))
NOTICE_AGAIN_SECONDS = 1800.0
"""Raise at most one alarm per topic in this time, because each one is a row."""
MISROUTED_DETAIL = "events are in the wrong partition for their store"


class MisroutedEvents:
    """Counts events that are not in their store's partition, and raises an alarm."""

    def __init__(
        self, notice: Callable[[str, datetime, str, str], None], clock: Callable[[], float] = time.monotonic
    ) -> None:
        """`notice` stores an alarm: its name, time, place, and a sentence. `clock`: in seconds."""
        self._notice, self._clock = notice, clock
        self._noticed_at: dict[str, float] = {}
        for topic in registered_sources():
            MISROUTED.labels(topic)  # a counter that exists from the start shows its first increase

    def count(self, topic: str) -> None:
        """Count one more of this topic."""
        MISROUTED.labels(topic).inc()
        now = self._clock()
        if now - self._noticed_at.get(topic, -NOTICE_AGAIN_SECONDS) < NOTICE_AGAIN_SECONDS:
            return
        self._noticed_at[topic] = now
        try:
            self._notice(ALERTS_MISROUTED, datetime.now(UTC), topic, MISROUTED_DETAIL)
        except CASSANDRA_UNAVAILABLE as error:
            log.warning("alerts.misrouted_alarm_failed", topic=topic, error=type(error).__name__)


EMITTED = Counter("galatea_alerts_emitted", "Alerts emitted since the process started.", ("kind",))
EMITTED_FORMER_NAME = Counter("galatea_alerts_told", "Former name of galatea_alerts_emitted.", ("kind",))
CORRECTED = Counter("galatea_alert_corrections", "Alerts emitted because of a publication.", ("kind", "cause"))
DISCARDED = Counter(
    "galatea_alerts_discarded", "Producers discarded because the outcome of a transaction was unknown.", ("partition",)
)
UNUSABLE_RULES = Gauge(
    "galatea_alerts_rules_left_out", "Versions of rules found since the start that this release cannot evaluate."
)
LSO_LAG = Gauge("galatea_alerts_lso_lag", "Alert records behind an open transaction, which readers cannot see.")
HELD_BACK = Gauge("galatea_alerts_held_back_seconds", "How long an open transaction has held back readers of alerts.")
HEARTBEAT_SECONDS, READERS_SECONDS = 1.0, 5.0


class Heartbeat:
    """Reports to the watching process that one part of the alert processor makes progress."""

    def __init__(self, pipe: int, number: int) -> None:
        """`number` of the part, below `READY`."""
        self._pipe, self.number = pipe, number
        self._beaten_at = 0.0
        self._is_ready = False

    def beat(self) -> None:
        """Report progress; writes at most once per second."""
        if time.monotonic() - self._beaten_at > HEARTBEAT_SECONDS:
            os.write(self._pipe, bytes([self.number]))
            self._beaten_at = time.monotonic()

    def ready(self) -> None:
        """Report, once, that this part has started to read its input."""
        if not self._is_ready:
            os.write(self._pipe, bytes([READY]))
            self._is_ready = True


def run(process: Process, settings: Settings) -> None:
    """Run until the process or one of its threads ends."""
    start_parent_watchdog()
    number, pipe = int(sys.argv[1]), int(sys.argv[2])
    topics = Topics(settings.kafka.connection)
    partitions = partitions_of(settings, topics)
    opened = partitions.closed_beyond(number)
    session = session_of(settings.cassandra.address)
    refuse_unfinished_restore(session)
    rules = CassandraRuleStore(
        RuleVersions(session, timedelta(seconds=settings.alerts.rules_seconds)), settings.layers.skew
    )
    ticks = _tick_loop(settings, session, rules, Heartbeat(pipe, number + 1), number)
    process.show_metrics(settings.alerts.metrics_port)
    threading.Thread(target=_watch_readers, args=(topics,), name="readers", daemon=True).start()
    UNUSABLE_RULES.set_function(unusable_rules)
    misrouted = MisroutedEvents(AlarmTable(session).notice)
    shared = ProcessorConfig(
        settings.kafka.connection,
        tuple(registered_sources()),
        partitions.limited(number),
        rules,
        Snapshots(settings.home / "alerts"),
        alert_signatures_of(settings),
        fences=opened.fences if opened else {},
        emitted=_count,
        misrouted=misrouted.count,
        store_rejected=UndeliveredRecords(settings.paths.master_uri).append,
        known_alerts_retention=known_alerts_retention(settings.kafka.retention),
    )
    processors = [_processor(settings, shared, Heartbeat(pipe, each)) for each in range(number)]
    writer = _history_writer(settings, shared, HistoryTable(session), Heartbeat(pipe, number))
    work: Sequence[Callable[[], None]] = [
        writer.run,
        partial(ticks.run, settings.alerts.tick_seconds),
        *(processor.run for processor in processors),
    ]
    pool = ThreadPoolExecutor(len(work))  # never joined: when one thread ends, the process does
    done, _ = wait([pool.submit(each) for each in work], return_when=FIRST_EXCEPTION)
    for each in done:
        each.result()


def _processor(settings: Settings, shared: ProcessorConfig, heartbeat: Heartbeat) -> AlertProcessor:
    partition = heartbeat.number
    config = replace(
        shared,
        snapshots=Snapshots(settings.home / "alerts" / str(partition), heartbeat.beat),
        signatures=alert_signatures_of(settings),
        beat=heartbeat.beat,
        ready=heartbeat.ready,
        discarded=DISCARDED.labels(partition).inc,
    )
    return AlertProcessor(config, partition)


def _tick_loop(
    settings: Settings, session: "Session", rules: CassandraRuleStore, heartbeat: Heartbeat, partitions: int
) -> TickLoop:
    """Record the stores that are already registered, before any record is read."""
    registry = Registry(session)
    rules.record_stores(registry.stores(), heartbeat.beat)
    ticker = Ticker(settings.kafka.connection, range(partitions))
    return TickLoop(rules, registry.stores, ticker, heartbeat.beat)


def _history_writer(
    settings: Settings, shared: ProcessorConfig, table: HistoryTable, heartbeat: Heartbeat
) -> HistoryWriter:
    now = partial(datetime.now, UTC)
    intake = AlertIntake(ALERTS_TOPIC, shared.signatures, shared.store_rejected)
    topic = KafkaAlertsTopic(settings.kafka.connection, tuple(registered_sources()), now)
    return HistoryWriter(topic, table, intake, now, beat=heartbeat.beat)


def _count(alerts: Sequence[Alert]) -> None:
    for alert in alerts:
        EMITTED.labels(alert.kind).inc()
        EMITTED_FORMER_NAME.labels(alert.kind).inc()
        if alert.cause is not None:
            CORRECTED.labels("late" if alert.late else alert.kind, alert.cause).inc()


def _watch_readers(topics: Topics) -> None:
    monitor = TransactionMonitor()
    while True:
        try:
            stable = topics.committed_ends(ALERTS_TOPIC)
            held = monitor.check(topics.end_offsets(ALERTS_TOPIC), stable, time.monotonic())
        except (KafkaException, BrokerUnavailableError) as error:
            log.warning("alerts.readers_unknown", error=str(error))
        else:
            LSO_LAG.set(held.records)
            HELD_BACK.set(held.seconds)
            if held.is_too_long:
                log.warning("alerts.readers_held_back", records=held.records, seconds=round(held.seconds))
        time.sleep(READERS_SECONDS)


if __name__ == "__main__":
    Process("alerts").main(run)
