"""The simulation: what the sensors and tills of stores send on some days, in order.

One store and day is generated at a time, so memory does not grow with the number of days.
"""

import heapq
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from functools import cached_property
from itertools import groupby
from operator import attrgetter

from lab.simulation.faults import SensorFaults, extra_records
from lab.simulation.records import (
    EVENTS,
    EncodedRecord,
    RecordFactory,
    Records,
    SensorRecord,
    SentCounts,
    TimedRecord,
    encode,
)
from lab.simulation.staff import Shift, roster, staff_hours
from lab.simulation.store_day import (
    HOUR_MS,
    MINUTE_MS,
    QUARTER_MS,
    Span,
    StoreDay,
    open_spans,
    store_day,
    to_milliseconds,
    window_start,
)
from lab.simulation.stores import simulated
from lab.simulation.tills import QueueVisit, pos_transactions, queue_events, queue_visits, receipt_times
from lab.simulation.visitors import Visitor, demographics, people_counts, visitors, zone_presence
from lab.simulation.weather import weather_observations
from lab.simulation.wifi import WifiRouters
from master_dataset.registry.stores import Store
from master_dataset.sources import registered_sources
from master_dataset.sources.pos_transactions import POS_TRANSACTIONS
from master_dataset.sources.sensor_heartbeats import WATCHED


def sensor_heartbeats(day: StoreDay) -> Records:
    """Send a heartbeat per minute of every sensor whose silence may be an outage, all day long."""
    records = RecordFactory(day, "sensor_heartbeats")
    for source in WATCHED:
        for sensor in simulated(day.store, source):
            for start in range(day.begins, day.ends, MINUTE_MS):
                yield records.record(start, sensor.id, {"source": source, "interval_ms": MINUTE_MS}, start + MINUTE_MS)


WITH_SENSORS = ("people_counts", "wifi_sightings", "queue_events", "demographics", "zone_presence")
"""Sources with sensors: a store without a sensor of one sends nothing to it."""


@dataclass(frozen=True, eq=False)
class World:
    """One store on one day: receipts, queues, visitors and staff that are consistent with each other.

    `real`: times of the real receipts in ms; None: the receipts are simulated too.
    """

    day: StoreDay
    real: Sequence[int] | None = None

    @cached_property
    def receipts(self) -> Sequence[int]:
        """Times of the receipts, sorted."""
        return receipt_times(self.day) if self.real is None else sorted(self.real)

    @cached_property
    def queue_visits(self) -> Sequence[QueueVisit]:
        """Everybody who queued."""
        return queue_visits(self.day, self.receipts)

    @cached_property
    def people(self) -> Sequence[Visitor]:
        """Everybody who came in."""
        return visitors(self.day, self.receipts, self.queue_visits)

    @cached_property
    def shifts(self) -> Sequence[Shift]:
        """The shifts of the staff."""
        return roster(self.day)

    def records(self, topics: Collection[str]) -> Sequence[SensorRecord]:
        """Return the records of these sources in the order of sending. Real receipts are not sent again."""
        sources: Mapping[str, Callable[[], Records]] = {
            "people_counts": lambda: people_counts(self.day, self.people, self.shifts),
            "wifi_sightings": lambda: WifiRouters(self.day).hear(self.people, self.shifts),
            "queue_events": lambda: queue_events(self.day, self.queue_visits),
            "demographics": lambda: demographics(self.day, self.people),
            "zone_presence": lambda: zone_presence(self.day, self.people),
            "staff_hours": lambda: staff_hours(self.day, self.shifts),
            "weather_observations": lambda: weather_observations(self.day),
            "sensor_heartbeats": lambda: sensor_heartbeats(self.day),
            "pos_transactions": lambda: pos_transactions(self.day, self.receipts if self.real is None else ()),
        }
        selected = [
            topic
            for topic in sources
            if topic in topics and (topic not in WITH_SENSORS or simulated(self.day.store, topic))
        ]
        found = [record for topic in selected for record in sources[topic]()]
        return sorted(found, key=lambda record: record.sent_ms)


by_time = attrgetter("sent_ms")


@dataclass(frozen=True)
class Simulation:
    """`stores` with simulated sensors (`equipped`), from the day `first` to the day `last`, inclusive.

    `topics`: the sources to simulate. `faults`: whether anything goes wrong. `counts` is complete at the end.
    """

    stores: Sequence[Store]
    first: date
    last: date
    seed: str
    topics: Collection[str]
    faults: bool = True
    counts: SentCounts = field(default_factory=SentCounts)

    def deliveries(self) -> Iterator[TimedRecord]:
        """Generate all records in the order of sending. Call it once: every call adds to `counts`."""
        yield from map(timed, heapq.merge(*(self._of_store(store) for store in self.stores), key=by_time))

    @property
    def days(self) -> list[date]:
        """Every simulated day."""
        return [self.first + timedelta(days=number) for number in range((self.last - self.first).days + 1)]

    def _of_store(self, store: Store) -> Iterator[EncodedRecord]:
        """Hold back what is sent after the end of its day until that time."""
        held: list[EncodedRecord] = []
        for each in (store_day(store, day, self.seed) for day in self.days):
            held = sorted(
                [*held, *sent_records(World(each), self.topics, self.counts, faults=self.faults)], key=by_time
            )
            ready = [one for one in held if one.sent_ms < each.ends]
            held = held[len(ready) :]
            yield from ready
        yield from held


def sent_records(world: World, topics: Collection[str], counts: SentCounts, *, faults: bool) -> Sequence[EncodedRecord]:
    """Return what is sent for one store and day, in the order of sending."""
    records = world.records(topics)
    if not faults:
        for record in records:
            counts.add(record.topic, EVENTS)
        return [_encoded(record) for record in records]
    sent = sorted(SensorFaults(world.day, counts).over(records), key=attrgetter("topic", "sent_ms"))
    more = [_more(world.day, list(of_topic), counts) for _, of_topic in groupby(sent, key=attrgetter("topic"))]
    return sorted([*map(_encoded, sent), *(each for some in more for each in some)], key=by_time)


def timed(each: EncodedRecord) -> TimedRecord:
    """Give a record its time of sending in UTC."""
    return TimedRecord(datetime.fromtimestamp(each.sent_ms / 1000, UTC), each.topic, each.value)


def _more(day: StoreDay, records: Sequence[SensorRecord], counts: SentCounts) -> list[EncodedRecord]:
    return list(extra_records(day, records, counts))


def _encoded(record: SensorRecord) -> EncodedRecord:
    return EncodedRecord(record.sent_ms, record.topic, encode(record.body))


BEFORE_MS = HOUR_MS
"""People may come in this long before the first receipt."""


def matching_records(
    store: Store,
    span: tuple[datetime, datetime],
    receipts: Collection[datetime],
    seed: str,
    topics: Collection[str],
) -> list[TimedRecord]:
    """Return what the sensors of a store send to match real receipts, without faults, in the order of sending.

    Args:
        store: The store, with simulated sensors. If it has opening hours, nobody is in it at other times.
        span: Start and end (exclusive), on the 15-minute grid of UTC. Spans of one store must not overlap.
        receipts: Times of receipts; those outside of the span are ignored.
        seed: Determines everything that is random.
        topics: The sources to simulate.
    """
    first, last = map(to_milliseconds, span)
    paid = sorted(at for at in map(to_milliseconds, receipts) if first <= at < last)
    opened: tuple[Span, ...] = ()
    if store.opening_hours:
        opened = open_spans(store, first, last)
    elif paid:
        until = min(window_start(paid[-1]) + 2 * QUARTER_MS, last)
        opened = ((max(window_start(paid[0] - BEFORE_MS), first), until),)
    day = StoreDay(store, span[0].isoformat(), seed, first, last, opened)
    return [timed(each) for each in sent_records(World(day, paid), topics, SentCounts(), faults=False)]


def sensor_topics() -> Sequence[str]:
    """Return every source except the receipts."""
    return [topic for topic in registered_sources() if topic != POS_TRANSACTIONS.topic]
