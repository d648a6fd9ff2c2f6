"""The alert processor of one partition: consume, fold, produce; alerts and positions in one transaction.

    start a producer (ends what its predecessor left open)
      -> read the committed positions -> restore the state at them -> read every alert that was emitted
      -> poll -> fold -> commit alerts and positions -> poll -> ...

Whenever an outcome is uncertain, everything starts again from the top. So a processor that is killed anywhere emits
each alert exactly once.
"""

import random
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from datetime import timedelta

import structlog
from prometheus_client import Counter

from master_dataset.dead_letters.undelivered import UndeliveredRecord
from master_dataset.errors import DependencyUnavailableError, OperatorError
from master_dataset.failpoints import Failpoint, failpoint
from master_dataset.kafka.connection import KafkaConnection
from master_dataset.kafka.growth import Offsets, Partitions
from master_dataset.sources import registered_sources
from speed_layer.alerts.fold import Fold, LogRecord
from speed_layer.alerts.identities import SnapshotDamagedError
from speed_layer.alerts.intake import AlertIntake
from speed_layer.alerts.sender import ProducerDiscardedError, TransactionalSender
from speed_layer.alerts.snapshots import Snapshots
from speed_layer.alerts.source import (
    CommittedPositions,
    PartitionReader,
    RecordsLostError,
    SourceRecord,
    TopicIdentity,
    encode_topic_ids,
)
from speed_layer.alerts.state import State
from views.alerts.alert import ALERTS_TOPIC, CORRECTIONS_TOPIC, Alert
from views.alerts.rule_history import RuleHistory, RuleStore
from views.alerts.signatures import AlertSignatures
from views.alerts.timings import AlertTimings

SNAPSHOT_SECONDS = 60.0
MAX_WAIT_SECONDS = 5.0
MAX_ATTEMPTS = 10
"""The wait before a restart grows up to this number of attempts."""
MAX_IDENTITIES = 200_000
"""In memory for a partition, each about 128 bytes; then they are saved."""
_DAY_MS = 86_400_000
UNREADABLE_CORRECTIONS = Counter(
    "galatea_alert_corrections_unreadable", "Records of the topic of corrections that are no alerts of ours, left out."
)
log = structlog.get_logger()


class KnownAlerts:
    """The ids of emitted alerts, by day: a record with a known id is not emitted again."""

    def __init__(self, retention: timedelta) -> None:
        """`retention`: how long ids are kept, in log time, rounded up to whole days."""
        self._days = -(-retention // timedelta(days=1))
        self._ids: dict[int, set[str]] = {}

    def __contains__(self, alert_id: str) -> bool:
        """Whether it was emitted."""
        return any(alert_id in ids for ids in self._ids.values())

    def __len__(self) -> int:
        """How many ids are remembered."""
        return sum(map(len, self._ids.values()))

    def add(self, alert_id: str, at_ms: int) -> None:
        """`at_ms`: the log time at which it was emitted, or slightly later."""
        day = at_ms // _DAY_MS
        if day not in self._ids:
            newest = max((day, *self._ids))
            self._ids = {each: ids for each, ids in self._ids.items() if each >= newest - self._days}
        self._ids.setdefault(day, set()).add(alert_id)


def known_alerts_retention(retention: timedelta) -> timedelta:
    """How long ids of alerts have to be known if topics keep records for `retention`.

    A publication requests corrections of windows that began within the retention, give or take a day, and a processor
    that was stopped may read such a request as late again. The rules themselves only emit alerts about the last hours.
    """
    return 2 * retention + timedelta(days=2)


def start_positions(
    reader: PartitionReader, snapshots: Snapshots, committed: CommittedPositions, added: Collection[str] = ()
) -> dict[str, int]:
    """Positions for the topics that have none committed.

    Sources start at their end: events from before the first start raise no alerts. The topic of corrections starts at
    its beginning, and so do topics to which this partition was `added` while they had records. OperatorError if a topic
    had a position before: then Kafka has lost it, and starting at the end would skip records silently.
    """
    missing = [topic for topic in reader.topics if topic not in committed.positions]
    if not missing:
        return {}
    if committed.positions:
        forgotten = [topic for topic in missing if topic in {*committed.known_topics, *snapshots.topics}]
    else:
        forgotten = missing if snapshots.exist or reader.bounds(ALERTS_TOPIC)[1] > 0 else []
    if forgotten:
        named = ", ".join(f"`{topic}/{reader.partition}`" for topic in forgotten)
        what = f"alerts have read {named} before, but the committed position no longer exists"
        raise OperatorError(
            what, do="set the position to continue from: see docs/how-to/alerts.md, When positions are gone"
        )
    return {topic: reader.bounds(topic)[topic != CORRECTIONS_TOPIC and topic not in added] for topic in missing}


def check_log_continuity(
    reader: PartitionReader, committed: CommittedPositions, topic_ids: Mapping[str, TopicIdentity]
) -> None:
    """OperatorError if a topic is not the one that was read up to its position; RecordsLostError if it starts later."""
    do = "restore the broker's log, or see docs/how-to/alerts.md, When records are gone"
    for topic, position in committed.positions.items():
        name = f"`{topic}/{reader.partition}`"
        if committed.ids.get(topic, topic_ids[topic].id) != topic_ids[topic].id:
            raise OperatorError(f"{name} was recreated after alerts had read it to {position}", do=do)
        first, end = reader.bounds(topic)
        if end < position:
            raise OperatorError(f"alerts have read {name} to {position}, which ends at {end}: another log", do=do)
        if first > position:
            raise RecordsLostError(topic, reader.partition)


@dataclass(frozen=True)
class ProcessorConfig:
    """What the processors of all partitions share, but for the callbacks.

    Attributes:
        kafka: The cluster.
        topics: The topics of the sources that rules can watch.
        partitions: Those that are read: stores are spread over these.
        snapshots: Of this partition.
        signatures: Sign alerts, and tell which requests for corrections are ours. Of this partition's thread alone.
        store_rejected: Stores requests that are not ours as dead letters. May raise DependencyUnavailableError.
        known_alerts_retention: How long ids of alerts are remembered, at least.
        fences: Topic to partition to the offset after which it stops, as partitions were opened that are not read yet.
        beat: Called whenever there is progress.
        ready: Called when the processor has caught up and reads what comes in.
        emitted: Called with the alerts of each committed transaction.
        discarded: Called for each producer that was given up.
        misrouted: Called with the topic of each event that is in another partition than its store's.
    """

    kafka: KafkaConnection
    topics: Sequence[str]
    partitions: Partitions
    rule_store: RuleStore
    snapshots: Snapshots
    signatures: AlertSignatures
    timings: AlertTimings = field(default_factory=AlertTimings)
    fences: Offsets = field(default_factory=dict)
    known_alerts_retention: timedelta = timedelta(days=30)
    beat: Callable[[], None] = lambda: None
    ready: Callable[[], None] = lambda: None
    emitted: Callable[[Sequence[Alert]], None] = lambda _: None
    discarded: Callable[[], None] = lambda: None
    misrouted: Callable[[str], None] = lambda _: None
    store_rejected: Callable[[Sequence[UndeliveredRecord]], None] = lambda _: None


class AlertProcessor:
    """Follows one partition of every source, and the requests for corrections beside it."""

    def __init__(self, config: ProcessorConfig, partition: int) -> None:
        """`partition`: of every topic."""
        self._config, self._partition = config, partition
        self._topics = (*config.topics, CORRECTIONS_TOPIC)
        self._requests = AlertIntake(CORRECTIONS_TOPIC, config.signatures, config.store_rejected)
        self._history = RuleHistory([], 0)
        self._folds: Mapping[str, Fold] = {}
        self._topic_ids: Mapping[str, TopicIdentity] = {}
        self._positions: dict[str, int] = {}
        self._known = KnownAlerts(config.known_alerts_retention)
        self._snapshot_at = float("-inf")
        self._attempts = 0

    def run(self) -> None:
        """Run until the process ends. FencedError if another processor took over, OperatorError if records are gone."""
        while True:
            try:
                self._run_producer()
            except ProducerDiscardedError as error:
                self._config.discarded()
                log.info("alerts.discarded", partition=self._partition, error=str(error))
            except DependencyUnavailableError as error:
                log.warning("alerts.waiting", partition=self._partition, error=str(error))
            except SnapshotDamagedError as error:
                self._positions = {}
                self._config.snapshots.reset()
                log.warning("alerts.snapshot_damaged", partition=self._partition, error=str(error))
            self._config.beat()
            self._attempts = min(self._attempts + 1, MAX_ATTEMPTS)
            time.sleep(random.uniform(0, min(MAX_WAIT_SECONDS, 0.05 * 2**self._attempts)))  # noqa: S311 - no secret

    def _run_producer(self) -> None:
        """From the start of a producer until it fails."""
        sender, reader = self._sender(), self._reader()
        try:
            sender.start()
            self._start(sender, reader)
            self._config.ready()
            while True:
                self._config.beat()
                self._process(sender, reader)
        finally:
            sender.discard()
            reader.close()

    def _sender(self) -> TransactionalSender:
        return TransactionalSender(self._config.kafka, self._partition, self._config.signatures)

    def _reader(self) -> PartitionReader:
        return self._reader_of(self._partition, self._topics)

    def _reader_of(self, partition: int, topics: Sequence[str]) -> PartitionReader:
        return PartitionReader(self._config.kafka, topics, partition, self._config.partitions.opened_ms(partition))

    def _start(self, sender: TransactionalSender, reader: PartitionReader) -> None:
        """Restore the state at the committed positions, and read the id of every alert that was emitted.

        The sender has fenced every earlier writer, including one of a release that signed nothing.
        """
        self._config.signatures.begin(ALERTS_TOPIC, {self._partition: reader.log_end(ALERTS_TOPIC)})
        committed = reader.committed()
        topic_ids = {
            topic: each._replace(partitions=self._config.partitions.open) for topic, each in reader.topic_ids().items()
        }
        check_log_continuity(reader, committed, topic_ids)
        if topic_ids != self._topic_ids:  # a state of another topic, or of another number of partitions, is void
            self._topic_ids, self._positions = topic_ids, {}
        sender.metadata = encode_topic_ids(topic_ids)
        positions = dict(committed.positions)
        added = self._config.partitions.grown_topics(self._partition)
        if new := start_positions(reader, self._config.snapshots, committed, added):
            sender.send([], new, reader.group)
            positions |= new
        if positions != self._positions:
            self._catch_up(reader, positions)
        self._known = KnownAlerts(self._config.known_alerts_retention)
        for alert_id, emitted_ms in self._emitted(reader):
            self._known.add(alert_id, emitted_ms)
        reader.seek(positions)

    def _emitted(self, reader: PartitionReader) -> Iterator[tuple[str, int]]:
        """Id and receipt time (ms) of every alert that was emitted about the stores of this partition."""
        for ancestor, _ in self._config.partitions.ancestors(self._partition):
            with closing(self._reader_of(ancestor, self._topics)) as earlier:
                yield from earlier.known_alerts(self._config.beat, self._config.signatures)
        yield from reader.known_alerts(self._config.beat, self._config.signatures)

    def _catch_up(self, reader: PartitionReader, committed: Mapping[str, int]) -> None:
        """Fold up to the committed positions without emitting, from a snapshot or else from the first record."""
        self._positions = {}  # the saved identities are about to be of another moment than the folds
        snapshot = self._config.snapshots.load(committed, self._topic_ids)
        states = snapshot.states if snapshot else self._inherited()
        at = dict(snapshot.positions) if snapshot else {topic: reader.bounds(topic)[0] for topic in committed}
        own = (self._partition, self._partition)
        folds = {topic: self._fold(topic, own, states.get(topic)) for topic in committed if topic != CORRECTIONS_TOPIC}
        self._fold_up_to(reader, folds, at, committed)
        self._folds, self._positions = folds, dict(committed)
        self._save_snapshot()

    def _inherited(self) -> Mapping[str, State]:
        """What is known about the stores of this partition from the partitions in which they were before."""
        states: dict[str, State] = {}
        for ancestor, fences in self._config.partitions.ancestors(self._partition):
            until = {topic: own[ancestor] for topic, own in fences.items() if topic in self._config.topics}
            with closing(self._reader_of(ancestor, list(until))) as reader:
                at = {topic: reader.bounds(topic)[0] for topic in until}
                moved = (ancestor, self._partition)
                folds = {topic: self._fold(topic, moved, states.get(topic)) for topic in until}
                self._fold_up_to(reader, folds, at, until, is_old=True)
            states |= {topic: fold.state for topic, fold in folds.items()}
        return states

    def _fold_up_to(
        self,
        reader: PartitionReader,
        folds: dict[str, Fold],
        at: dict[str, int],
        until: Mapping[str, int],
        *,
        is_old: bool = False,
    ) -> None:
        """Fold what a partition holds from `at` to `until`, without emitting.

        RecordsLostError if a topic begins after `until`, unless `is_old`: then nothing is left of it to be folded.
        """
        reader.seek({topic: first for topic, first in at.items() if first < until[topic]})
        while any(at[topic] < end for topic, end in until.items()):
            self._config.beat()
            try:
                polled = reader.poll()
            except RecordsLostError as lost:
                at[lost.topic] = reader.bounds(lost.topic)[0]
                if at[lost.topic] > until[lost.topic] and not is_old:
                    raise
                if lost.topic in folds:  # retention has deleted records: continue as if the log had always started here
                    self._config.snapshots.identities(lost.topic).clear()
                    folds[lost.topic] = self._fold(lost.topic, folds[lost.topic].place, None)
                reader.seek({topic: first for topic, first in at.items() if first < until[topic]})
                continue
            for read in polled:
                if read.topic in folds and read.entry is not None and read.entry.offset < until[read.topic]:
                    folds[read.topic].step(read.entry, self._history_for(read.entry.received_ms))
                at[read.topic] = max(at[read.topic], read.next_offset)
            if _identity_count(folds) > MAX_IDENTITIES:
                states = {topic: fold.state for topic, fold in folds.items()}
                if is_old:  # positions of another partition's log make no snapshot
                    self._config.snapshots.spill(states)
                else:
                    self._config.snapshots.save(at, states, self._topic_ids)

    def _fold(self, topic: str, place: tuple[int, int], state: State | None) -> Fold:
        """`place`: the partition whose records are folded, and the one whose stores are followed."""
        partition, home = place
        source = registered_sources()[topic]
        saved = self._config.snapshots.identities(topic)
        partitions = self._config.partitions.open
        return Fold(source, partition, self._config.timings, state, partitions, home=home, saved=saved)

    def _process(self, sender: TransactionalSender, reader: PartitionReader) -> None:
        """Poll once, fold, and commit what it leads to."""
        polled = [read for read in reader.poll() if read.entry is not None and not self._is_closed(read)]
        sender.poll()
        if not polled:
            return
        positions, self._positions = dict(self._positions), {}  # a state that is half folded must not be reused
        if any(read.topic == CORRECTIONS_TOPIC for read in polled):
            self._requests.refresh()
        found: dict[str, Alert] = {}
        for alert in (alert for read in polled for alert in self._alerts_for(read)):
            found.setdefault(alert.alert_id, alert)  # a publication may request an alert that is just being raised
        alerts = list(found.values())
        failpoint(Failpoint.ALERTS_FOLDED)
        self._requests.store_rejected()
        positions |= {read.topic: read.next_offset for read in polled}
        self._positions = positions
        sender.send(alerts, positions, reader.group)
        self._attempts = 0
        at_ms = max(read.entry.received_ms for read in polled if read.entry is not None)
        for alert in alerts:
            self._known.add(alert.alert_id, at_ms)
        self._config.emitted(alerts)
        is_full = _identity_count(self._folds) > MAX_IDENTITIES
        if is_full or time.monotonic() - self._snapshot_at > SNAPSHOT_SECONDS:
            self._save_snapshot()

    def _is_closed(self, read: SourceRecord) -> bool:
        """Whether it lies behind the fence of partitions that were opened: stores have moved, and this one stops."""
        fence = self._config.fences.get(read.topic, {}).get(self._partition)
        return fence is not None and read.next_offset - 1 > fence

    def _alerts_for(self, read: SourceRecord) -> Sequence[Alert]:
        """The alerts that a record leads to and that were not emitted before."""
        if read.entry is None:
            return ()
        if read.topic == CORRECTIONS_TOPIC:
            alerts = self._requested(read.entry)
        else:
            fold = self._folds[read.topic]
            before = fold.misrouted
            alerts = fold.step(read.entry, self._history_for(read.entry.received_ms))
            if fold.misrouted > before:
                self._config.misrouted(read.topic)
        return [alert for alert in alerts if alert.alert_id not in self._known]

    def _requested(self, entry: LogRecord) -> Sequence[Alert]:
        """The record that a publication requests. Anything else was written by another program and is not emitted."""
        alert = self._requests.alert(self._partition, entry)
        if alert is None:
            UNREADABLE_CORRECTIONS.inc()
        return () if alert is None else (alert,)

    def _history_for(self, received_ms: int) -> RuleHistory:
        """The rule history, read late enough to contain every version that can be effective for this record."""
        while received_ms >= self._history.complete_before_ms:
            self._history = self._config.rule_store.read()
            self._config.beat()
            if received_ms >= self._history.complete_before_ms:
                time.sleep(0.1)  # the broker's clock is ahead of this one
        return self._history

    def _save_snapshot(self) -> None:
        states = {topic: fold.state for topic, fold in self._folds.items()}
        self._config.snapshots.save(self._positions, states, self._topic_ids)
        self._snapshot_at = time.monotonic()


def _identity_count(folds: Mapping[str, Fold]) -> int:
    """How many identities are in memory."""
    return sum(fold.state.identity_count for fold in folds.values())
