"""The 4-5-4 calendar by the examples of the metrics catalogue and of the NRF."""

from datetime import date

import pytest

from serving_layer.compare.calendar import (
    DaysBefore,
    RetailDay,
    RetailYearBefore,
    calendar_day,
    first_day,
    retail_day,
    weeks_in,
)


def test_the_retail_year_2023_is_that_of_the_nrf() -> None:
    first, after = first_day(2023), first_day(2024)

    assert (first, after, weeks_in(2023)) == (date(2023, 1, 29), date(2024, 2, 4), 53)


def test_the_years_of_53_weeks_are_those_of_the_nrf() -> None:
    years = [year for year in range(2010, 2030) if weeks_in(year) == 53]

    assert years == [2012, 2017, 2023, 2028]


@pytest.mark.parametrize(
    ("day", "not_restated", "restated"),
    [
        (date(2024, 2, 4), date(2023, 1, 29), date(2023, 2, 5)),
        (date(2026, 3, 7), date(2025, 3, 8), date(2025, 3, 8)),
        (date(2024, 1, 28), None, date(2023, 1, 29)),  # the first day of week 53
        (date(2024, 2, 3), None, date(2023, 2, 4)),  # and its last
        (date(2024, 1, 27), date(2023, 1, 28), date(2023, 1, 28)),
    ],
)
def test_a_day_is_compared_with_the_same_week_or_with_364_days_before(
    day: date, not_restated: date | None, restated: date
) -> None:
    found = RetailYearBefore().day(day), DaysBefore(364).day(day)

    assert found == (not_restated, restated)


def test_a_week_that_a_year_does_not_have_is_no_day() -> None:
    fifty_third = RetailDay(2024, 53, 0)

    assert calendar_day(fifty_third) is None
    assert retail_day(date(2024, 2, 3)) == RetailDay(2023, 53, 6)
