"""The comparison period: the windows that the points of a query are compared with.

Each point is compared with the windows of its mapped dates. Points of days and finer take the date itself; weeks,
months, years and totals take all dates between their mapped bounds. Weekdays and hours of the week meet by weekday and
hour, as they are in the earlier period.

Hours and quarter hours meet by what the clock shows, on days of any length. The n-th time a clock shows a quarter hour
is compared with the n-th time it showed it; what it showed more often is added to the last. So a repeated hour adds
both passes where the other day has one, meets pass by pass where both have two, and its second pass has no counterpart
where the other day had one.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from functools import cached_property
from itertools import groupby
from threading import Lock
from zoneinfo import ZoneInfo

from cachetools import LRUCache, cached

from serving_layer.compare.calendar import ComparisonCalendar
from serving_layer.timeline import QueryRange, Timeline, clock_hours, weekday_and_hour
from views.core.local_time import ONE_DAY, STEP, BusinessDays, Span, clock, offset
from views.core.windows import Windows

MOST_WINDOWS = 400_000
"""How many windows of compared periods are kept for stores that share them."""
_WINDOWS_OF_A_DAY = ONE_DAY // timedelta(seconds=STEP)
Placed = tuple[Span, int]
"""Windows, and the point that is compared with them."""
Dated = tuple[date, Span]
"""A day, and all its windows."""


@dataclass(frozen=True)
class ComparisonPeriod:
    """The windows that a query is compared with.

    Attributes:
        timeline: its points are those of the query, and its spans may leave gaps.
        windows: those that count.
        dates: the local dates that they lie on.
        lengths: where a point of several dates is compared with more or fewer dates, how many it has itself, and how
            many it is compared with.
    """

    timeline: Timeline
    windows: Windows
    dates: tuple[date, ...]
    lengths: dict[int, tuple[int, int]] = field(default_factory=dict)

    @cached_property
    def runs(self) -> tuple[Span, ...]:
        """The windows that count, in rows without a gap, in order."""
        ordered = list(self.windows)
        breaks = [at for at in range(1, len(ordered)) if ordered[at] != ordered[at - 1] + STEP]
        return tuple(
            Span(ordered[first], ordered[end - 1] + STEP)
            for first, end in zip([0, *breaks], [*breaks, len(ordered)], strict=True)
        )

    @property
    def points(self) -> frozenset[int]:
        """The points that are compared with something."""
        placed = zip(self.timeline.spans, self.timeline.points, strict=True)
        return frozenset(point for span, point in placed if not self.windows.isdisjoint(range(*span, STEP)))


def comparison_period(at: QueryRange, now: Timeline, calendar: ComparisonCalendar) -> ComparisonPeriod | None:
    """Find what the windows of a query are compared with.

    Args:
        at: the range of the query as far as it is over, in its business days, and its grain.
        now: the timeline of the query.
        calendar: which dates its dates are compared with.

    Returns:
        The period, or None if no window has a counterpart.
    """
    dated = list(at.days.touched(at.span))
    lengths: dict[int, tuple[int, int]] = {}
    if at.grain in ("15m", "hour"):
        placed = list(_by_clock(at, now, calendar, dated))
        dates = [there for day, _ in dated if (there := calendar.day(day))]
    elif at.grain == "hour_of_week":
        dates = list(calendar.days(dated[0][0], dated[-1][0] + ONE_DAY))
        placed = list(_by_hour_of_week(at.days, now, dates))
    elif at.grain == "weekday":
        dates = list(calendar.days(dated[0][0], dated[-1][0] + ONE_DAY))
        placed = list(_by_weekday(at.days, now, dates))
        present = Counter(day.isoweekday() for day, _ in dated), Counter(day.isoweekday() for day in dates)
        both = {place: (present[0][label.weekday], present[1][label.weekday]) for place, label in enumerate(now.labels)}
        lengths = {place: counts for place, counts in both.items() if counts[1] and counts[0] != counts[1]}
    else:
        pairs = {point: (own, _dates_there(at, calendar, own)) for point, own in _by_point(at, now, dated)}
        dates = [day for _, there in pairs.values() for day in there]
        placed = [(run, point) for point, (_, there) in pairs.items() for run in _runs(at.days, there)]
        lengths = {
            point: (len(own), len(there)) for point, (own, there) in pairs.items() if there and len(own) != len(there)
        }
    windows = {window for span, _ in placed for window in range(*span, STEP)}
    windows -= _beyond(at, calendar, dated)
    if not windows:
        return None
    timeline = Timeline(tuple(span for span, _ in placed), tuple(point for _, point in placed))
    counted = tuple(day for day in dates if not windows.isdisjoint(_windows(at.days, day)))
    return ComparisonPeriod(timeline, Windows.of(windows), counted, lengths)


def _windows_kept(period: ComparisonPeriod | None) -> int:
    """About how many; a period without a counterpart counts as a day, because its key has a range."""
    return _WINDOWS_OF_A_DAY + (0 if period is None else len(period.windows))


@cached(LRUCache(MOST_WINDOWS, getsizeof=_windows_kept), lock=Lock())
def comparison_until(of: QueryRange, until: int, calendar: ComparisonCalendar) -> ComparisonPeriod | None:
    """As `comparison_period` of the part of a range before `until`. Stores whose days are alike share it."""
    return comparison_period(of.until(until), of.timeline, calendar)


def _by_point(at: QueryRange, now: Timeline, dated: Iterable[Dated]) -> Iterator[tuple[int, list[date]]]:
    grouped = groupby(dated, key=lambda each: now.point_of(max(each[1].start, at.span.start)))
    return ((point, [day for day, _ in group]) for point, group in grouped)


def _dates_there(at: QueryRange, calendar: ComparisonCalendar, own: Sequence[date]) -> list[date]:
    if at.grain == "day":
        return [there for day in own if (there := calendar.day(day))]
    return list(calendar.days(own[0], own[-1] + ONE_DAY))


def _by_hour_of_week(days: BusinessDays, now: Timeline, dates: Sequence[date]) -> Iterator[Placed]:
    places = {(label.weekday, label.hour): place for place, label in enumerate(now.labels)}
    for run in _runs(days, dates):
        for hour in clock_hours(days.zone, run):
            place = places.get(weekday_and_hour(days.zone, hour))
            if place is not None:
                yield hour, place


def _by_weekday(days: BusinessDays, now: Timeline, dates: Sequence[date]) -> Iterator[Placed]:
    places = {label.weekday: place for place, label in enumerate(now.labels)}
    for day in dates:
        place = places.get(day.isoweekday())
        if place is not None:
            yield from ((run, place) for run in _runs(days, [day]))


def _runs(days: BusinessDays, dates: Sequence[date]) -> Iterator[Span]:
    """Dates in a row as one span; a date that the zone skipped has no window."""
    for _, group in groupby(enumerate(dates), key=lambda each: each[1] - ONE_DAY * each[0]):
        run = [day for _, day in group]
        span = Span(days.start(run[0]), days.start(run[-1] + ONE_DAY))
        if span.start < span.end:
            yield span


def _beyond(at: QueryRange, calendar: ComparisonCalendar, dated: Sequence[Dated]) -> set[int]:
    """Windows of the first and last mapped day that are labelled before the first, or not before the end, of `at`."""
    found: set[int] = set()
    (first, opening), (last, closing) = dated[0], dated[-1]
    start, end = calendar.day(first), calendar.day(last)
    if start and at.span.start > opening.start:
        label = at.days.label(at.span.start) + (start - first)
        day = _windows(at.days, start)
        found.update(window for window in day if clock(at.days.zone, window) < label)
    if end and at.span.end < closing.end:
        label = at.days.label(at.span.end) + (end - last)
        two_days = _windows(at.days, end, 2)  # a 29 February may follow
        found.update(window for window in two_days if clock(at.days.zone, window) >= label)
    return found


def _windows(days: BusinessDays, day: date, number: int = 1) -> range:
    return range(days.start(day), days.start(day + ONE_DAY * number), STEP)


def _by_clock(at: QueryRange, now: Timeline, calendar: ComparisonCalendar, dated: Iterable[Dated]) -> Iterator[Placed]:
    """Every window that shows, on the mapped date, what a window of `at` shows; in order."""
    for day, own in dated:
        date_there = calendar.day(day)
        if date_there is None:
            continue
        there = Span(at.days.start(date_there), at.days.start(date_there + ONE_DAY))
        part = Span(max(own.start, at.span.start), min(own.end, at.span.end))
        if _run_alike(at.days.zone, own, there):
            yield from _moved(now, part, there.start - own.start)
            continue
        for window, shown in _paired(at.days.zone, (day, own), (date_there, there)):
            if part.start <= window < part.end:
                yield Span(shown, shown + STEP), now.point_of(window)


def _run_alike(zone: ZoneInfo, one: Span, two: Span) -> bool:
    """Whether no clock was changed on either day, so that all their windows follow each other alike."""
    steady = all(offset(zone, day.start) == offset(zone, day.end - STEP) for day in (one, two))
    same_start = clock(zone, one.start).time() == clock(zone, two.start).time()
    return steady and same_start and one.end - one.start == two.end - two.start


def _moved(now: Timeline, part: Span, shift: int) -> Iterator[Placed]:
    for span, point in now.between(part):
        yield Span(max(span.start, part.start) + shift, min(span.end, part.end) + shift), point


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
