"""Sensors to go with real receipts: a shop whose visitors, queues and devices could have made them."""

from collections.abc import Collection, Sequence
from datetime import datetime

from lab.simulation.clock import HOUR_MS, QUARTER_MS, milliseconds, quarter
from lab.simulation.record import Delivery
from lab.simulation.shop_day import ShopDay
from lab.simulation.simulation import delivered, told
from lab.simulation.tally import Tally
from lab.simulation.world import World
from master_dataset.registry.stores import Store
from master_dataset.sources import registered_sources
from master_dataset.sources.pos_transactions import POS_TRANSACTIONS

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
