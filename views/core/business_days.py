"""A shop's own days: a business day begins where the shop says, not at midnight, and weeks are made of such days."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from typing import NamedTuple, Self
from zoneinfo import ZoneInfo

from master_dataset.registry.opening_hours import WEEKDAYS
from master_dataset.registry.stores import Store
from views.core.local_time import STEP, clock, first_instant

MIDNIGHT = time(0)
ONE_DAY = timedelta(days=1)


class Span(NamedTuple):
    """Windows from `start` until before `end`, in seconds since 1970."""

    start: int
    end: int


@dataclass(frozen=True)
class BusinessDays:
    """Days that begin at the first window whose clock, on their date, is at or past `starts_at`.

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
        """What the clock shows; at the start of a day what it should show, were its midnight not skipped."""
        day = self.day_of(window)
        return datetime.combine(day, self.starts_at) if window == self.start(day) else clock(self.zone, window)

    def week_of(self, day: date) -> date:
        """The first day of the week that the day lies in."""
        return day - ONE_DAY * ((day.weekday() - self.week_starts_on) % 7)

    def whole(self, span: Span) -> Span:
        """The span, widened to whole days."""
        return Span(self.start(self.day_of(span.start)), self.start(self.day_of(span.end - STEP) + ONE_DAY))

    def touched(self, span: Span) -> Iterator[tuple[date, Span]]:
        """Every day of which a window lies in the span, as a whole. A date that the zone skipped has no window."""
        day = self.day_of(span.start)
        start = self.start(day)
        while start < span.end and span.start < span.end:
            end = self.start(day + ONE_DAY)
            if start < end:
                yield day, Span(start, end)
            day, start = day + ONE_DAY, end
