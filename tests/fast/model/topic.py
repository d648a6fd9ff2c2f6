"""A topic: partitions with transactions, stamped by brokers whose clocks differ and step back."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import Enum

from tests.fast.model.facts import FUTURE, PARTITIONS, SKEW, TOPIC, Fact


class State(Enum):
    """Of a transaction."""

    OPEN = "open"
    COMMITTED = "committed"
    ABORTED = "aborted"


@dataclass
class Transaction:
    """Records of one partition that become visible together, or never."""

    state: State = State.OPEN


@dataclass(slots=True, eq=False)
class Record:
    """`fact`: None for a marker. `stepped`: its stamp is more than the skew behind.

    `is_end`: it ends a transaction, and no reader is given it.
    """

    partition: int
    offset: int
    received_at: datetime
    fact: Fact | None
    transaction: Transaction | None
    stepped: bool
    is_end: bool = False

    @property
    def is_event(self) -> bool:
        """Whether every reader takes it for one: neither marker nor from the future."""
        return self.fact is not None and self.fact.happened_at <= self.received_at + FUTURE

    @property
    def is_visible(self) -> bool:
        """For readers of committed records only."""
        return not self.is_end and (self.transaction is None or self.transaction.state is State.COMMITTED)


@dataclass
class Partition:
    """`ahead`: of the true time, its leader's clock."""

    number: int
    records: list[Record] = field(default_factory=list)
    ahead: timedelta = timedelta(0)
    newest: datetime | None = None
    transaction: Transaction | None = None
    opened_at: datetime | None = None
    """What it holds was received then, at the earliest; None: it was there from the start, or is not open yet."""
    stamps: list[datetime] = field(default_factory=list)
    """The broker's, of each record."""

    def append(self, now: datetime, fact: Fact | None, transaction: Transaction | None = None) -> Record:
        """The broker stamps it."""
        stamp = now + self.ahead
        stepped = self.newest is not None and stamp < self.newest - SKEW
        received_at = max(stamp, self.opened_at or stamp)
        record = Record(self.number, len(self.records), received_at, fact, transaction, stepped)
        self.records.append(record)
        self.stamps.append(stamp)
        self.newest = max(self.newest or stamp, stamp)
        return record

    @property
    def stable(self) -> int:
        """The last stable offset: what lies behind is not shown to who reads committed records only."""
        if self.transaction is None:
            return len(self.records)
        return next(each.offset for each in self.records if each.transaction is self.transaction)


class Topic:
    """As clients see it; `offsets_since`, `end_offsets` and `partitions` are those of `Topics`."""

    def __init__(self) -> None:
        self.parts = [Partition(number) for number in range(PARTITIONS)]
        self.unopened: list[Partition] = []
        """Partitions that were added and are not open: senders know them, and readers do not."""
        self.version = 0
        """Changes with every record."""

    def grow(self) -> None:
        """Add as many partitions as there are."""
        number = len(self.parts)
        self.unopened = [Partition(number + each) for each in range(number)]

    def open(self, opened_at: datetime | None) -> None:
        """Let readers read what was added. `opened_at`: when it counts as received; None: when brokers stamped it."""
        for part in self.unopened:
            part.opened_at = opened_at
            for record in part.records:
                record.received_at = max(record.received_at, opened_at or record.received_at)
        self.parts, self.unopened = [*self.parts, *self.unopened], []
        self.version += 1

    def part(self, partition: int) -> Partition:
        """Open or not."""
        return [*self.parts, *self.unopened][partition]

    def send(self, now: datetime, fact: Fact | None, partition: int) -> Record:
        """Append, outside of any transaction."""
        self.version += 1
        return self.part(partition).append(now, fact)

    def send_in_transaction(self, now: datetime, fact: Fact, partition: int) -> Record:
        """Append to the open transaction of the partition, or to a new one."""
        self.version += 1
        part = self.part(partition)
        opened = part.transaction or Transaction()
        record = part.append(now, fact, opened)
        part.transaction = opened
        return record

    def end_transaction(self, now: datetime, partition: int, *, commit: bool) -> None:
        """Commit or abort what is open; that is a record, too."""
        part = self.part(partition)
        if part.transaction is not None:
            self.version += 1
            part.transaction.state = State.COMMITTED if commit else State.ABORTED
            part.transaction = None
            part.append(now, None).is_end = True

    def ends(self) -> dict[int, int]:
        """The last stable offset of each partition."""
        return {part.number: part.stable for part in self.parts}

    def partitions(self, topic: str) -> list[int]:
        """Other sources have nothing in this world."""
        return [part.number for part in self.parts] if topic == TOPIC else []

    def end_offsets(self, topic: str) -> dict[int, int]:
        return {part.number: len(part.records) for part in self.parts} if topic == TOPIC else {}

    def offsets_since(self, topic: str, epoch_ms: int) -> dict[int, int]:
        ends = self.end_offsets(topic)
        return (
            {}
            if topic != TOPIC
            else {
                part.number: next(
                    (offset for offset, stamp in enumerate(part.stamps) if stamp.timestamp() * 1000 >= epoch_ms),
                    ends[part.number],
                )
                for part in self.parts
            }
        )
