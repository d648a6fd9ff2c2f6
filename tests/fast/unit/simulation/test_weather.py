"""Summers are warmer than winters, and rain keeps people at home."""

from collections.abc import Iterator
from datetime import date, timedelta
from statistics import mean

import pytest

from lab.simulation.store_day import StoreDay, store_day
from lab.simulation.tills import receipt_times
from lab.simulation.weather import Weather, weather
from master_dataset.registry.stores import Store


def days(zone: str, first: date, number: int) -> Iterator[StoreDay]:
    return (store_day(Store("1", zone), first + timedelta(days=each), "1") for each in range(number))


@pytest.mark.parametrize(("zone", "warm", "cold"), [("Europe/Vienna", 7, 1), ("Australia/Sydney", 1, 7)])
def test_the_seasons_are_those_of_the_hemisphere(zone: str, warm: int, cold: int) -> None:
    def degrees(month: int) -> float:
        found = days(zone, date(2026, month, 1), 28)
        return mean(weather(day, start).temperature_mc for day in found for start in day.quarters()) / 1000

    assert degrees(cold) < 5
    assert degrees(warm) > 15


def test_a_fine_day_draws_more_than_a_wet_one() -> None:
    fine, wet = Weather(20_000, 0, 2000, 100), Weather(20_000, 900, 2000, 1000)

    assert fine.appeal == 1 > wet.appeal > 0.5


def test_a_month_has_wet_and_dry_days_and_saturday_sells_most() -> None:
    rain = [
        any(weather(day, start).precipitation_um for start in day.quarters())
        for day in days("UTC", date(2026, 5, 1), 31)
    ]
    sold = dict[int, int]()
    for day in days("UTC", date(2026, 5, 4), 56):
        weekday = day.local(day.begins).weekday()
        sold[weekday] = sold.get(weekday, 0) + len(receipt_times(day))

    assert 3 < sum(rain) < 20
    assert max(sold, key=sold.__getitem__) == 5


def test_any_order_of_asking_gives_the_same_weather() -> None:
    (day,) = days("UTC", date(2026, 5, 1), 1)

    forward = [weather(day, start) for start in day.quarters()]
    assert [weather(day, start) for start in reversed(day.quarters())] == forward[::-1]
