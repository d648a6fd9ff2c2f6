"""Simulated sensors for some stores of the demo. The receipts are real, the visitors are not.

Visitors are derived from the receipts of the same quarter of an hour. They and the staff are counted for as long as
there are receipts. All other sensors report for two days of 24 hours: the trading day, which is played beside the
receipts, and the day before, which a demo that stays loads with the year.
"""

from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from operator import attrgetter
from typing import Self

from lab.demo.journey import DOLLARS, FIRST_DAYS, QUARTER, Journey, busiest_day, printed_times
from lab.demo.shops import registry_entries
from lab.demo.trading_day import PlannedReceipt, TradingDay, late_receipts
from lab.simulation.output import PacedSending
from lab.simulation.records import TimedRecord
from lab.simulation.simulation import matching_records, sensor_topics
from lab.simulation.stores import equipped
from master_dataset.kafka.connection import KafkaConnection
from master_dataset.parsing.parse import parse
from master_dataset.parsing.results import Event
from master_dataset.registry.stores import Store, Terms
from master_dataset.sources.pos_transactions import POS_TRANSACTIONS, Receipt

SHOPS = 3
"""The busiest of the trading day: two days of them are some 60,000 records."""
DAY = timedelta(days=1)
DAYS_BEFORE, DAYS_OF_THE_YEAR = 1, 366
COUNTED = ("people_counts", "staff_hours")
"""What is set against receipts of months: without it, conversion of a month would compare them with two days."""
SEED = "demo"


def with_sensors(stores: Sequence[Store], journey: Journey) -> list[Store]:
    """Give the stores, the busiest of them with simulated sensors and zones."""
    chosen = busiest_day(journey)["store"].value_counts(sort=True).index[:SHOPS]
    ids = {str(store) for store in chosen}
    return [equipped(store) if store.id in ids else store for store in stores]


@dataclass(frozen=True)
class SimulatedSensors:
    """`shops`: all stores as registered. `printed`: store with sensors to the instants of its receipts before the play.

    `begins`: when the trading day does.
    """

    shops: Sequence[Store]
    printed: Mapping[str, Sequence[datetime]]
    begins: datetime

    @classmethod
    def of(cls, journey: Journey, loaded_at: datetime, now: datetime) -> Self:
        """Those of the demo, whose history ends at `loaded_at`, for a trading day that ends soon."""
        shops = with_sensors(registry_entries(journey, loaded_at), journey)
        printed = printed_times(journey, [int(shop.id) for shop in shops if shop.sensors], loaded_at)
        late = _printed(late_receipts(journey, shops, loaded_at))
        both = {store: sorted([*times, *late.get(store, ())]) for store, times in printed.items()}
        return cls(shops, both, _window(now) - DAY)

    @property
    def stores(self) -> list[Store]:
        """Those with sensors."""
        return [shop for shop in self.shops if shop.sensors]

    def before(self) -> Iterator[TimedRecord]:
        """What they counted in the weeks before the trading day, day by day."""
        return self._days(FIRST_DAYS - 1, 0, COUNTED)

    def of_the_year(self) -> Iterator[TimedRecord]:
        """What they counted in the rest of the year, and what all others sent on the day before the trading day."""
        yield from self._days(DAYS_OF_THE_YEAR, FIRST_DAYS - 1, COUNTED)
        yield from self._days(DAYS_BEFORE, 0, [topic for topic in sensor_topics() if topic not in COUNTED])

    def during(self, day: TradingDay, until: datetime) -> list[TimedRecord]:
        """What they send on the trading day in the windows that are over at that instant."""
        live = receipts(day)
        both = {store.id: sorted([*self.printed.get(store.id, ()), *live.get(store.id, ())]) for store in self.stores}
        span = self.begins, _window(until)
        return [each for each in self._records(span, both, sensor_topics()) if each.send_at <= until]

    def _days(self, first: int, last: int, topics: Collection[str]) -> Iterator[TimedRecord]:
        """Yield the records of every day from so many days before the trading day on."""
        for days in range(first, last, -1):
            begins = self.begins - days * DAY
            yield from self._records((begins, begins + DAY), self.printed, topics)

    def _records(
        self, span: tuple[datetime, datetime], printed: Mapping[str, Sequence[datetime]], topics: Collection[str]
    ) -> Iterator[TimedRecord]:
        found = []
        for store in self.stores:
            times = printed.get(store.id, ())
            within = times[bisect_left(times, span[0]) : bisect_left(times, span[1])]
            found += matching_records(store, span, within, SEED, topics)
        yield from sorted(found, key=attrgetter("send_at"))


def _window(at: datetime) -> datetime:
    """Return when the quarter of an hour began."""
    return datetime.fromtimestamp(at.timestamp() // QUARTER.seconds * QUARTER.seconds, UTC)


def receipts(day: TradingDay) -> dict[str, list[datetime]]:
    """Store to when its receipts of a trading day happened: each event once, however often it is delivered."""
    return _printed(day.deliveries)


def _printed(deliveries: Iterable[PlannedReceipt]) -> dict[str, list[datetime]]:
    found: dict[str, Event[Receipt]] = {}
    for delivery in deliveries:
        parsed = parse(POS_TRANSACTIONS, delivery.value, lambda _: Terms(DOLLARS))
        if isinstance(parsed, Event):
            found.setdefault(parsed.identity, parsed)
    printed: dict[str, list[datetime]] = {}
    for event in found.values():
        printed.setdefault(event.store, []).append(event.happened_at)
    return printed


def sensor_playback(deliveries: Sequence[TimedRecord], kafka: KafkaConnection, seconds: float) -> PacedSending:
    """Play records within so many seconds. `deliveries` by when they are sent, at least one."""
    lasts = (deliveries[-1].send_at - deliveries[0].send_at).total_seconds()
    return PacedSending(deliveries, max(lasts, 1) / seconds, kafka)
