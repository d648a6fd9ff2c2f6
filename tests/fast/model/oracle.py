"""The naive recompute: what is to be shown, by the records of the topic alone. It shares no code with the product."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import NamedTuple

from tests.fast.model.facts import LEAST, Fact
from tests.fast.model.topic import Record, Topic

EPOCH_SECONDS = 3600
WINDOW_SECONDS = 900


class Place(NamedTuple):
    """A cell of one of the two views."""

    view: str
    store: str
    window: int
    kind: str | None


Numbers = tuple[int, ...]
Shown = dict[Place, Numbers]


@dataclass
class Expected:
    """`waiting`: how many deliveries are too old for speed."""

    cells: Shown = field(default_factory=dict)
    waiting: int = 0


class Oracle:
    """Remembers the first deliveries as long as the topic stays the same."""

    def __init__(self, topic: Topic, *, any_time: bool, oldest: timedelta) -> None:
        """`any_time`: also what happened in the future is an event. `oldest`: on arrival, of what speed counts."""
        self._topic, self._any_time, self._oldest = topic, any_time, oldest
        self._version = -1
        self._deliveries: dict[str, list[Record]] = {}
        self._young: dict[str, Record] = {}
        """By identity, of the deliveries that speed may count the first."""

    def deliveries(self) -> dict[str, list[Record]]:
        """By identity, every committed delivery of an event; the one that counts comes first."""
        if self._version != self._topic.version:
            self._version = self._topic.version
            self._deliveries = {}
            for part in self._topic.parts:
                for record in part.records:
                    if record.fact and record.is_visible and (record.is_event or self._any_time):
                        self._deliveries.setdefault(record.fact.identity, []).append(record)
            self._young = {}
            for identity, found in self._deliveries.items():
                first = _first(found)
                found.remove(first)
                found.insert(0, first)
                young = [each for each in found if not self._is_old(each)]
                if young:
                    self._young[identity] = _first(young)
        return self._deliveries

    def _is_old(self, record: Record) -> bool:
        assert record.fact is not None
        return record.received_at - record.fact.happened_at > self._oldest

    def young_again(self) -> Iterator[Fact]:
        """Events that were too old when they were received first, and not any more when a clock had stepped back."""
        for identity, found in self.deliveries().items():
            fact = found[0].fact
            if fact is not None and identity in self._young and self._is_old(found[0]):
                yield fact

    def expected(self, cut: datetime, read: Mapping[int, int], version: int) -> Expected:
        """What was received before the cut, and of the rest what speed has read and could know not to be a repeat."""
        found = Expected()
        for deliveries in self.deliveries().values():
            for record in deliveries:
                fact = record.fact
                assert fact is not None
                is_fresh = _epoch(record.received_at) >= cut.timestamp()
                is_read = record.offset < read.get(record.partition, 0)
                is_old = self._is_old(record)
                found.waiting += is_fresh and is_read and is_old
                by_speed = is_read and record is self._young.get(fact.identity)
                if by_speed if is_fresh else record is deliveries[0]:
                    _add(found.cells, fact, version)
        return found

    def everything(self, version: int) -> Shown:
        """Every event that was ever received."""
        cells: Shown = {}
        for deliveries in self.deliveries().values():
            fact = deliveries[0].fact
            assert fact is not None
            _add(cells, fact, version)
        return cells


def _first(deliveries: list[Record]) -> Record:
    homes: dict[int, Record] = {}
    for record in sorted(deliveries, key=lambda each: each.offset):
        homes.setdefault(record.partition, record)
    return min(homes.values(), key=lambda each: (each.received_at, each.partition))


def _epoch(received_at: datetime) -> int:
    return int(received_at.timestamp()) // EPOCH_SECONDS * EPOCH_SECONDS


def cell_window(fact: Fact) -> int:
    """The start of its window."""
    at = int(fact.happened_at.timestamp())
    return at // WINDOW_SECONDS * WINDOW_SECONDS


def _add(cells: Shown, fact: Fact, version: int) -> None:
    window = cell_window(fact)
    visits = Place("visits", fact.store, window, None)
    [count] = cells.get(visits, (0,))
    cells[visits] = (count + 1,)
    if fact.amount >= LEAST[version]:
        takings = Place("takings", fact.store, window, fact.kind)
        sales, total, least, most = cells.get(takings, (0, 0, fact.amount, fact.amount))
        cells[takings] = (sales + 1, total + fact.amount, min(least, fact.amount), max(most, fact.amount))
