"""A window is open if it starts inside the opening hours, on days of any length."""

from datetime import date
from zoneinfo import ZoneInfo

import pytest

from master_dataset.registry.stores import Store
from views.core.local_time import BusinessDays, first_instant
from views.core.windows import open_windows

ZONE = "Europe/Bratislava"
ALL_WEEK = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")


def hours_open(hours: str, first: str, last: str) -> float:
    """Open hours between two local dates of a store that keeps these hours every day."""
    store = Store(id="1", timezone=ZONE, opening_hours=dict.fromkeys(ALL_WEEK, (hours,)))
    start, end = (first_instant(ZoneInfo(ZONE), date.fromisoformat(day)) for day in (first, last))
    return len(open_windows(store, start, end)) / 4


@pytest.mark.parametrize(
    ("hours", "first", "last", "expected"),
    [
        ("08:00-20:00", "2026-03-07", "2026-03-08", 12),
        ("22:00-04:00", "2026-03-07", "2026-03-08", 6),  # 00:00-04:00 of the evening before, and 22:00-24:00
        ("22:00-04:00", "2026-03-29", "2026-03-30", 5),  # 02:00 is skipped
        ("22:00-04:00", "2026-10-25", "2026-10-26", 7),  # 02:00 is repeated
        ("00:00-24:00", "2026-10-25", "2026-10-26", 25),
        ("00:00-24:00", "2026-03-29", "2026-03-30", 23),
    ],
)
def test_open_hours_are_exact(hours: str, first: str, last: str, expected: float) -> None:
    assert hours_open(hours, first, last) == expected


def test_a_night_belongs_to_the_day_on_which_the_store_opened() -> None:
    store = Store(id="1", timezone=ZONE, opening_hours={"fri": ("18:00-02:00",)}, day_starts_at="04:00")
    days = BusinessDays.of(store, ZoneInfo(ZONE))
    friday, saturday, sunday = (days.start(date(2026, 3, day)) for day in (6, 7, 8))

    hours = [len(open_windows(store, *span)) / 4 for span in ((friday, saturday), (saturday, sunday))]

    assert hours == [8, 0]


@pytest.mark.parametrize(
    ("closed", "expected"),
    [((), 6), ((date(2026, 3, 7),), 4), ((date(2026, 3, 6),), 2), ((date(2026, 3, 6), date(2026, 3, 7)), 0)],
)
def test_a_closed_day_loses_its_own_night_and_keeps_that_of_the_day_before(
    closed: tuple[date, ...], expected: float
) -> None:
    hours = dict.fromkeys(ALL_WEEK, ("22:00-04:00",))
    store = Store(id="1", timezone=ZONE, opening_hours=hours, closed_on=closed)
    start, end = (first_instant(ZoneInfo(ZONE), date(2026, 3, day)) for day in (7, 8))

    found = len(open_windows(store, start, end)) / 4

    assert found == expected


def test_a_store_without_opening_hours_has_no_open_window() -> None:
    assert not open_windows(Store(id="1", timezone=ZONE), 0, 86_400)
