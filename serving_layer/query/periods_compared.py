"""The two periods of a comparison as an answer shows them: local dates, and how many hours of them count."""

from collections.abc import Sequence
from datetime import date
from functools import lru_cache

from msgspec import UNSET

from master_dataset.registry.stores import OpeningHours
from serving_layer.query.aggregate import StoreStates
from serving_layer.responses.encoding import iso_epoch
from serving_layer.responses.metrics import Compared, PeriodCompared
from serving_layer.timeline import Period, QueryRange
from views.core.local_time import ONE_DAY, STEP, Span, disjoint, open_spans

_HOUR = 3600


def periods_compared(of: StoreStates, calendar: str, *, only_covered: bool) -> Compared:
    """The two periods of one store: local dates from (inclusive) to (exclusive), how many, and their hours.

    `only_covered`: only hours in which the sensors were alive count.
    """
    at, before = of.query.range, of.comparison
    now_runs, before_runs = _run(at.timeline.start, of.until), before.runs if before else ()
    if only_covered:
        now_runs = _counted(of.now.period, now_runs)
        before_runs = _counted(of.before.period, before_runs) if of.before else ()
    return Compared(
        calendar=calendar,
        now=_period(of, _dates_over(at, of.until), now_runs),
        before=_period(of, before.dates, before_runs) if before else None,
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


def _run(start: int, end: int) -> tuple[Span, ...]:
    return (Span(start, end),) if start < end else ()


def _counted(period: Period, runs: Sequence[Span]) -> tuple[Span, ...]:
    """Of these windows those that count."""
    windows = (window for run in runs for window in range(*run, STEP) if period.holds(window))
    return tuple(disjoint(Span(window, window + STEP) for window in windows))


@lru_cache(maxsize=32)
def _dates_over(at: QueryRange, until: int) -> Sequence[date]:
    """The dates of a range as far as it is over. Stores whose days are alike share them."""
    return tuple(day for day, _ in at.days.touched(at.span._replace(end=until)))


def _period(of: StoreStates, dates: Sequence[date], runs: tuple[Span, ...]) -> PeriodCompared | None:
    if of.spans is not None:  # the store is in the group for a part of the time
        runs = tuple(both for run in runs for span in of.spans if (both := _shared(run, span)))
        there = {day for run in runs for day, _ in of.query.range.days.touched(run)}
        dates = [day for day in dates if day in there]
    if not runs:
        return None
    return PeriodCompared(
        start=dates[0],
        end=dates[-1] + ONE_DAY,
        days=len(dates),
        hours=sum(run.end - run.start for run in runs) / _HOUR,
        open_hours=_open_seconds(of.query.store.opening, runs) / _HOUR,
    )


def _shared(one: Span, other: Span) -> Span | None:
    """What lies in both."""
    both = Span(max(one.start, other.start), min(one.end, other.end))
    return both if both.start < both.end else None


@lru_cache(maxsize=4096)
def _open_seconds(hours: OpeningHours, runs: tuple[Span, ...]) -> int:
    """How long it is open in these windows. All metrics of an answer ask, and every store with these hours."""
    spans = open_spans(hours, min(run.start for run in runs), max(run.end for run in runs))
    found = first = 0
    for run in sorted(runs):
        while first < len(spans) and spans[first].end <= run.start:
            first += 1
        place = first
        while place < len(spans) and spans[place].start < run.end:
            found += min(run.end, spans[place].end) - max(run.start, spans[place].start)
            place += 1
    return found


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
