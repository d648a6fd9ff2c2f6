"""Partitions that are added to topics while records arrive, so that identities keep their order (R3).

A store's records are in one partition: the hash of the store, modulo the number of partitions. If that number is
multiplied, a store stays where it is or moves to a new partition, never from one old partition to another. Producers
notice new partitions minutes apart, so for a while a store's records go to both. So the new ones are opened by a fence:

    record the growth -> add partitions -> wait until producers know them -> a marker into every old partition
        -> announce when the new ones open -> confirm it -> readers that have passed the markers read the new ones

Until then nobody reads a new partition, and its records count as received when it opened, at the earliest. So whatever
an old partition has before its marker comes before everything in a new one: for every reader, and for every cut.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import orjson
from cassandra import ConsistencyLevel

from master_dataset.errors import OperatorError

if TYPE_CHECKING:
    from cassandra.cluster import Session

Offsets = Mapping[str, Mapping[int, int]]
"""Topic to partition to offset."""

_SELECT = (
    "SELECT partitions, partitions_before, begun_at, opens_at, fences, topic_ids, is_open FROM partition_growths "
    "WHERE series = 'galatea'"
)
_SELECT_SETTLED = f"{_SELECT} AND partitions > 0"
"""Another text: the driver prepares each once per session, and this one is read at SERIAL."""
_BEGIN = (
    "INSERT INTO partition_growths (series, partitions, partitions_before, begun_at) "
    "VALUES ('galatea', ?, ?, ?) IF NOT EXISTS"
)
_BEGIN_AGAIN = (
    "UPDATE partition_growths SET partitions_before = ?, begun_at = ?, opens_at = null, fences = null, "
    "topic_ids = null, is_open = null WHERE series = 'galatea' AND partitions = ? IF topic_ids = ?"
)
_ANNOUNCE = (
    "UPDATE partition_growths SET opens_at = ?, fences = ?, topic_ids = ? "
    "WHERE series = 'galatea' AND partitions = ? IF is_open = null AND begun_at != null"
)
_CONFIRM = "UPDATE partition_growths SET is_open = true WHERE series = 'galatea' AND partitions = ? IF opens_at = ?"


class Growth(NamedTuple):
    """One growth of all topics.

    Attributes:
        before: The number of partitions before it.
        partitions: The number after it, a multiple of `before`.
        begun_at: Partitions were added after that.
        opens_at: What the new partitions hold counts as received then, at the earliest; None if not announced yet.
        fences: Topic to old partition to the offset of the marker that every producer has passed.
        topic_ids: The id of each of these topics: one that is created again has another one, and no fence.
        is_open: Whether readers may read the new partitions.
    """

    before: int
    partitions: int
    begun_at: datetime
    opens_at: datetime | None = None
    fences: Offsets = MappingProxyType({})
    topic_ids: Mapping[str, str] = MappingProxyType({})
    is_open: bool = False

    def is_passed_by(self, positions: Offsets, topics: Collection[str]) -> bool:
        """Whether a reader of these topics with these positions has read what comes before the new partitions."""
        return self.is_open and all(
            positions.get(topic, {}).get(partition, 0) > marker
            for topic, own in self.fences.items()
            if topic in topics
            for partition, marker in own.items()
        )

    def of(self, topic_ids: Mapping[str, str]) -> "Growth | None":
        """Leave out fences of topics that were created again; None if no topic is left that grew."""
        if not self.topic_ids:
            return self
        fences = {topic: own for topic, own in self.fences.items() if topic_ids.get(topic) == self.topic_ids.get(topic)}
        return self._replace(fences=fences) if fences else None


class Move(NamedTuple):
    """Stores were in one of `before` partitions for what was received before `at`; then they may have moved."""

    before: int
    at: datetime


@dataclass(frozen=True)
class Partitions:
    """How many partitions the topics have, and which of them may be read. All topics have equally many.

    Attributes:
        original: The number when the topics were created.
        growths: In their order; only the last one may be unfinished.
    """

    original: int
    growths: tuple[Growth, ...] = ()

    @property
    def added(self) -> int:
        """How many the topics have."""
        return self.growths[-1].partitions if self.growths else self.original

    def covered(self, cut: datetime) -> int:
        """How many a cut has to cover: the others open after it, so that they hold nothing that was received before."""
        opened = (each.partitions for each in self.growths if each.opens_at is not None and each.opens_at <= cut)
        return max(opened, default=self.original)

    @property
    def open(self) -> int:
        """How many may be read."""
        return max((each.partitions for each in self.growths if each.is_open), default=self.original)

    def limited(self, number: int) -> "Partitions":
        """The state when only `number` partitions were open."""
        return Partitions(self.original, tuple(each for each in self.growths if each.partitions <= number))

    @property
    def moves(self) -> Sequence["Move"]:
        """When stores moved, and of how many partitions they had been in one until then."""
        return [Move(each.before, each.opens_at) for each in self.growths if each.is_open and each.opens_at is not None]

    def closed_beyond(self, number: int) -> Growth | None:
        """The open growth whose partitions a reader of `number` partitions does not read yet."""
        return next((each for each in self.growths if each.is_open and each.before == number), None)

    @property
    def unfinished(self) -> Growth | None:
        """The growth whose partitions are not open yet."""
        return next((each for each in self.growths if not each.is_open), None)

    def readable(self, positions: Offsets, topics: Collection[str]) -> int:
        """How many partitions a reader of these topics may read that has read the old ones up to these positions."""
        number = self.original
        for growth in self.growths:
            if not growth.is_passed_by(positions, topics):
                break
            number = growth.partitions
        return number

    def grown_topics(self, partition: int) -> Collection[str]:
        """The topics that had records when this partition was added; none of an original one."""
        opened = (each for each in self.growths if each.is_open and each.before <= partition < each.partitions)
        return next((each.fences for each in opened), ())

    def opened(self, offsets: Mapping[int, int]) -> dict[int, int]:
        """The offsets of partitions that may be read."""
        return {partition: offset for partition, offset in offsets.items() if partition < self.open}

    def opened_ms(self, partition: int) -> int:
        """What the partition holds was received then, at the earliest, in milliseconds since 1970; 0: an original one.

        ValueError if it is not open.
        """
        if partition < self.original:
            return 0
        for growth in self.growths:
            if partition < growth.partitions and growth.is_open and growth.opens_at is not None:
                return round(growth.opens_at.timestamp() * 1000)
        raise ValueError(f"partition {partition} is not open")

    def received_sql(self) -> str:
        """Spark SQL of the time at which a record of Kafka's source was received, from `timestamp` and `partition`."""
        cases = [
            f"when partition >= {growth.before} and partition < {growth.partitions} then "
            f"greatest(timestamp, timestamp_millis({self.opened_ms(growth.before)}L))"
            for growth in self.growths
            if growth.is_open
        ]
        return f"case {' '.join(cases)} else timestamp end" if cases else "timestamp"

    def start_offsets(self, since: Mapping[int, int], since_ms: int) -> dict[int, int]:
        """Where to begin, to read everything received at or after `since_ms`.

        Args:
            since: Open partition to its first offset that a broker stamped at or after that time.
            since_ms: The time, in milliseconds since 1970.

        Returns:
            The same offsets, but 0 for partitions that opened at that time or later: brokers stamp records before that.
        """
        return {
            partition: 0 if partition >= self.original and self.opened_ms(partition) >= since_ms else offset
            for partition, offset in since.items()
            if partition < self.open
        }

    def ancestors(self, partition: int) -> Sequence[tuple[int, Offsets]]:
        """The partitions in which the stores of this one were before, in order.

        Each with the fences, by topic and partition, up to which it had them: those of the growth that moved them on.
        """
        found: list[tuple[int, Offsets]] = []
        for growth in self.growths:
            home = partition % growth.before
            if growth.is_open and partition % growth.partitions != home:
                found.append((home, growth.fences))
        return found


class PartitionGrowths:
    """The table `partition_growths`."""

    def __init__(self, session: "Session") -> None:
        """`session` uses Galatea's keyspace."""
        self._session = session
        self._select = session.prepare(_SELECT)

    def read(self, original: int, topic_ids: Mapping[str, str]) -> Partitions:
        """The partitions of the topics.

        Args:
            original: Their number, if they have never grown.
            topic_ids: The ids that the topics have now.
        """
        found = (_growth(row).of(topic_ids) for row in self._session.execute(self._select))
        growths = tuple(each for each in found if each is not None)
        return Partitions(growths[0].before if growths else original, growths)

    def begin(self, before: int, partitions: int, topic_ids: Mapping[str, str], now: datetime) -> Growth:
        """Record a growth before partitions are added, or return the one to this number that has begun.

        OperatorError if it is another growth's turn, or the number is no multiple.
        """
        known = [each for each in self._settled() if each.of(topic_ids) is not None]
        found = next((each for each in known if each.partitions == partitions), None)
        if found is not None:
            return found
        unfinished = next((each for each in known if not each.is_open), None)
        if unfinished is not None:
            message = f"the growth from {unfinished.before} to {unfinished.partitions} partitions is not finished"
            command = f"GALATEA_KAFKA_PARTITIONS={unfinished.partitions} galatea migrate"
            raise OperatorError(message, do=f"run `{command}`, then this command again")
        if partitions <= before or partitions % before:
            message = f"{before} partitions cannot become {partitions}"
            raise OperatorError(message, do=f"set GALATEA_KAFKA_PARTITIONS to a multiple of {before}")
        void = next((each for each in self._settled() if each.partitions == partitions), None)
        if void is None:
            self._write(_BEGIN, (partitions, before, now))
        else:  # of topics that were created again since
            self._write(_BEGIN_AGAIN, (before, now, partitions, dict(void.topic_ids)))
        return next(each for each in self._settled() if each.partitions == partitions)

    def announce(self, growth: Growth) -> None:
        """Record when its partitions open, with the fences; again with a later time, as long as it is not confirmed."""
        fences = orjson.dumps(growth.fences, option=orjson.OPT_NON_STR_KEYS).decode()
        self._write(_ANNOUNCE, (growth.opens_at, fences, dict(growth.topic_ids), growth.partitions))

    def confirm(self, growth: Growth) -> Growth:
        """Open its partitions if what was announced last is this. Returns what is recorded now."""
        self._write(_CONFIRM, (growth.partitions, growth.opens_at))
        return self.settled(growth)

    def settled(self, growth: Growth) -> Growth:
        """What is recorded of this growth; whatever was being written is decided."""
        return next(each for each in self._settled() if each.partitions == growth.partitions)

    def _write(self, statement: str, values: tuple[object, ...]) -> None:
        self._session.execute(self._session.prepare(statement), values)

    def _settled(self) -> Sequence[Growth]:
        select = self._session.prepare(_SELECT_SETTLED)
        select.consistency_level = ConsistencyLevel.SERIAL
        return [_growth(row) for row in self._session.execute(select)]


def _growth(row: Any) -> Growth:  # noqa: ANN401 - a driver's row
    fences = {
        topic: {int(partition): offset for partition, offset in own.items()}
        for topic, own in orjson.loads(row.fences or "{}").items()
    }
    opens_at = row.opens_at.replace(tzinfo=UTC) if row.opens_at else None
    begun_at = row.begun_at.replace(tzinfo=UTC)
    ids = dict(row.topic_ids or {})
    return Growth(row.partitions_before, row.partitions, begun_at, opens_at, fences, ids, bool(row.is_open))


def next_opening(now: datetime, stamps: Iterable[datetime], skew: timedelta) -> datetime:
    """When new partitions may open, in whole milliseconds: after every marker, and late enough to be confirmed before.

    Args:
        now: The time.
        stamps: Of the markers in the old partitions.
        skew: How far clocks may differ.
    """
    found = max((now, *stamps)) + OPENING_MARGIN + 2 * skew
    return found.replace(microsecond=found.microsecond // 1000 * 1000)


OPENING_MARGIN = timedelta(seconds=5)
"""How long announcing an opening may take; one that takes longer is announced again."""
