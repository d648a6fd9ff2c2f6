"""The alert relay process, a child of `deploy.services.alerts`: `alerts_relay PIPE`."""

import os
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Protocol

import structlog
from cassandra import DriverException
from confluent_kafka import KafkaException
from prometheus_client import Counter, Gauge

from deploy.cassandra import FAILURES, session_of
from deploy.process import tether_if_asked
from deploy.services.alerts import READY
from deploy.services.runner import Process
from deploy.settings import Settings
from master_dataset.cassandra_tables import ALERTS_MISROUTED, AlarmTable
from master_dataset.errors import BrokerUnavailableError, DependencyUnavailableError
from master_dataset.kafka.topics import Topics
from master_dataset.registry.registry import Registry
from master_dataset.registry.rule_versions import RuleVersions
from master_dataset.registry.stores import Store
from master_dataset.sources import registered_sources
from speed_layer.alerts.history_table import HistoryTable
from speed_layer.alerts.history_writer import HistoryWriter, KafkaAlertsTopic
from speed_layer.alerts.processor import AlertProcessor, IdentityBudget, ProcessorConfig, known_alerts_retention
from speed_layer.alerts.rule_store import CassandraRuleStore, Ticker
from speed_layer.alerts.snapshots import Snapshots
from speed_layer.alerts.source import TransactionMonitor
from views.alerts.alert import ALERTS_TOPIC, CORRECTIONS_TOPIC, Alert
from views.alerts.rule_history import RuleHistory, unusable_rules

if TYPE_CHECKING:
    from cassandra.cluster import Session

NOT_TICKED = Counter(
    "galatea_alerts_tick_failures", "Rounds in which stores were not noted for alerts, or ticks not written."
)
_NAP_SECONDS = 1.0

log = structlog.get_logger()


class Notes(Protocol):
    """The book, into which facts of stores are written. Every method raises CassandraUnavailableError."""

    def note(self, stores: Mapping[str, Store], beat: Callable[[], None]) -> None:
        """Write down what is registered and not said yet."""

    def read(self) -> RuleHistory:
        """As of now."""


class Ticks(Protocol):
    """Writes ticks."""

    def tick(self, book: RuleHistory) -> None:
        """Into what a rule watches. BrokerUnavailableError."""


class Ticking:
    """A lane of its own: if it ends, the process does."""

    def __init__(
        self, notes: Notes, stores: Callable[[], Mapping[str, Store]], ticks: Ticks, beat: Callable[[], None]
    ) -> None:
        """`stores`: those that are registered; may raise what the driver does. `beat`: it gets on."""
        self._notes, self._stores, self._ticks, self._beat = notes, stores, ticks, beat

    def run(self, seconds: float) -> None:
        """Until the process ends, a round after so many seconds."""
        while True:
            self.once()
            until = time.monotonic() + seconds
            while (left := until - time.monotonic()) > 0:
                self._beat()
                time.sleep(min(left, _NAP_SECONDS))

    def once(self) -> None:
        """One round. What passes by itself is logged and counted, and tried again in the next one."""
        for step in (self._note, self._tick):
            try:
                step()
            except (DependencyUnavailableError, DriverException, *FAILURES) as error:
                NOT_TICKED.inc()
                log.warning("alerts.no_tick", why=str(error))
            self._beat()

    def _note(self) -> None:
        stores = self._stores()
        self._beat()
        self._notes.note(stores, self._beat)

    def _tick(self) -> None:
        book = self._notes.read()
        self._beat()
        self._ticks.tick(book)


Notice = Callable[[str, datetime, str, str], None]
"""Takes the name of an alarm, when it was noticed, where, and one sentence."""
MISKEYED = Counter(
    "galatea_alerts_miskeyed", "Events left out of alerts, in another partition than their store's.", ("topic",)
)
AGAIN_SECONDS = 1800.0
"""Noticed anew after so long: each is a row."""
SAID = "events lie in another partition than their store's"


class Miskeyed:
    """Of one process."""

    def __init__(self, notice: Notice, clock: Callable[[], float] = time.monotonic) -> None:
        """`notice` keeps an alarm; what it cannot keep is logged. `clock`: in seconds."""
        self._notice, self._clock = notice, clock
        self._said: dict[str, float] = {}
        for topic in registered_sources():
            MISKEYED.labels(topic)  # a counter that is there from the start shows its first increase

    def count(self, topic: str) -> None:
        """One more."""
        MISKEYED.labels(topic).inc()
        now = self._clock()
        if now - self._said.get(topic, -AGAIN_SECONDS) < AGAIN_SECONDS:
            return
        self._said[topic] = now
        try:
            self._notice(ALERTS_MISROUTED, datetime.now(UTC), topic, SAID)
        except FAILURES as error:
            log.warning("alerts.miskeyed_not_noticed", topic=topic, error=type(error).__name__)


EMITTED = Counter("galatea_alerts_emitted", "Alerts emitted since the process started.", ("kind",))
TOLD = Counter("galatea_alerts_told", "Former name of galatea_alerts_emitted.", ("kind",))
CORRECTED = Counter(
    "galatea_alert_corrections", "Records that publications asked for, and were told.", ("kind", "cause")
)
DISCARDED = Counter(
    "galatea_alerts_discarded", "Producers given up because an outcome was not certain.", ("partition",)
)
IDENTITIES = Gauge("galatea_alerts_identities_bytes", "Memory of the identities of the last day.")
LEFT_OUT = Gauge(
    "galatea_alerts_rules_left_out", "Versions of rules that this release cannot follow, found since the process began."
)
LSO_LAG = Gauge("galatea_alerts_lso_lag", "Records of alerts behind an open transaction, which no reader sees.")
HELD_BACK = Gauge("galatea_alerts_held_back_seconds", "For how long readers of alerts have been held back by it.")
BEAT_SECONDS, LOOK_SECONDS = 1.0, 5.0


class Lane:
    """What one of those who have to get on, a partition or another, says to whoever watches."""

    def __init__(self, pipe: int, number: int) -> None:
        """`number` is below `READY`."""
        self._pipe, self.number = pipe, number
        self._beaten_at = 0.0
        self._is_ready = False

    def beat(self) -> None:
        """It gets on."""
        if time.monotonic() - self._beaten_at > BEAT_SECONDS:
            os.write(self._pipe, bytes([self.number]))
            self._beaten_at = time.monotonic()

    def ready(self) -> None:
        """It reads what comes in."""
        if not self._is_ready:
            os.write(self._pipe, bytes([READY]))
            self._is_ready = True


def run(process: Process, settings: Settings) -> None:
    """Until the process ends, or one of its partitions does."""
    tether_if_asked()
    pipe = int(sys.argv[1])
    topics = Topics(settings.kafka.bootstrap)
    for topic in (*registered_sources(), ALERTS_TOPIC, CORRECTIONS_TOPIC):
        topics.check(topic, settings.kafka.partitions)
    session = session_of(settings.cassandra.address)
    versions = RuleVersions(session, timedelta(seconds=settings.alerts.rules_seconds))
    shelf = CassandraRuleStore(versions, settings.layers.skew)
    ticking = _ticking(settings, session, shelf, Lane(pipe, settings.kafka.partitions + 1))
    process.show_metrics(settings.alerts.metrics_port)
    threading.Thread(target=_watch_readers, args=(topics,), name="readers", daemon=True).start()
    room = IdentityBudget(settings.alerts.identities_mb)
    IDENTITIES.set_function(lambda: room.bytes)
    LEFT_OUT.set_function(unusable_rules)
    miskeyed = Miskeyed(AlarmTable(session).notice)
    lanes_of = (Lane(pipe, number) for number in range(settings.kafka.partitions))
    relays = [_relay(settings, shelf, room, miskeyed, lane) for lane in lanes_of]
    keeper = _keeper(settings, session, Lane(pipe, settings.kafka.partitions))
    tick = partial(ticking.run, settings.alerts.tick_seconds)
    lanes: Sequence[Callable[[], None]] = [keeper.run, tick, *(relay.run for relay in relays)]
    pool = ThreadPoolExecutor(len(lanes))  # never waited for: when one lane ends, the process does
    done, _ = wait([pool.submit(lane) for lane in lanes], return_when=FIRST_EXCEPTION)
    for each in done:
        each.result()


def _relay(
    settings: Settings, shelf: CassandraRuleStore, room: IdentityBudget, miskeyed: Miskeyed, lane: Lane
) -> AlertProcessor:
    number = lane.number
    snapshots = Snapshots(settings.home / "alerts" / str(number))
    discarded = DISCARDED.labels(number).inc
    work = ProcessorConfig(
        settings.kafka.bootstrap,
        tuple(registered_sources()),
        shelf,
        snapshots,
        beat=lane.beat,
        ready=lane.ready,
        emitted=_count,
        discarded=discarded,
        identity_budget=room,
        misrouted=miskeyed.count,
        known_alerts_retention=known_alerts_retention(settings.kafka.retention),
    )
    return AlertProcessor(work, number)


def _ticking(settings: Settings, session: "Session", shelf: CassandraRuleStore, lane: Lane) -> Ticking:
    """Stores that were registered before it began are noted: no record is read before."""
    registry = Registry(session)
    shelf.note(registry.stores(), lane.beat)
    ticker = Ticker(settings.kafka.bootstrap, range(settings.kafka.partitions))
    return Ticking(shelf, registry.stores, ticker, lane.beat)


def _keeper(settings: Settings, session: "Session", lane: Lane) -> HistoryWriter:
    now = partial(datetime.now, UTC)
    outlet = KafkaAlertsTopic(settings.kafka.bootstrap, tuple(registered_sources()), now)
    return HistoryWriter(outlet, HistoryTable(session), now, beat=lane.beat)


def _count(alerts: Sequence[Alert]) -> None:
    for alert in alerts:
        EMITTED.labels(alert.kind).inc()
        TOLD.labels(alert.kind).inc()
        if alert.cause is not None:
            CORRECTED.labels("late" if alert.late else alert.kind, alert.cause).inc()


def _watch_readers(topics: Topics) -> None:
    held_back = TransactionMonitor()
    while True:
        try:
            stable = topics.committed_ends(ALERTS_TOPIC)
            held = held_back.check(topics.end_offsets(ALERTS_TOPIC), stable, time.monotonic())
        except (KafkaException, BrokerUnavailableError) as error:
            log.warning("alerts.readers_not_seen", why=str(error))
        else:
            LSO_LAG.set(held.records)
            HELD_BACK.set(held.seconds)
            if held.is_too_long:
                log.warning("alerts.readers_held_back", records=held.records, seconds=round(held.seconds))
        time.sleep(LOOK_SECONDS)


if __name__ == "__main__":
    Process("alerts").main(run)
