"""What `compare=` may ask for, and which dates that compares a store's question with."""

from datetime import date
from typing import NamedTuple

from master_dataset.errors import UnknownName
from master_dataset.registry.stores import Store
from serving_layer.compare.calendar import (
    MONTHS_OF_A_YEAR,
    Counterparts,
    DaysBefore,
    MonthsBefore,
    NoCounterpart,
    RetailYearBefore,
)
from serving_layer.compare.public_holidays import VERSION, dates, nearest, nearest_of
from serving_layer.query.timeline import Grain
from views.core.business_days import ONE_DAY, BusinessDays, Span
from views.core.local_time import STEP

WEEK, RETAIL_YEAR, DAYS_OF_A_YEAR = 7, 364, 365
FIXED: dict[str, Counterparts] = {
    "previous_week": DaysBefore(WEEK),
    "previous_year": MonthsBefore(MONTHS_OF_A_YEAR),
    "previous_year_454": RetailYearBefore(),
    "previous_year_454_restated": DaysBefore(RETAIL_YEAR, "4-5-4 (NRF), restated"),
}
PERIOD, HOLIDAY = "previous_period", "holiday:"
NAMES = (PERIOD, *FIXED, f"{HOLIDAY}NAME")


class AskedTime(NamedTuple):
    """When a question is about: whole windows, cut into these days, at this grain."""

    days: BusinessDays
    span: Span
    grain: Grain

    @property
    def first(self) -> date:
        """The first day."""
        return self.days.day_of(self.span.start)

    @property
    def last(self) -> date:
        """The day after the last one."""
        return self.days.day_of(self.span.end - STEP) + ONE_DAY


def counterparts(compare: str, store: Store, at: AskedTime) -> Counterparts:
    """What the question is compared with. UnknownName, CountryUnknown."""
    if compare == PERIOD:
        return _period(at)
    if compare.startswith(HOLIDAY):
        return _holiday(store, compare.removeprefix(HOLIDAY).strip(), at)
    if compare not in FIXED:
        raise UnknownName("comparison", compare, NAMES)
    return FIXED[compare]


def _period(at: AskedTime) -> Counterparts:
    """The same number of days just before; of whole months at the grain month as many months."""
    first, last = at.first, at.last
    is_whole = at.span == Span(at.days.start(first), at.days.start(last))
    if at.grain == "month" and is_whole and first.day == last.day == 1:
        return MonthsBefore((last.year - first.year) * MONTHS_OF_A_YEAR + last.month - first.month)
    length = at.days.label(at.span.end) - at.days.label(at.span.start)
    return DaysBefore(max(1, -(-length // ONE_DAY)))


def _holiday(store: Store, name: str, at: AskedTime) -> Counterparts:
    """The days around the holiday nearest to the question, with those around it in the year before."""
    anchor = nearest(store, name, at.first, at.last)
    before = nearest_of(dates(store, name, anchor.year - 1), anchor - ONE_DAY * DAYS_OF_A_YEAR)
    calendar = f"public holidays of {store.country}, holidays {VERSION}"
    return DaysBefore((anchor - before).days, calendar) if before else NoCounterpart(calendar)
