"""The two periods of a comparison as an answer shows them: local dates, and how many hours of them count."""

from collections.abc import Sequence
from datetime import date
from functools import lru_cache

from msgspec import UNSET

from serving_layer.query.aggregate import StoreStates
from serving_layer.query.store_facts import WINDOWS_OF_AN_HOUR
from serving_layer.responses.encoding import iso_epoch
from serving_layer.responses.metrics import Compared, PeriodCompared
from serving_layer.timeline import QueryRange, windows_between
from views.core.local_time import ONE_DAY, STEP, open_windows


def periods_compared(of: StoreStates, calendar: str) -> Compared:
    """The two periods of one store: local dates from (inclusive) to (exclusive), how many, and their hours."""
    at, before = of.query.range, of.comparison
    return Compared(
        calendar=calendar,
        now=_period(of, _dates_over(at, of.until), windows_between(at.timeline.start, of.until)),
        before=_period(of, before.dates, before.windows) if before else None,
        partial=of.is_partial or UNSET,
        until=iso_epoch(of.until) if of.is_partial else UNSET,
    )


def together(one: Compared, other: Compared) -> Compared:
    """The periods of several stores: from the earliest date to the latest, and the hours of all stores added."""
    calendars = sorted({*one.calendar.split("; "), *other.calendar.split("; ")})
    return Compared(
        calendar="; ".join(calendars),
        now=_joined(one.now, other.now),
        before=_joined(one.before, other.before),
        partial=one.partial or other.partial,
        until=one.until or other.until,
    )


@lru_cache(maxsize=32)
def _dates_over(at: QueryRange, until: int) -> Sequence[date]:
    """The dates of a range as far as it is over. Stores whose days are alike share them."""
    return tuple(day for day, _ in at.days.touched(at.span._replace(end=until)))


def _period(of: StoreStates, dates: Sequence[date], windows: frozenset[int]) -> PeriodCompared | None:
    if of.spans is not None:  # the store is in the group for a part of the time
        windows = frozenset(window for window in windows if any(span.start <= window < span.end for span in of.spans))
        there = {of.query.range.days.day_of(window) for window in windows}
        dates = [day for day in dates if day in there]
    if not windows:
        return None
    hours = of.query.store.opening_hours
    is_open = open_windows(of.query.store, min(windows), max(windows) + STEP) if hours else frozenset()
    return PeriodCompared(
        start=dates[0],
        end=dates[-1] + ONE_DAY,
        days=len(dates),
        hours=len(windows) / WINDOWS_OF_AN_HOUR,
        open_hours=len(windows & is_open) / WINDOWS_OF_AN_HOUR,
    )


def _joined(one: PeriodCompared | None, other: PeriodCompared | None) -> PeriodCompared | None:
    if one is None or other is None:
        return one or other
    return PeriodCompared(
        start=min(one.start, other.start),
        end=max(one.end, other.end),
        days=max(one.days, other.days),
        hours=one.hours + other.hours,
        open_hours=one.open_hours + other.open_hours,
    )
