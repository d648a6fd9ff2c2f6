"""Ranges as people say them: `last_7_days`, `month_to_date`, `from=-7d`, `to=today`.

Pure. They are dates, counted from the business day that a store has now, so they mean what `from` and `to` mean with
these dates: whole business days, of 23, 24 or 25 hours, weeks from the store's own first weekday on.
"""

import re
from calendar import monthrange
from collections.abc import Iterable
from datetime import date, timedelta
from functools import lru_cache
from typing import Literal, NamedTuple, get_args

from serving_layer.errors import ArgumentMissingError, BadQuestionError
from views.core.local_time import ONE_DAY, BusinessDays

RangeName = Literal[
    "today",
    "yesterday",
    "last_7_days",
    "last_28_days",
    "last_30_days",
    "last_90_days",
    "this_week",
    "week_to_date",
    "month_to_date",
    "quarter_to_date",
    "year_to_date",
    "last_week",
    "last_month",
    "last_quarter",
    "last_year",
]
RANGE_NAMES: tuple[RangeName, ...] = get_args(RangeName)
MONTHS_OF = {"month": 1, "quarter": 3, "year": 12}
RELATIVE = re.compile(r"today|yesterday|-([0-9]{1,5})([dwmy])")
"""A bound that is counted from today. It means the start of that day, as a date does."""


class Dates(NamedTuple):
    """Local dates from `start` (inclusive) to `end` (exclusive)."""

    start: date
    end: date


class AskedRange(NamedTuple):
    """When a request is about, as its caller wrote it: `start` and perhaps `end`, or the name of a range.

    Attributes:
        start: an instant with offset, a date, `today`, `yesterday` or a time ago such as `-7d`; inclusive.
        end: likewise, exclusive; None for the end of today.
        name: one of `RANGE_NAMES`; None if `start` is there.
    """

    start: str | None
    end: str | None
    name: RangeName | None = None

    def refuse_incomplete(self) -> None:
        """Refuse a range that is said twice, or not at all.

        Raises:
            ArgumentMissingError: there is neither a name nor a start.
            BadQuestionError: there is a name beside a start or an end.
        """
        if self.name is None and self.start is None:
            do = "Name the range with `range=last_7_days`, or with `from=` and `to=`."
            raise ArgumentMissingError("`from` is missing.", do=do)
        if self.name is not None and (self.start is not None or self.end is not None):
            message = f"`range={self.name}` cannot be combined with `from` or `to`."
            raise BadQuestionError(message, do="Leave `range` out, or `from` and `to`.")

    @property
    def words(self) -> list[str]:
        """The range as it was written, for the name of a file."""
        return [self.name] if self.name else [self.start or "", self.end or "today"]

    @property
    def is_relative(self) -> bool:
        """Whether it depends on what day it is."""
        return self.name is not None or self.end is None or any(map(_is_relative, (self.start, self.end)))

    def bounds(self, days: BusinessDays, now: int | None) -> tuple[str, str]:
        """Start and end as an instant with offset or a date each, as `read_bound` reads them.

        Args:
            days: the business days of the store, in the time zone of its answer.
            now: in seconds since 1970; None if the range `is_relative` to nothing.
        """
        if now is None or not self.is_relative:
            return self.start or "", self.end or ""
        today = days.day_of(now)
        if self.name is not None:
            start, end = named_dates(self.name, today, days)
            return start.isoformat(), end.isoformat()
        return (
            _bound("from", self.start or "", today),
            (today + ONE_DAY).isoformat() if self.end is None else _bound("to", self.end, today),
        )


def named_dates(name: RangeName, today: date, days: BusinessDays) -> Dates:
    """The dates of a named range.

    Args:
        name: `last_7_days` are 7 whole days and end before today; `..._to_date` include today.
        today: the business day of now.
        days: say on which weekday a week starts.
    """
    if name in ("today", "yesterday"):
        end = today + ONE_DAY if name == "today" else today
        return Dates(end - ONE_DAY, end)
    if match := re.fullmatch(r"last_(\d+)_days", name):
        return Dates(today - ONE_DAY * int(match[1]), today)
    unit = next(each for each in ("week", *MONTHS_OF) if each in name)
    start = days.week_of(today) if unit == "week" else _first_of(unit, today)
    if name.endswith("_to_date"):
        return Dates(start, today + ONE_DAY)
    if name.startswith("this_"):
        return Dates(start, start + ONE_DAY * 7)
    return Dates(start - ONE_DAY * 7 if unit == "week" else months_before(start, MONTHS_OF[unit]), start)


def months_before(day: date, months: int) -> date:
    """The same day of an earlier month, or its last day if it has no such day."""
    years, month = divmod(day.year * 12 + day.month - 1 - months, 12)
    return date(years, month + 1, min(day.day, monthrange(years, month + 1)[1]))


def latest_day_start(all_days: Iterable[BusinessDays], now: int) -> int:
    """When a business day began last, of any of these, in seconds since 1970; `now` if there are none.

    Between two of these instants no range that is relative to today moves, so an answer is cached under it.
    """
    return max((days.start(days.day_of(now)) for days in all_days), default=now)


def _first_of(unit: str, day: date) -> date:
    months = MONTHS_OF[unit]
    return day.replace(month=(day.month - 1) // months * months + 1, day=1)


@lru_cache(maxsize=1024)
def _is_relative(text: str | None) -> bool:
    return text is not None and RELATIVE.fullmatch(text) is not None


def _bound(argument: str, text: str, today: date) -> str:
    match = RELATIVE.fullmatch(text)
    if match is None:
        return text
    if match[1] is None:
        return (today if text == "today" else today - ONE_DAY).isoformat()
    count, unit = int(match[1]), match[2]
    try:
        if unit in "dw":
            return (today - timedelta(days=count * (7 if unit == "w" else 1))).isoformat()
        return months_before(today, count * (12 if unit == "y" else 1)).isoformat()
    except (ValueError, OverflowError) as error:
        message = f"`{argument}={text}` is before the years that Galatea keeps."
        raise BadQuestionError(message, do=f"Use a shorter time, such as `{argument}=-1y`.") from error
