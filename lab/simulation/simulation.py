"""Simulation."""

import heapq
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from functools import cached_property
from itertools import groupby
from operator import attrgetter

from lab.simulation.faults import Trouble, repetitions
from lab.simulation.records import EVENTS, Delivery, Record, Records, Sendable, Tally, Wire, encode
from lab.simulation.shop_day import HOUR_MS, MINUTE_MS, QUARTER_MS, ShopDay, milliseconds, quarter, shop_day
from lab.simulation.staff import Shift, roster, staff_hours
from lab.simulation.stores import simulated
from lab.simulation.tills import Turn, checkout, demand, pos_transactions, queue_events
from lab.simulation.visitors import Visitor, demographics, people_counts, visitors, zone_presence
from lab.simulation.weather import weather_observations
from lab.simulation.wifi import Radio
from master_dataset.registry.stores import Store
from master_dataset.sources import registered_sources
from master_dataset.sources.pos_transactions import POS_TRANSACTIONS
from master_dataset.sources.sensor_heartbeats import WATCHED


def sensor_heartbeats(day: ShopDay) -> Records:
    """Beat through the whole day, open or not."""
    wire = Wire(day, "sensor_heartbeats")
    for source in WATCHED:
        for sensor in simulated(day.store, source):
            for start in range(day.begins, day.ends, MINUTE_MS):
                yield wire.record(start, sensor.id, {"source": source, "interval_ms": MINUTE_MS}, start + MINUTE_MS)


SEEN = ("people_counts", "wifi_sightings", "queue_events", "demographics", "zone_presence")
"""Sources of sensors: a shop that has none of a source tells nothing of it."""


@dataclass(frozen=True, eq=False)
class World:
    """`real`: instants of the real receipts, in ms; with None the shop has none and prints its own."""

    day: ShopDay
    real: Sequence[int] | None = None

    @cached_property
    def receipts(self) -> Sequence[int]:
        """The instants of the receipts, sorted."""
        return demand(self.day) if self.real is None else sorted(self.real)

    @cached_property
    def turns(self) -> Sequence[Turn]:
        """Who stood in a queue."""
        return checkout(self.day, self.receipts)

    @cached_property
    def people(self) -> Sequence[Visitor]:
        """Who came in."""
        return visitors(self.day, self.turns)

    @cached_property
    def shifts(self) -> Sequence[Shift]:
        """Who worked."""
        return roster(self.day)

    def records(self, topics: Collection[str]) -> Sequence[Record]:
        """What the sensors and tills send of these sources, by when it is sent. Real receipts are not sent again."""
        told: Mapping[str, Callable[[], Records]] = {
            "people_counts": lambda: people_counts(self.day, self.people, self.shifts),
            "wifi_sightings": lambda: Radio(self.day).hear(self.people, self.shifts),
            "queue_events": lambda: queue_events(self.day, self.turns),
            "demographics": lambda: demographics(self.day, self.people),
            "zone_presence": lambda: zone_presence(self.day, self.people),
            "staff_hours": lambda: staff_hours(self.day, self.shifts),
            "weather_observations": lambda: weather_observations(self.day),
            "sensor_heartbeats": lambda: sensor_heartbeats(self.day),
            "pos_transactions": lambda: pos_transactions(self.day, self.receipts if self.real is None else ()),
        }
        asked = [topic for topic in told if topic in topics and (topic not in SEEN or simulated(self.day.store, topic))]
        found = [record for topic in asked for record in told[topic]()]
        return sorted(found, key=lambda record: record.sent_ms)


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


BEFORE_MS = HOUR_MS
"""So long before the first receipt people may come in."""


def matching(
    store: Store, begins: datetime, ends: datetime, receipts: Collection[datetime], seed: str
) -> list[Delivery]:
    """Give what the simulated sensors of a store send of [begins, ends), both on the 15-minute grid of UTC, by when.

    `receipts` outside of that time are somebody else's. Days of one store must not overlap. Nothing goes wrong here: no
    fault, and every record is an event.
    """
    first, last = milliseconds(begins), milliseconds(ends)
    paid = sorted(at for at in map(milliseconds, receipts) if first <= at < last)
    opened = (
        ((max(quarter(paid[0] - BEFORE_MS), first), min(quarter(paid[-1]) + 2 * QUARTER_MS, last)),) if paid else ()
    )
    day = ShopDay(store, begins.isoformat(), seed, first, last, opened)
    return [delivered(each) for each in told(World(day, paid), sensor_topics(), Tally(), faults=False)]


def sensor_topics() -> Sequence[str]:
    """Every source but the tills."""
    return [topic for topic in registered_sources() if topic != POS_TRANSACTIONS.topic]
