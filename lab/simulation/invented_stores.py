"""Shops that do not exist, for who has no `stores.yaml` at hand: in a few cities, each with its zone and money."""

from collections.abc import Sequence
from datetime import date

from lab.simulation.chance import chance
from lab.simulation.equipment import PREFIX, equipped
from master_dataset.registry.currency import currency
from master_dataset.registry.opening_hours import WEEKDAYS
from master_dataset.registry.stores import Store

CITIES = (
    ("Bratislava", "Europe/Bratislava", "EUR", "SK"),
    ("Praha", "Europe/Prague", "CZK", "CZ"),
    ("Wien", "Europe/Vienna", "EUR", "AT"),
    ("London", "Europe/London", "GBP", "GB"),
    ("New York", "America/New_York", "USD", "US"),
    ("Kathmandu", "Asia/Kathmandu", "NPR", "NP"),
)
WEEK = (("08:00-20:00", "09:00-19:00"), ("07:00-21:00", "08:00-20:00"), ("10:00-20:00", "10:00-18:00"))
"""Hours from Monday to Saturday, and on Sunday."""
OPEN_SINCE = date(2020, 1, 6)


def invented_stores(number: int) -> Sequence[Store]:
    """Make up so many shops with their sensors. The n-th is always the same."""
    return [equipped(_store(nth)) for nth in range(1, number + 1)]


def _store(nth: int) -> Store:
    city, zone, money, country = CITIES[(nth - 1) % len(CITIES)]
    drawn = chance("store", str(nth))
    weekday, sunday = drawn.choice(WEEK)
    hours = dict.fromkeys(WEEKDAYS[:-1], (weekday,)) | {WEEKDAYS[-1]: (sunday,)}
    return Store(
        id=f"{PREFIX}{nth}",
        timezone=zone,
        name=f"Simulated shop {nth}, {city}",
        currency=currency(money),
        opening_hours=hours,
        floor_m2=drawn.randrange(200, 2000, 10),
        open_since=OPEN_SINCE,
        country=country,
    )
