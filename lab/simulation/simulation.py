"""Shops and days to what their sensors send, in order. A shop and day at a time: memory does not grow with the days."""

import heapq
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from itertools import groupby
from operator import attrgetter

from lab.simulation.record import Delivery, Record
from lab.simulation.repetition import repetitions
from lab.simulation.sendable import Sendable, encode
from lab.simulation.shop_day import ShopDay, shop_day
from lab.simulation.tally import EVENTS, Tally
from lab.simulation.trouble import Trouble
from lab.simulation.world import World
from master_dataset.registry.stores import Store

by_time = attrgetter("sent_ms")


@dataclass(frozen=True)
class Simulation:
    """`stores` with simulated sensors (`equipped`), from the day `first` to the day `last`, both included.

    `topics`: sources to be sent. `faults`: whether anything goes wrong. `tally` is complete once all was given.
    """

    stores: Sequence[Store]
    first: date
    last: date
    seed: str
    topics: Collection[str]
    faults: bool = True
    tally: Tally = field(default_factory=Tally)

    def deliveries(self) -> Iterator[Delivery]:
        """Everything by when it is sent. To be asked once: every time counts into the tally."""
        yield from map(delivered, heapq.merge(*(self._of_store(store) for store in self.stores), key=by_time))

    @property
    def days(self) -> list[date]:
        """Every day."""
        return [self.first + timedelta(days=number) for number in range((self.last - self.first).days + 1)]

    def _of_store(self, store: Store) -> Iterator[Sendable]:
        """Hold back what is sent after its day has ended, until that time has come."""
        held: list[Sendable] = []
        for each in (shop_day(store, day, self.seed) for day in self.days):
            held = sorted([*held, *told(World(each), self.topics, self.tally, faults=self.faults)], key=by_time)
            ready = [one for one in held if one.sent_ms < each.ends]
            held = held[len(ready) :]
            yield from ready
        yield from held


def told(world: World, topics: Collection[str], tally: Tally, *, faults: bool) -> Sequence[Sendable]:
    """Give what is sent of one shop and day, by when."""
    records = world.records(topics)
    if not faults:
        for record in records:
            tally.add(record.topic, EVENTS)
        return [_sendable(record) for record in records]
    sent = sorted(Trouble(world.day, tally).over(records), key=attrgetter("topic", "sent_ms"))
    more = [_more(world.day, list(of_topic), tally) for _, of_topic in groupby(sent, key=attrgetter("topic"))]
    return sorted([*map(_sendable, sent), *(each for some in more for each in some)], key=by_time)


def delivered(each: Sendable) -> Delivery:
    """Say when in UTC."""
    return Delivery(datetime.fromtimestamp(each.sent_ms / 1000, UTC), each.topic, each.value)


def _more(day: ShopDay, records: Sequence[Record], tally: Tally) -> list[Sendable]:
    return list(repetitions(day, records, tally))


def _sendable(record: Record) -> Sendable:
    return Sendable(record.sent_ms, record.topic, encode(record.body))
