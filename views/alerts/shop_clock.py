"""A store's own time, as rules need it: windows by its hours and business days, a week before, and when it is open."""

from datetime import time, timedelta
from functools import lru_cache
from typing import NamedTuple

from master_dataset.registry.stores import WEEKDAYS, Store
from master_dataset.registry.time_zones import zone_named
from views.alerts.rule import WindowLength
from views.core.cut import seconds
from views.core.local_time import ONE_DAY, STEP, BusinessDays, Span, clock, open_periods, round_down

HOUR = 3600
_WEEK = timedelta(days=7)
_MOST_DAYS_OPEN = 10
"""How many days back the opening of a store that never closes is searched."""


class _Key(NamedTuple):
    length: WindowLength
    quarter: int


class ShopClock:
    """The clock of one store. All times are seconds since 1970."""

    def __init__(self, store: Store) -> None:
        """`store` as registered."""
        self.store = store
        self.zone = zone_named(store.timezone)
        self._days = BusinessDays.of(store, self.zone)
        self._span_of = lru_cache(maxsize=4096)(self._span)
        self._open_of = lru_cache(maxsize=4096)(self._is_open)
        self._period_of = lru_cache(maxsize=256)(self._period)

    def span(self, length: WindowLength, quarter: int) -> Span:
        """The window of that length that contains the quarter of an hour."""
        return self._span_of(_Key(length, quarter))

    def week_before(self, length: WindowLength, span: Span) -> Span:
        """The window that began when the same clock showed the same weekday, 7 dates before."""
        if length == "day":
            day = self._days.day_of(span.start) - _WEEK
            return Span(self._days.start(day), self._days.start(day + ONE_DAY))
        wall = clock(self.zone, span.start) - _WEEK
        return self.span(length, round_down(seconds(wall.replace(tzinfo=self.zone))))

    def business_day(self, at: int) -> int:
        """The start of the business day that contains the instant."""
        return self.span("day", round_down(at)).start

    def is_open(self, length: WindowLength, span: Span) -> bool:
        """Whether the whole window is within the opening hours; for a day, whether any of it is."""
        return self._open_of(_Key(length, span.start))

    def open_since(self, at: int) -> int | None:
        """When the store opened, if it is open at that instant. Adjacent periods count as one."""
        return self._period_of(round_down(at))

    def _span(self, key: _Key) -> Span:
        if key.length == "15m":
            return Span(key.quarter, key.quarter + STEP)
        if key.length == "hour":
            start = key.quarter - clock(self.zone, key.quarter).minute * 60
            return Span(start, start + HOUR)
        day = self._days.day_of(key.quarter)
        return Span(self._days.start(day), self._days.start(day + ONE_DAY))

    def _is_open(self, key: _Key) -> bool:
        span = self.span(*key)
        quarters = (self.open_since(at) is not None for at in range(span.start, span.end, STEP))
        return any(quarters) if key.length == "day" else all(quarters)

    def _period(self, quarter: int) -> int | None:
        since = quarter + 1
        for _ in range(_MOST_DAYS_OPEN):
            starts = [first for first, last in open_periods(self.store, since - 1, since) if first < since <= last]
            if not starts:
                break
            since = min(starts)
        return since if since <= quarter else None


_DAY_MINUTES = 24 * 60
_WEEK_MINUTES = 7 * _DAY_MINUTES


def longest_open(store: Store) -> int:
    """Minutes of the longest period for which the store is open, a week at most; 0 without opening hours."""
    merged: list[tuple[int, int]] = []
    for start, end in sorted(_weekly_periods(store, 0) + _weekly_periods(store, _WEEK_MINUTES)):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], end))
        else:
            merged.append((start, end))
    return min(max((end - start for start, end in merged), default=0), _WEEK_MINUTES)


def _weekly_periods(store: Store, since: int) -> list[tuple[int, int]]:
    found = []
    for number, weekday in enumerate(WEEKDAYS):
        for period in store.opening_hours.get(weekday, ()):
            opens, closes = (_minute(text) for text in period.split("-"))
            start = since + number * _DAY_MINUTES + opens
            found.append((start, start + (closes - opens if closes > opens else closes - opens + _DAY_MINUTES)))
    return found


def _minute(text: str) -> int:
    if text == "24:00":
        return _DAY_MINUTES
    at = time.fromisoformat(text)
    return at.hour * 60 + at.minute
