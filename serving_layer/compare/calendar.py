"""Which dates are compared with which: maps of local dates, with no clock and no time zone in them."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from typing import Protocol

from serving_layer.compare.retail_calendar import calendar_day, retail_day
from views.core.business_days import ONE_DAY

MONTHS_OF_A_YEAR = 12


class Counterparts(Protocol):
    """A comparison, as far as dates say it. No two dates have the same counterpart, and their order is kept."""

    @property
    def calendar(self) -> str:
        """By which calendar, in the words of the answer."""

    def day(self, day: date) -> date | None:
        """The date that a date is compared with; None if it has no counterpart."""

    def days(self, first: date, last: date) -> Iterator[date]:
        """What the dates from `first` until before `last` are compared with as a whole."""


@dataclass(frozen=True)
class DaysBefore:
    """So many days before, whatever month that is."""

    number: int
    calendar: str = "gregorian"

    def day(self, day: date) -> date:
        """Always there."""
        return day - ONE_DAY * self.number

    def days(self, first: date, last: date) -> Iterator[date]:
        """As many dates."""
        return _dates(self.day(first), self.day(last))


@dataclass(frozen=True)
class MonthsBefore:
    """The same dates so many months before. A bound that is not there, such as 29 February, maps to the next first."""

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
        """Those that are there; the week 53 of the year before is nobody's counterpart."""
        return (there for day in _dates(first, last) if (there := self.day(day)))


@dataclass(frozen=True)
class NoCounterpart:
    """Nothing to compare with: the year before had no such holiday."""

    calendar: str

    def day(self, day: date) -> date | None:  # noqa: ARG002 - a Counterparts
        """None."""
        return None

    def days(self, first: date, last: date) -> Iterator[date]:  # noqa: ARG002 - a Counterparts
        """None."""
        return iter(())


def _dates(first: date, last: date) -> Iterator[date]:
    return (first + ONE_DAY * number for number in range((last - first).days))
