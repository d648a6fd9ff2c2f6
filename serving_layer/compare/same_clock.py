"""Hours and quarter hours of two days meet by what the clock shows, on days of any length.

The n-th time a clock shows a quarter hour is compared with the n-th time it showed it; what it showed more often is
added to the last. So a repeated hour adds both passes where the other day has one, meets pass by pass where both have
two, and its second pass has no counterpart where the other day had one.
"""

from collections.abc import Iterable, Iterator
from datetime import date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from serving_layer.compare.calendar import Counterparts
from serving_layer.compare.comparison import AskedTime
from serving_layer.query.timeline import Timeline
from views.core.business_days import ONE_DAY, Span
from views.core.local_time import STEP, clock, offset

Placed = tuple[Span, int]
"""Windows, and the place of the point that they are compared with."""
Dated = tuple[date, Span]
"""A day, and all its windows."""


def by_clock(at: AskedTime, now: Timeline, by: Counterparts, dated: Iterable[Dated]) -> Iterator[Placed]:
    """Every window that shows, on the mapped date, what a window of `at` shows; in order."""
    for day, own in dated:
        date_there = by.day(day)
        if date_there is None:
            continue
        there = Span(at.days.start(date_there), at.days.start(date_there + ONE_DAY))
        asked = Span(max(own.start, at.span.start), min(own.end, at.span.end))
        if _run_alike(at.days.zone, own, there):
            yield from _moved(now, asked, there.start - own.start)
            continue
        for window, shown in _paired(at.days.zone, (day, own), (date_there, there)):
            if asked.start <= window < asked.end:
                yield Span(shown, shown + STEP), now.point_of(window)


def _run_alike(zone: ZoneInfo, one: Span, two: Span) -> bool:
    """Whether no clock was changed on either day, so that all their windows follow each other alike."""
    steady = all(offset(zone, day.start) == offset(zone, day.end - STEP) for day in (one, two))
    same_start = clock(zone, one.start).time() == clock(zone, two.start).time()
    return steady and same_start and one.end - one.start == two.end - two.start


def _moved(now: Timeline, asked: Span, shift: int) -> Iterator[Placed]:
    for span, point in now.between(asked):
        yield Span(max(span.start, asked.start) + shift, min(span.end, asked.end) + shift), point


def _paired(zone: ZoneInfo, one: Dated, two: Dated) -> Iterator[tuple[int, int]]:
    """A window of the first day, and one of the second that shows the same. Each of the second comes at most once."""
    shown: dict[timedelta, list[int]] = {}
    for window in range(*one[1], STEP):
        shown.setdefault(_label(zone, window, one[0]), []).append(window)
    passes: dict[timedelta, int] = {}
    for window in range(*two[1], STEP):
        label = _label(zone, window, two[0])
        same, nth = shown.get(label), passes.get(label, 0)
        passes[label] = nth + 1
        if same:
            yield same[min(nth, len(same) - 1)], window


def _label(zone: ZoneInfo, window: int, day: date) -> timedelta:
    return clock(zone, window) - datetime.combine(day, time(0))
