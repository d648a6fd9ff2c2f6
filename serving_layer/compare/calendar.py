"""Comparison calendars: which dates `compare=` compares the dates of a query with.

Maps of local dates, with no clock and no time zone in them.

The 4-5-4 calendar of retail (NRF) has weeks from Sunday to Saturday, and years that end on the Saturday nearest 31
January. A year has 52 weeks, or 53 where more than three days of January would remain after the 52nd. The year is
called by the calendar year in which it begins: 2023 is 2023-01-29 until 2024-02-03, 53 weeks.
"""

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import NamedTuple, Protocol

from master_dataset.errors import UnknownNameError
from master_dataset.registry.stores import Store
from serving_layer.compare.public_holidays import VERSION, dates, nearest, nearest_of
from serving_layer.timeline import QueryRange
from views.core.local_time import ONE_DAY, Span

MONTHS_OF_A_YEAR = 12


class ComparisonCalendar(Hashable, Protocol):
    """Maps dates to the dates that they are compared with. No two dates have the same one, and their order is kept."""

    @property
    def calendar(self) -> str:
        """The name of the calendar, as the answer shows it."""

    def day(self, day: date) -> date | None:
        """The date that a date is compared with; None if it has no counterpart."""

    def days(self, first: date, last: date) -> Iterator[date]:
        """The dates that those from `first` until before `last` are compared with as a whole."""


@dataclass(frozen=True)
class DaysBefore:
    """The date a number of days before."""

    number: int
    calendar: str = "gregorian"

    def day(self, day: date) -> date:
        """It always exists."""
        return day - ONE_DAY * self.number

    def days(self, first: date, last: date) -> Iterator[date]:
        """The dates that lie `number` days before those of the range, as many as it has."""
        return _dates(self.day(first), self.day(last))


@dataclass(frozen=True)
class MonthsBefore:
    """The same day a number of months before. A bound that does not exist (29 February) maps to the next first."""

    number: int
    calendar: str = "gregorian"

    def day(self, day: date) -> date | None:
        """The same day of its month, if that month has it."""
        there = self._bound(day)
        return there if there.day == day.day else None

    def days(self, first: date, last: date) -> Iterator[date]:
        """All dates between the bounds: a 29 February that only the earlier year has lies among them."""
        return _dates(self._bound(first), self._bound(last))

    def _bound(self, day: date) -> date:
        year, month = divmod(day.year * MONTHS_OF_A_YEAR + day.month - 1 - self.number, MONTHS_OF_A_YEAR)
        try:
            return date(year, month + 1, day.day)
        except ValueError:  # a month has 28 days at least, so this is never December
            return date(year, month + 2, 1)


@dataclass(frozen=True)
class RetailYearBefore:
    """The same week and weekday of the 4-5-4 year before, not restated: a week 53 has no counterpart."""

    calendar: str = "4-5-4 (NRF)"

    def day(self, day: date) -> date | None:
        """364 days before, or 371 after a year of 53 weeks."""
        at = retail_day(day)
        return calendar_day(at._replace(year=at.year - 1))

    def days(self, first: date, last: date) -> Iterator[date]:
        """Those that exist. No date is compared with week 53 of the year before."""
        return (there for day in _dates(first, last) if (there := self.day(day)))


@dataclass(frozen=True)
class NoCounterpart:
    """Nothing to compare with: the year before had no such holiday."""

    calendar: str

    def day(self, day: date) -> date | None:  # noqa: ARG002 - a ComparisonCalendar
        """None for every day."""
        return None

    def days(self, first: date, last: date) -> Iterator[date]:  # noqa: ARG002 - a ComparisonCalendar
        """No dates."""
        return iter(())


def _dates(first: date, last: date) -> Iterator[date]:
    return (first + ONE_DAY * number for number in range((last - first).days))


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


DAYS_OF_A_WEEK, RETAIL_YEAR, DAYS_OF_A_YEAR = 7, 364, 365
FIXED: dict[str, ComparisonCalendar] = {
    "previous_week": DaysBefore(DAYS_OF_A_WEEK),
    "previous_year": MonthsBefore(MONTHS_OF_A_YEAR),
    "previous_year_454": RetailYearBefore(),
    "previous_year_454_restated": DaysBefore(RETAIL_YEAR, "4-5-4 (NRF), restated"),
}
PERIOD, HOLIDAY = "previous_period", "holiday:"
TARGET = "target"
"""A comparison with targets, which needs no calendar."""
NAMES = (PERIOD, *FIXED, f"{HOLIDAY}NAME", TARGET)


def comparison_calendar(compare: str, store: Store, at: QueryRange) -> ComparisonCalendar:
    """The calendar that `compare=` names.

    Args:
        compare: one of `NAMES`.
        store: whose public holidays count.
        at: the range of the query.

    Raises:
        UnknownNameError: there is no such comparison, or no such holiday.
        CountryUnknownError: a comparison by holidays, and the store has no country.
    """
    if compare == PERIOD:
        return previous_period([at])
    if compare.startswith(HOLIDAY):
        return _holiday(store, compare.removeprefix(HOLIDAY).strip(), at)
    if compare not in FIXED:
        raise UnknownNameError("comparison", compare, NAMES)
    return FIXED[compare]


def previous_period(ranges: Sequence[QueryRange]) -> ComparisonCalendar:
    """The same number of days just before; of whole months at the grain month as many months.

    Stores that are added up are all compared with the same dates: where a change of clocks makes the range a day longer
    for some of them, as many days before as it has for these.

    Args:
        ranges: those of the stores; at least one.
    """
    months = {_whole_months(each) for each in ranges}
    if len(months) == 1 and (number := months.pop()):
        return MonthsBefore(number)
    lengths = (each.days.label(each.span.end) - each.days.label(each.span.start) for each in ranges)
    return DaysBefore(max(1, *(-(-length // ONE_DAY) for length in lengths)))


def _whole_months(at: QueryRange) -> int | None:
    """How many months a range has at the grain month, if it is made of whole ones."""
    first, last = at.first, at.last
    is_whole = at.span == Span(at.days.start(first), at.days.start(last))
    if at.grain == "month" and is_whole and first.day == last.day == 1:
        return (last.year - first.year) * MONTHS_OF_A_YEAR + last.month - first.month
    return None


def _holiday(store: Store, name: str, at: QueryRange) -> ComparisonCalendar:
    """Compares the days around the holiday nearest to the query with those around it in the year before."""
    anchor = nearest(store, name, at.first, at.last)
    before = nearest_of(dates(store, name, anchor.year - 1), anchor - ONE_DAY * DAYS_OF_A_YEAR)
    calendar = f"public holidays of {store.country}, holidays {VERSION}"
    return DaysBefore((anchor - before).days, calendar) if before else NoCounterpart(calendar)
