"""Which windows lie inside a shop's opening hours: those whose start does."""

from collections.abc import Iterator
from datetime import date, time, timedelta
from zoneinfo import ZoneInfo

from master_dataset.registry.opening_hours import WEEKDAYS
from master_dataset.registry.stores import Store
from views.core.local_time import STEP, clock, first_instant


def open_windows(store: Store, start: int, end: int) -> frozenset[int]:
    """The open windows of [start, end), in seconds. Exact on days of 23, 24 and 25 hours, since both bounds are local.

    A closing time at or before the opening time lies on the next day; such hours belong to the day of opening, so a
    date in `closed_on` loses its own night, and not that of the day before. Empty if the store has no opening hours.
    """
    found: set[int] = set()
    for first, last in open_periods(store, start, end):
        found.update(range(max(first, start), min(last, end), STEP))
    return frozenset(found)


def open_periods(store: Store, start: int, end: int) -> Iterator[tuple[int, int]]:
    """When it opens and closes, in seconds, on the days that [start, end) touches and the day before; in order."""
    zone = ZoneInfo(store.timezone)
    day = clock(zone, start).date() - timedelta(days=1)  # the evening before may reach into the range
    last = clock(zone, end).date()
    while day <= last:
        periods = () if day in store.closed_on else store.opening_hours.get(WEEKDAYS[day.weekday()], ())
        for period in periods:
            opens, closes = _read(period, day)
            yield first_instant(zone, *opens), first_instant(zone, *closes)
        day += timedelta(days=1)


def _read(period: str, day: date) -> tuple[tuple[date, time], tuple[date, time]]:
    opens, closes = (time(0) if text == "24:00" else time.fromisoformat(text) for text in period.split("-"))
    ends = day if closes > opens else day + timedelta(days=1)
    return (day, opens), (ends, closes)
