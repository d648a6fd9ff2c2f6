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
from master_dataset.failpoints import CrashPoint, passing
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


def start_positions(inlet: PartitionReader, snapshots: Snapshots, known: CommittedPositions) -> dict[str, int]:
    """Where to begin in topics without a position: of events that were there before the first start nothing is told.

    What a publication asks for is. OperatorError if a topic had a position once: Kafka has forgotten it.
    """
    missing = [topic for topic in inlet.topics if topic not in known.positions]
    if not missing:
        return {}
    if known.positions:
        forgotten = [topic for topic in missing if topic in {*known.read, *snapshots.topics}]
    else:
        forgotten = missing if snapshots.are_there or inlet.bounds(ALERTS_TOPIC)[1] > 0 else []
    if forgotten:
        named = ", ".join(f"`{topic}/{inlet.partition}`" for topic in forgotten)
        what = f"alerts have read {named} before, and nothing is committed any more of how far"
        raise OperatorError(what, do="say where to go on: see docs/how-to/alerts.md, When positions are gone")
    return {topic: inlet.bounds(topic)[topic != CORRECTIONS_TOPIC] for topic in missing}


def check_log_continuity(inlet: PartitionReader, known: CommittedPositions, logs: Mapping[str, TopicIdentity]) -> None:
    """OperatorError if a topic is not the one that was read to there, or cannot be. RecordsGone if it begins behind."""
    do = "put the broker's log back, or see docs/how-to/alerts.md, When records are gone"
    for topic, at in known.positions.items():
        place = f"`{topic}/{inlet.partition}`"
        if known.ids.get(topic, logs[topic].id) != logs[topic].id:
            raise OperatorError(f"{place} was made anew since alerts have read it to {at}: another log", do=do)
        first, end = inlet.bounds(topic)
        if end < at:
            raise OperatorError(f"alerts have read {place} to {at}, which ends at {end}: another log", do=do)
        if first > at:
            raise RecordsLostError(topic, inlet.partition)


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

    `told` hears of every alert that is committed, `discarded` of every producer that was given up, `miskeyed` of the
    topic of every event that lies in another partition than its store's. `room` is shared by all of a process.
    `known_for`: how long ids of alerts are remembered at least.
    """

    bootstrap: str
    topics: Sequence[str]
    shelf: RuleStore
    snapshots: Snapshots
    horizons: Horizons = field(default_factory=Horizons)
    known_alerts_retention: timedelta = timedelta(days=30)
    beat: Callable[[], None] = lambda: None
    ready: Callable[[], None] = lambda: None
    told: Callable[[Sequence[Alert]], None] = lambda _: None
    discarded: Callable[[], None] = lambda: None
    miskeyed: Callable[[str], None] = lambda _: None
    room: IdentityBudget = field(default_factory=lambda: IdentityBudget(DEFAULT_MB))


class AlertProcessor:
    """Of one partition of every source."""

    def __init__(self, work: ProcessorConfig, partition: int) -> None:
        """Nothing is read yet."""
        self._work, self._partition = work, partition
        self._topics = (*work.topics, CORRECTIONS_TOPIC)
        self._book = RuleHistory([], 0)
        self._folds: Mapping[str, Fold] = {}
        self._logs: Mapping[str, TopicIdentity] = {}
        self._positions: dict[str, int] = {}
        self._known = KnownAlerts(work.known_for)
        self._kept_at = float("-inf")
        self._tries = 0

    def run(self) -> None:
        """Until the process ends. Fenced if another relay took over, OperatorError if records are gone."""
        while True:
            try:
                self._live()
            except ProducerDiscardedError as why:
                self._work.discarded()
                log.info("alerts.discarded", partition=self._partition, why=str(why))
            except DependencyUnavailableError as error:
                log.warning("alerts.waiting", partition=self._partition, why=str(error))
            self._work.beat()
            self._tries = min(self._tries + 1, MOST_TRIES)
            time.sleep(random.uniform(0, min(MOST_WAIT_SECONDS, 0.05 * 2**self._tries)))  # noqa: S311 - no secret

    def _live(self) -> None:
        """The life of one producer."""
        sender, inlet = self._sender(), self._inlet()
        try:
            sender.settle()
            self._begin(sender, inlet)
            self._work.ready()
            while True:
                self._work.beat()
                self._go_on(sender, inlet)
        finally:
            sender.discard()
            inlet.close()

    def _sender(self) -> TransactionalSender:
        return TransactionalSender(self._work.bootstrap, self._partition)

    def _inlet(self) -> PartitionReader:
        return PartitionReader(self._work.bootstrap, self._topics, self._partition)

    def _begin(self, sender: TransactionalSender, inlet: PartitionReader) -> None:
        """Have the state as of what is committed, and every alert that is known."""
        known, logs = inlet.committed(), inlet.logs()
        check_log_continuity(inlet, known, logs)
        self._note(logs)
        sender.note = encode_topic_ids(logs)
        committed = dict(known.positions)
        if new := start_positions(inlet, self._work.snapshots, known):
            sender.send([], new, inlet.group)
            committed |= new
        if committed != self._positions:
            self._catch_up(inlet, committed)
        self._known = KnownAlerts(self._work.known_for)
        for alert_id, told_ms in inlet.known_alerts(self._work.beat):
            self._known.add(alert_id, told_ms)
        inlet.go_to(committed)

    def _note(self, logs: Mapping[str, TopicIdentity]) -> None:
        """What was folded as another partition of it, or of another topic, is worth nothing."""
        if logs != self._logs:
            self._logs, self._positions = logs, {}

    def _catch_up(self, inlet: PartitionReader, committed: Mapping[str, int]) -> None:
        """Fold up to there without telling, from a snapshot or else from the first record there is."""
        found = self._work.snapshots.newest(committed, self._logs)
        states = found.states if found else {}
        at = dict(found.positions) if found else {topic: inlet.bounds(topic)[0] for topic in committed}
        folds = {topic: self._fold(topic, states.get(topic)) for topic in committed if topic != CORRECTIONS_TOPIC}
        inlet.go_to(at)
        while any(at[topic] < until for topic, until in committed.items()):
            self._work.beat()
            try:
                taken = inlet.take()
            except RecordsLostError as gone:
                at[gone.topic] = inlet.bounds(gone.topic)[0]
                if at[gone.topic] > committed[gone.topic]:
                    raise
                if gone.topic in folds:  # retention deletes meanwhile: as if the log had begun where it begins now
                    folds[gone.topic] = self._fold(gone.topic, None)
                inlet.go_to(at)
                continue
            for read in taken:
                if read.topic in folds and read.entry is not None and read.entry.offset < committed[read.topic]:
                    folds[read.topic].step(read.entry, self._book_for(read.entry.received_ms))
                at[read.topic] = max(at[read.topic], read.next_offset)
            self._hold(folds)
        self._folds, self._positions = folds, dict(committed)
        self._keep()

    def _fold(self, topic: str, state: State | None) -> Fold:
        source, partitions = registered_sources()[topic], self._logs[topic].partitions
        return Fold(source, self._partition, self._work.horizons, state, partitions)

    def _go_on(self, sender: TransactionalSender, inlet: PartitionReader) -> None:
        taken = [read for read in inlet.take() if read.entry is not None]
        sender.rest()
        if not taken:
            return
        positions, self._positions = dict(self._positions), {}  # of a state that is half folded nobody may go on
        found: dict[str, Alert] = {}
        for alert in (alert for read in taken for alert in self._told_by(read)):
            found.setdefault(alert.alert_id, alert)  # a publication may ask for what is raised at this moment
        alerts = list(found.values())
        self._hold(self._folds)
        passing(CrashPoint.ALERTS_FOLDED)
        positions |= {read.topic: read.next_offset for read in taken}
        self._positions = positions
        sender.send(alerts, positions, inlet.group)
        self._tries = 0
        at_ms = max(read.entry.received_ms for read in taken if read.entry is not None)
        for alert in alerts:
            self._known.add(alert.alert_id, at_ms)
        self._work.told(alerts)
        if time.monotonic() - self._kept_at > SNAPSHOT_SECONDS:
            self._keep()

    def _hold(self, folds: Mapping[str, Fold]) -> None:
        self._work.room.hold(self._partition, sum(fold.state.met for fold in folds.values()))

    def _told_by(self, read: SourceRecord) -> Sequence[Alert]:
        if read.entry is None:
            return ()
        if read.topic == CORRECTIONS_TOPIC:
            told = _asked_for(read.entry.value)
        else:
            fold = self._folds[read.topic]
            before = fold.miskeyed
            told = fold.step(read.entry, self._book_for(read.entry.received_ms))
            if fold.miskeyed > before:
                self._work.miskeyed(read.topic)
        return [alert for alert in told if alert.alert_id not in self._known]

    def _book_for(self, received_ms: int) -> RuleHistory:
        """The book, read late enough to have every version that can be effective for this record."""
        while received_ms >= self._book.complete_before_ms:
            self._book = self._work.shelf.read()
            self._work.beat()
            if received_ms >= self._book.complete_before_ms:
                time.sleep(0.1)  # the broker's clock is ahead of this one
        return self._book

    def _keep(self) -> None:
        states = {topic: fold.state for topic, fold in self._folds.items()}
        self._work.snapshots.keep(self._positions, states, self._logs)
        self._kept_at = time.monotonic()


def _asked_for(value: bytes | None) -> Sequence[Alert]:
    """The record that a publication asks for. What is none was written by somebody else: it is not told."""
    try:
        return [Alert.from_json(value or b"")]
    except msgspec.DecodeError as error:
        log.warning("alerts.no_correction", why=str(error))
        return []
