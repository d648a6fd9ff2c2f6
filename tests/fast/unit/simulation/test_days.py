"""A shop's days follow each other without gap or overlap, however long the clock makes them."""

from datetime import date, timedelta
from itertools import pairwise

import pytest

from lab.simulation.simulation import World
from lab.simulation.store_day import HOUR_MS, QUARTER_MS, store_day
from master_dataset.registry.stores import Store
from master_dataset.sources import registered_sources

WEEK = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")


@pytest.mark.parametrize(
    ("zone", "day", "hours"),
    [
        ("Europe/Bratislava", date(2026, 3, 29), 23),
        ("Europe/Bratislava", date(2026, 10, 25), 25),
        ("Australia/Lord_Howe", date(2026, 4, 5), 24.5),
        ("Africa/Cairo", date(2026, 4, 24), 23),
    ],
)
def test_a_day_is_as_long_as_the_clock_makes_it(zone: str, day: date, hours: float) -> None:
    laid_out = store_day(Store("1", zone), day, "1")

    assert laid_out.ends - laid_out.begins == hours * HOUR_MS
    assert World(laid_out).records(registered_sources())


def test_a_shop_without_sensors_tells_of_staff_weather_and_receipts_alone() -> None:
    records = World(store_day(Store("1", "UTC"), date(2026, 3, 7), "1")).records(registered_sources())

    assert {record.topic for record in records} == {"staff_hours", "weather_observations", "pos_transactions"}


@pytest.mark.parametrize("hours", ["08:00-20:00", "18:00-02:00", "00:00-24:00", "20:00-23:45"])
@pytest.mark.parametrize("starts", ["00:00", "04:00"])
def test_days_tile_the_year_and_hold_their_opening_hours(hours: str, starts: str) -> None:
    shop = Store("1", "Europe/Bratislava", opening_hours=dict.fromkeys(WEEK, (hours,)), day_starts_at=starts)
    days = [store_day(shop, date(2026, 1, 1) + timedelta(days=number), "1") for number in range(365)]

    for before, after in pairwise(days):
        assert before.ends == after.begins
    for day in days:
        assert day.begins % QUARTER_MS == 0
        assert day.open
        assert all(day.begins <= opens < closes <= day.ends for opens, closes in day.open)


def test_a_bar_is_open_until_after_midnight_and_its_last_guests_leave() -> None:
    bar = Store("1", "Europe/Bratislava", opening_hours=dict.fromkeys(WEEK, ("18:00-02:00",)))
    friday = store_day(bar, date(2026, 3, 6), "1")

    (opens, closes), people = friday.open[0], World(friday).people
    assert closes - opens == 8 * HOUR_MS
    assert f"{friday.local(friday.ends):%a %H:%M}" == "Sat 02:30"
    assert max(person.left_ms for person in people) < friday.ends


def test_a_day_off_and_the_hours_before_the_second_opening_are_closed() -> None:
    shop = Store("1", "UTC", opening_hours={"fri": ("08:00-12:00", "14:00-18:00")}, closed_on=(date(2026, 3, 13),))

    assert len(store_day(shop, date(2026, 3, 6), "1").open) == 2
    assert store_day(shop, date(2026, 3, 13), "1").open == ()
