"""When receipts are printed in a shop that has no real ones: by hour, weekday and weather, inside the opening hours."""

from collections.abc import Sequence

from lab.simulation.chance import chance, poisson
from lab.simulation.clock import MINUTE_MS, QUARTER_MS
from lab.simulation.shop_day import ShopDay
from lab.simulation.weather import weather

BY_HOUR = (
    0.1,
    0.1,
    0.1,
    0.1,
    0.1,
    0.2,
    0.4,
    0.6,
    0.7,
    0.8,
    0.9,
    1,
    1,
    0.8,
    0.7,
    0.8,
    1,
    1.2,
    1.1,
    0.8,
    0.5,
    0.3,
    0.2,
    0.1,
)
BY_WEEKDAY = (0.85, 0.85, 0.9, 1.0, 1.25, 1.4, 0.75)
WARMING_UP_MS = 10 * MINUTE_MS
"""Nobody has paid so soon after the doors opened."""


def demand(day: ShopDay) -> Sequence[int]:
    """Give the instants of the day's receipts, sorted."""
    usual = chance(day.seed, day.store.id, "size").uniform(2, 5)  # receipts in a quarter of a usual hour
    drawn = day.chance("demand")
    found = []
    for opens, closes in day.open:
        for start in range(opens, closes, QUARTER_MS):
            there = day.local(start)
            mean = usual * BY_HOUR[there.hour] * BY_WEEKDAY[there.weekday()] * weather(day, start).appeal
            paid = (start + drawn.randrange(QUARTER_MS) for _ in range(poisson(drawn, mean)))
            found += [at for at in paid if at >= opens + WARMING_UP_MS]
    return sorted(found)
