"""Where a relay may begin: at what is committed. What would leave out records in silence is a named stop instead.

Ids of alerts that were told: what somebody asks for again is left out.

How much memory what was met may take: at its limit the relay stops by name, and forgets nothing.

The relay of one partition: consume, fold, produce; alerts and positions in one transaction.

From the top whenever an outcome is not certain: a new producer first, which ends what was open, and only then what is
committed, the state as of there, and every alert that is known. Killed anywhere, it tells each alert exactly once.
"""

import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta

import msgspec
import structlog

from master_dataset.errors import DependencyUnavailableError, OperatorError
from master_dataset.failpoints import Failpoint, failpoint
from master_dataset.sources import registered_sources
from speed_layer.alerts.fold import Fold
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
from speed_layer.alerts.state import Horizons, State
from views.alerts.alert import ALERTS_TOPIC, CORRECTIONS_TOPIC, Alert
from views.alerts.rule_history import RuleHistory, RuleStore


def start_positions(reader: PartitionReader, snapshots: Snapshots, committed: CommittedPositions) -> dict[str, int]:
    """Where to begin in topics without a position: of events that were there before the first start nothing is told.

    What a publication asks for is. OperatorError if a topic had a position once: Kafka has forgotten it.
    """
    missing = [topic for topic in reader.topics if topic not in committed.positions]
    if not missing:
        return {}
    if committed.positions:
        forgotten = [topic for topic in missing if topic in {*committed.read, *snapshots.topics}]
    else:
        forgotten = missing if snapshots.exist or reader.bounds(ALERTS_TOPIC)[1] > 0 else []
    if forgotten:
        named = ", ".join(f"`{topic}/{reader.partition}`" for topic in forgotten)
        what = f"alerts have read {named} before, and nothing is committed any more of how far"
        raise OperatorError(what, do="say where to go on: see docs/how-to/alerts.md, When positions are gone")
    return {topic: reader.bounds(topic)[topic != CORRECTIONS_TOPIC] for topic in missing}


def check_log_continuity(
    reader: PartitionReader, committed: CommittedPositions, topic_ids: Mapping[str, TopicIdentity]
) -> None:
    """OperatorError if a topic is not the one that was read to there, or cannot be. RecordsGone if it begins behind."""
    do = "put the broker's log back, or see docs/how-to/alerts.md, When records are gone"
    for topic, at in committed.positions.items():
        place = f"`{topic}/{reader.partition}`"
        if committed.ids.get(topic, topic_ids[topic].id) != topic_ids[topic].id:
            raise OperatorError(f"{place} was made anew since alerts have read it to {at}: another log", do=do)
        first, end = reader.bounds(topic)
        if end < at:
            raise OperatorError(f"alerts have read {place} to {at}, which ends at {end}: another log", do=do)
        if first > at:
            raise RecordsLostError(topic, reader.partition)


_DAY_MS = 86_400_000


def known_alerts_retention(retention: timedelta) -> timedelta:
    """For how long what was told has to be known, if topics keep records for so long.

    A publication asks for records about windows that began within the retention, less or more than a day, and a relay
    that was stopped may read that as late again; by its own rules a relay tells of the last hours alone.
    """
    return 2 * retention + timedelta(days=2)


class KnownAlerts:
    """Lets go of what was told so long ago that nobody asks for it any more."""

    def __init__(self, kept: timedelta) -> None:
        """`kept`: for how long by the time of the log, rounded up to whole days."""
        self._days = -(-kept // timedelta(days=1))
        self._told: dict[int, set[str]] = {}

    def __contains__(self, alert_id: str) -> bool:
        """Whether it was told."""
        return any(alert_id in ids for ids in self._told.values())

    def __len__(self) -> int:
        """How many are remembered."""
        return sum(map(len, self._told.values()))

    def add(self, alert_id: str, at_ms: int) -> None:
        """It was told, at that time of the log or a little later."""
        day = at_ms // _DAY_MS
        if day not in self._told:
            newest = max((day, *self._told))
            self._told = {each: ids for each, ids in self._told.items() if each >= newest - self._days}
        self._told.setdefault(day, set()).add(alert_id)


IDENTITY_BYTES = 128
"""What an identity takes in a set, measured, the free places of the set included."""
DEFAULT_MB = 256
_MB = 1 << 20


class IdentityBudget:
    """One for all partitions of a process."""

    def __init__(self, limit_mb: int) -> None:
        """Nothing is held yet."""
        self._limit_mb = limit_mb
        self._held: dict[int, int] = {}

    @property
    def bytes(self) -> int:
        """What the identities of all partitions take."""
        return sum(list(self._held.values())) * IDENTITY_BYTES

    def hold(self, partition: int, identities: int) -> None:
        """A partition remembers so many. OperatorError if all together take more than they may."""
        self._held[partition] = identities
        if self.bytes > self._limit_mb * _MB:
            what = f"the identities of the last day take more than the {self._limit_mb} MB that alerts may use"
            do = "raise GALATEA_ALERTS_IDENTITIES_MB if there is memory; none may be forgotten before its day is over"
            raise OperatorError(what, do=do)


SNAPSHOT_SECONDS = 60.0
MOST_WAIT_SECONDS = 5.0
MOST_TRIES = 10
"""Of which the wait depends."""
log = structlog.get_logger()


@dataclass(frozen=True)
class ProcessorConfig:
    """`topics`: of the sources that are followed. `beat` is called whenever there is progress, `ready` when it reads.

    `emitted` hears of every alert that is committed, `discarded` of every producer that was given up, `misrouted` of the
    topic of every event that lies in another partition than its store's. `identity_budget` is shared by all of a process.
    `known_alerts_retention`: how long ids of alerts are remembered at least.
    """

    bootstrap: str
    topics: Sequence[str]
    rule_store: RuleStore
    snapshots: Snapshots
    horizons: Horizons = field(default_factory=Horizons)
    known_alerts_retention: timedelta = timedelta(days=30)
    beat: Callable[[], None] = lambda: None
    ready: Callable[[], None] = lambda: None
    emitted: Callable[[Sequence[Alert]], None] = lambda _: None
    discarded: Callable[[], None] = lambda: None
    misrouted: Callable[[str], None] = lambda _: None
    identity_budget: IdentityBudget = field(default_factory=lambda: IdentityBudget(DEFAULT_MB))


class AlertProcessor:
    """Of one partition of every source."""

    def __init__(self, work: ProcessorConfig, partition: int) -> None:
        """Nothing is read yet."""
        self._work, self._partition = work, partition
        self._topics = (*work.topics, CORRECTIONS_TOPIC)
        self._history = RuleHistory([], 0)
        self._folds: Mapping[str, Fold] = {}
        self._topic_ids: Mapping[str, TopicIdentity] = {}
        self._positions: dict[str, int] = {}
        self._known = KnownAlerts(work.known_alerts_retention)
        self._snapshot_at = float("-inf")
        self._attempts = 0

    def run(self) -> None:
        """Until the process ends. Fenced if another relay took over, OperatorError if records are gone."""
        while True:
            try:
                self._run_producer()
            except ProducerDiscardedError as why:
                self._work.discarded()
                log.info("alerts.discarded", partition=self._partition, why=str(why))
            except DependencyUnavailableError as error:
                log.warning("alerts.waiting", partition=self._partition, why=str(error))
            self._work.beat()
            self._attempts = min(self._attempts + 1, MOST_TRIES)
            time.sleep(random.uniform(0, min(MOST_WAIT_SECONDS, 0.05 * 2**self._attempts)))  # noqa: S311 - no secret

    def _run_producer(self) -> None:
        """The life of one producer."""
        sender, reader = self._sender(), self._reader()
        try:
            sender.start()
            self._start(sender, reader)
            self._work.ready()
            while True:
                self._work.beat()
                self._process(sender, reader)
        finally:
            sender.discard()
            reader.close()

    def _sender(self) -> TransactionalSender:
        return TransactionalSender(self._work.bootstrap, self._partition)

    def _reader(self) -> PartitionReader:
        return PartitionReader(self._work.bootstrap, self._topics, self._partition)

    def _start(self, sender: TransactionalSender, reader: PartitionReader) -> None:
        """Have the state as of what is committed, and every alert that is known."""
        committed, topic_ids = reader.committed(), reader.topic_ids()
        check_log_continuity(reader, committed, topic_ids)
        self._set_topic_ids(topic_ids)
        sender.metadata = encode_topic_ids(topic_ids)
        committed = dict(committed.positions)
        if new := start_positions(reader, self._work.snapshots, committed):
            sender.send([], new, reader.group)
            committed |= new
        if committed != self._positions:
            self._catch_up(reader, committed)
        self._known = KnownAlerts(self._work.known_alerts_retention)
        for alert_id, told_ms in reader.known_alerts(self._work.beat):
            self._known.add(alert_id, told_ms)
        reader.seek(committed)

    def _set_topic_ids(self, topic_ids: Mapping[str, TopicIdentity]) -> None:
        """What was folded as another partition of it, or of another topic, is worth nothing."""
        if topic_ids != self._topic_ids:
            self._topic_ids, self._positions = topic_ids, {}

    def _catch_up(self, reader: PartitionReader, committed: Mapping[str, int]) -> None:
        """Fold up to there without telling, from a snapshot or else from the first record there is."""
        found = self._work.snapshots.newest(committed, self._topic_ids)
        states = found.states if found else {}
        at = dict(found.positions) if found else {topic: reader.bounds(topic)[0] for topic in committed}
        folds = {topic: self._fold(topic, states.get(topic)) for topic in committed if topic != CORRECTIONS_TOPIC}
        reader.seek(at)
        while any(at[topic] < until for topic, until in committed.items()):
            self._work.beat()
            try:
                taken = reader.poll()
            except RecordsLostError as gone:
                at[gone.topic] = reader.bounds(gone.topic)[0]
                if at[gone.topic] > committed[gone.topic]:
                    raise
                if gone.topic in folds:  # retention deletes meanwhile: as if the log had begun where it begins now
                    folds[gone.topic] = self._fold(gone.topic, None)
                reader.seek(at)
                continue
            for read in taken:
                if read.topic in folds and read.entry is not None and read.entry.offset < committed[read.topic]:
                    folds[read.topic].step(read.entry, self._history_for(read.entry.received_ms))
                at[read.topic] = max(at[read.topic], read.next_offset)
            self._check_budget(folds)
        self._folds, self._positions = folds, dict(committed)
        self._save_snapshot()

    def _fold(self, topic: str, state: State | None) -> Fold:
        source, partitions = registered_sources()[topic], self._topic_ids[topic].partitions
        return Fold(source, self._partition, self._work.horizons, state, partitions)

    def _process(self, sender: TransactionalSender, reader: PartitionReader) -> None:
        taken = [read for read in reader.poll() if read.entry is not None]
        sender.poll()
        if not taken:
            return
        positions, self._positions = dict(self._positions), {}  # of a state that is half folded nobody may go on
        found: dict[str, Alert] = {}
        for alert in (alert for read in taken for alert in self._alerts_for(read)):
            found.setdefault(alert.alert_id, alert)  # a publication may ask for what is raised at this moment
        alerts = list(found.values())
        self._check_budget(self._folds)
        failpoint(Failpoint.ALERTS_FOLDED)
        positions |= {read.topic: read.next_offset for read in taken}
        self._positions = positions
        sender.send(alerts, positions, reader.group)
        self._attempts = 0
        at_ms = max(read.entry.received_ms for read in taken if read.entry is not None)
        for alert in alerts:
            self._known.add(alert.alert_id, at_ms)
        self._work.emitted(alerts)
        if time.monotonic() - self._snapshot_at > SNAPSHOT_SECONDS:
            self._save_snapshot()

    def _check_budget(self, folds: Mapping[str, Fold]) -> None:
        self._work.identity_budget.hold(self._partition, sum(fold.state.identity_count for fold in folds.values()))

    def _alerts_for(self, read: SourceRecord) -> Sequence[Alert]:
        if read.entry is None:
            return ()
        if read.topic == CORRECTIONS_TOPIC:
            emitted = _asked_for(read.entry.value)
        else:
            fold = self._folds[read.topic]
            before = fold.misrouted
            emitted = fold.step(read.entry, self._history_for(read.entry.received_ms))
            if fold.misrouted > before:
                self._work.misrouted(read.topic)
        return [alert for alert in emitted if alert.alert_id not in self._known]

    def _history_for(self, received_ms: int) -> RuleHistory:
        """The book, read late enough to have every version that can be effective for this record."""
        while received_ms >= self._history.complete_before_ms:
            self._history = self._work.rule_store.read()
            self._work.beat()
            if received_ms >= self._history.complete_before_ms:
                time.sleep(0.1)  # the broker's clock is ahead of this one
        return self._history

    def _save_snapshot(self) -> None:
        states = {topic: fold.state for topic, fold in self._folds.items()}
        self._work.snapshots.save(self._positions, states, self._topic_ids)
        self._snapshot_at = time.monotonic()


def _asked_for(value: bytes | None) -> Sequence[Alert]:
    """The record that a publication asks for. What is none was written by somebody else: it is not told."""
    try:
        return [Alert.from_json(value or b"")]
    except msgspec.DecodeError as error:
        log.warning("alerts.no_correction", why=str(error))
        return []
