"""The 4-5-4 calendar of retail (NRF): weeks from Sunday to Saturday, years that end on the Saturday nearest 31 January.

A year has 52 weeks, or 53 where more than three days of January would remain after the 52nd. The year is called by the
calendar year in which it begins: 2023 is 2023-01-29 until 2024-02-03, 53 weeks.
"""

from datetime import date, timedelta
from typing import NamedTuple

WEEK = timedelta(days=7)
SATURDAY = 5


class RetailDay(NamedTuple):
    """A day by its retail year, the week of that year from 1, and the day of that week from 0, a Sunday."""

    year: int
    week: int
    weekday: int


def first_day(year: int) -> date:
    """The Sunday on which a retail year begins: the day after the Saturday nearest 31 January."""
    end_of_january = date(year, 1, 31)
    ahead = (SATURDAY - end_of_january.weekday()) % 7
    return end_of_january + timedelta(days=(ahead if ahead <= 3 else ahead - 7) + 1)  # noqa: PLR2004 - half a week


def weeks_in(year: int) -> int:
    """52 or 53."""
    return (first_day(year + 1) - first_day(year)) // WEEK


def retail_day(day: date) -> RetailDay:
    """Where the day lies in the retail calendar."""
    year = day.year if day >= first_day(day.year) else day.year - 1
    weeks, rest = divmod(day - first_day(year), WEEK)
    return RetailDay(year, weeks + 1, rest.days)


def calendar_day(of: RetailDay) -> date | None:
    """The inverse of `retail_day`; None if that year has no such week."""
    if of.week > weeks_in(of.year):
        return None
    return first_day(of.year) + WEEK * (of.week - 1) + timedelta(days=of.weekday)
