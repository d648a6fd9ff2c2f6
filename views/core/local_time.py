"""Local time of a store: its clock, its business days and weeks, its opening hours.

Instants are whole seconds since 1970 on the grid of 15-minute windows; a time zone only cuts and labels them. So days
of 23, 24 and 25 hours need no rule of their own.
"""

from calendar import monthrange
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from functools import lru_cache
from typing import NamedTuple, Self
from zoneinfo import ZoneInfo

from master_dataset.registry.stores import WEEKDAYS, OpeningHours, Store
from master_dataset.registry.time_zones import zone_named
from views.core.cut import seconds
from views.core.view import WINDOW

STEP = int(WINDOW.total_seconds())
FIRST_YEAR, LAST_YEAR = 1970, 2200
"""The years that an event may have."""
FIRST_ANSWERED, LAST_ANSWERED = date(FIRST_YEAR + 1, 1, 2), date(LAST_YEAR - 1, 12, 30)
"""The days that can be asked for in every time zone. An event may be up to a year earlier or later, and such years are
not answered, because an answer can depend on the days before and after it."""


def clock(zone: ZoneInfo, at: int) -> datetime:
    """The local time at that instant, without an offset."""
    return datetime.fromtimestamp(at, zone).replace(tzinfo=None)


def offset(zone: ZoneInfo, at: int) -> int:
    """Seconds east of UTC at that instant."""
    shift = datetime.fromtimestamp(at, zone).utcoffset()
    return int(shift.total_seconds()) if shift else 0


@lru_cache(maxsize=65_536)
def first_instant(zone: ZoneInfo, day: date, at: time = time(0)) -> int:
    """The first window whose local clock, on that date, is at or past `at`.

    A repeated hour counts from its first pass; a skipped clock (Cairo 2026-04-24 has no 00:00) where it is skipped.
    """
    begins = datetime.combine(day, at)
    start = round_up(seconds(begins.replace(tzinfo=zone)))
    while clock(zone, start - STEP) >= begins:
        start -= STEP
    return start


def round_down(at: int) -> int:
    """The window that the instant lies in."""
    return at - at % STEP


def round_up(at: int) -> int:
    """The first window that does not begin before the instant."""
    return at + -at % STEP


MIDNIGHT = time(0)
ONE_DAY = timedelta(days=1)


class Span(NamedTuple):
    """Windows from `start` until before `end`, in seconds since 1970."""

    start: int
    end: int


def disjoint(spans: Iterable[Span]) -> list[Span]:
    """The same windows in spans that do not touch each other, in order."""
    found: list[Span] = []
    for span in sorted(spans):
        if found and span.start <= found[-1].end:
            found[-1] = Span(found[-1].start, max(found[-1].end, span.end))
        else:
            found.append(span)
    return found


@dataclass(frozen=True)
class BusinessDays:
    """A store's own days: each begins at the first window whose clock, on its date, is at or past `starts_at`.

    A bar that closes at 02:00 and says 04:00 has its whole Friday night on Friday. `week_starts_on`: 0 is Monday.
    """

    zone: ZoneInfo
    starts_at: time = MIDNIGHT
    week_starts_on: int = 0

    @classmethod
    def of(cls, store: Store, zone: ZoneInfo) -> Self:
        """The days of a store in a time zone, its own or another."""
        starts_at = time.fromisoformat(store.day_starts_at)
        return cls(zone, starts_at, WEEKDAYS.index(store.week_starts_on))

    def start(self, day: date) -> int:
        """The first window of the day."""
        return first_instant(self.zone, day, self.starts_at)

    def day_of(self, window: int) -> date:
        """The day that a window lies in."""
        day = clock(self.zone, window).date() + ONE_DAY
        while self.start(day) > window:
            day -= ONE_DAY
        return day

    def label(self, window: int) -> datetime:
        """The local time; at the start of a day the time at which days start, even if the clock skips it that day."""
        day = self.day_of(window)
        return datetime.combine(day, self.starts_at) if window == self.start(day) else clock(self.zone, window)

    def week_of(self, day: date) -> date:
        """The first day of the week that the day lies in."""
        return day - ONE_DAY * ((day.weekday() - self.week_starts_on) % 7)

    def whole(self, span: Span) -> Span:
        """The span, widened to whole days."""
        return Span(self.start(self.day_of(span.start)), self.start(self.day_of(span.end - STEP) + ONE_DAY))

    def touched(self, span: Span) -> Iterator[tuple[date, Span]]:
        """Every day of which a window lies in the span, as a whole. A date that the time zone skipped has no window."""
        day = self.day_of(span.start)
        start = self.start(day)
        while start < span.end and span.start < span.end:
            end = self.start(day + ONE_DAY)
            if start < end:
                yield day, Span(start, end)
            day, start = day + ONE_DAY, end


def open_spans(hours: OpeningHours, start: int, end: int) -> list[Span]:
    """The open time of [start, end), without overlaps, in order."""
    spans = (Span(max(first, start), min(last, end)) for first, last in _open_periods(hours, start, end))
    return disjoint(span for span in spans if span.start < span.end)


def open_periods(store: Store, start: int, end: int) -> Iterator[tuple[int, int]]:
    """When it opens and closes, in seconds, on the days that [start, end) touches and the day before; in order.

    Exact on days of 23, 24 and 25 hours, since both bounds are local. A closing time at or before the opening time lies
    on the next day; such hours belong to the day of opening, so a date in `closed_on` loses its own night, and not that
    of the day before.
    """
    return _open_periods(store.opening, start, end)


def _open_periods(hours: OpeningHours, start: int, end: int) -> Iterator[tuple[int, int]]:
    zone = zone_named(hours.timezone)
    day = clock(zone, start).date() - ONE_DAY  # the evening before may reach into the range
    last = clock(zone, end).date()
    month = day.replace(day=1)
    while month <= last:
        for opens_on, first, until in _periods_of_month(hours.timezone, hours.weekly, month):
            if day <= opens_on <= last and opens_on not in hours.closed_on:
                yield first, until
        month = (month + timedelta(days=31)).replace(day=1)


@lru_cache(maxsize=4096)
def _periods_of_month(
    timezone: str, weekly: tuple[tuple[str, ...], ...], month: date
) -> tuple[tuple[date, int, int], ...]:
    """The day of opening, when it opens and when it closes. Some kilobytes; stores with the same hours share them."""
    zone, found = zone_named(timezone), []
    for day in (month + number * ONE_DAY for number in range(monthrange(month.year, month.month)[1])):
        for period in weekly[day.weekday()]:
            opens, closes = _read(period, day)
            found.append((day, first_instant(zone, *opens), first_instant(zone, *closes)))
    return tuple(found)


def _read(period: str, day: date) -> tuple[tuple[date, time], tuple[date, time]]:
    opens, closes = (time(0) if text == "24:00" else time.fromisoformat(text) for text in period.split("-"))
    ends = day if closes > opens else day + ONE_DAY
    return (day, opens), (ends, closes)
