"""Simulated sensors for some stores of the demo. The receipts are real, the visitors are not.

Each of these stores gets three days of 24 hours, the last of which is the trading day. Visitors, queues and devices
match the receipts that are sent, so that conversion is plausible. They are played beside the receipts.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from operator import attrgetter
from typing import Self

from lab.demo.journey import DOLLARS, Journey, printed_times, registry_entries
from lab.demo.trading_day import TradingDay, busiest_day
from lab.simulation.output import PacedSending
from lab.simulation.records import TimedRecord
from lab.simulation.simulation import matching_records
from lab.simulation.stores import equipped
from master_dataset.kafka.connection import KafkaConnection
from master_dataset.parsing.parse import parse
from master_dataset.parsing.results import Event
from master_dataset.registry.stores import Store, Terms
from master_dataset.sources.pos_transactions import POS_TRANSACTIONS, Receipt

SHOPS = 3
"""The busiest of the trading day: three days of them are some 90,000 records."""
DAY, QUARTER = timedelta(days=1), timedelta(minutes=15)
DAYS_BEFORE = 2
SEED = "demo"


def with_sensors(stores: Sequence[Store], journey: Journey) -> list[Store]:
    """Give the stores, the busiest of them with simulated sensors and zones."""
    chosen = busiest_day(journey)["store"].value_counts(sort=True).index[:SHOPS]
    ids = {str(store) for store in chosen}
    return [equipped(store) if store.id in ids else store for store in stores]


@dataclass(frozen=True)
class SimulatedSensors:
    """`stores`: those with sensors. `printed`: store to the instants of its receipts of the past.

    `begins`: when the trading day does.
    """

    stores: Sequence[Store]
    printed: Mapping[str, Sequence[datetime]]
    begins: datetime

    @classmethod
    def of(cls, journey: Journey, now: datetime) -> Self:
        """Those of the demo, for a trading day of at most 24 hours that ends soon."""
        stores = [store for store in with_sensors(registry_entries(journey), journey) if store.sensors]
        window = datetime.fromtimestamp(now.timestamp() // QUARTER.seconds * QUARTER.seconds, UTC)
        return cls(stores, printed_times(journey, now), window - DAY)

    def before(self) -> Iterator[TimedRecord]:
        """What they sent on the days before the trading day, day by day."""
        for days in range(DAYS_BEFORE, 0, -1):
            yield from self._records(self.begins - days * DAY, self.begins - (days - 1) * DAY, self.printed)

    def during(self, day: TradingDay, until: datetime) -> list[TimedRecord]:
        """What they send on the trading day by that instant; it is not over then, and a window of it may not be."""
        live = receipts(day)
        both = {store.id: [*self.printed.get(store.id, ()), *live.get(store.id, ())] for store in self.stores}
        ends = self.begins + -(-(until - self.begins) // QUARTER) * QUARTER
        return [each for each in self._records(self.begins, ends, both) if each.send_at <= until]

    def _records(
        self, begins: datetime, ends: datetime, printed: Mapping[str, Sequence[datetime]]
    ) -> Iterator[TimedRecord]:
        found = [matching_records(store, begins, ends, printed.get(store.id, ()), SEED) for store in self.stores]
        yield from sorted((each for some in found for each in some), key=attrgetter("send_at"))


def receipts(day: TradingDay) -> dict[str, list[datetime]]:
    """Store to when its receipts of a trading day happened: each event once, however often it is delivered."""
    found: dict[str, Event[Receipt]] = {}
    for delivery in day.deliveries:
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
