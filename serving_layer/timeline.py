"""Time in queries and answers: grains, points, the windows that count, and how instants are read and written.

Windows are 15 minutes in UTC. A timeline assigns each window of a query to a point, under a grain and in a time zone.
Hours have the key (local date, hour, UTC offset), so a repeated hour is two points and a skipped one none. Days are the
business days of the store, and weeks, months and years are made of them; hours are those of the clock. `weekday` adds
all business days that are Mondays, and so on; `hour_of_week` adds both passes of a repeated hour.
"""

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from functools import cached_property, lru_cache
from itertools import groupby, pairwise
from typing import Literal, NamedTuple, Self, get_args
from zoneinfo import ZoneInfo

from master_dataset.registry import time_zones
from master_dataset.registry.file_rows import plain_date
from master_dataset.registry.time_zones import TIME_ZONES
from serving_layer.errors import BadQuestionError
from serving_layer.responses.encoding import iso_epoch
from serving_layer.responses.metrics import Point, WeatherRow
from views.core.cut import seconds
from views.core.local_time import (
    FIRST_YEAR,
    LAST_YEAR,
    ONE_DAY,
    STEP,
    BusinessDays,
    Span,
    clock,
    offset,
    round_down,
    round_up,
)
from views.core.windows import Windows

Grain = Literal["15m", "hour", "day", "week", "month", "year", "weekday", "hour_of_week", "total"]
GRAINS: tuple[Grain, ...] = get_args(Grain)


class WeekPlace(NamedTuple):
    """A weekday or an hour of the week, which a point adds up over all weeks.

    Attributes:
        weekday: ISO, Monday is 1.
        hour: of the clock; None at the grain `weekday`.
        present: how many such hours, or business days, the timeline has; one that it cuts off is a part of an hour, and
            a whole day.
    """

    weekday: int
    hour: int | None
    present: float


def place_in_week(row: Point | WeatherRow, place: WeekPlace) -> None:
    """Say in a row of an answer which weekday or hour of the week it is of."""
    row.weekday = place.weekday
    if place.hour is None:
        row.days_present = int(place.present)
    else:
        row.hour, row.hours_present = place.hour, place.present


@dataclass(frozen=True)
class Timeline:
    """`spans` follow each other; `points[i]` is the place of the point that `spans[i]` belongs to.

    A query's spans leave no gap, and every point has one. What it is compared with may have gaps, and lack points.
    `labels`: per point what its start alone does not say: its place in the week, at `weekday` and `hour_of_week`.
    """

    spans: tuple[Span, ...]
    points: tuple[int, ...]
    labels: tuple[WeekPlace, ...] = ()

    @cached_property
    def _starts(self) -> list[int]:
        return [span.start for span in self.spans]

    @cached_property
    def bounds(self) -> list[Span]:
        """Per point the start of its first window and the end of its last."""
        found: dict[int, Span] = {}
        for span, point in zip(self.spans, self.points, strict=True):
            start = found[point].start if point in found else span.start
            found[point] = Span(start, span.end)
        return [found[point] for point in range(len(found))]

    @cached_property
    def starts(self) -> list[str]:
        """The label of each point: when it starts."""
        return [iso_epoch(bound.start) for bound in self.bounds]

    @property
    def start(self) -> int:
        """The first window of all."""
        return self.spans[0].start

    @property
    def end(self) -> int:
        """Where the last window ends."""
        return self.spans[-1].end

    def between(self, part: Span) -> Iterator[tuple[Span, int]]:
        """The spans that have a window in this part, each with the place of its point."""
        first = max(bisect_right(self._starts, part.start) - 1, 0)
        for place in range(first, bisect_left(self._starts, part.end)):
            if self.spans[place].end > part.start:
                yield self.spans[place], self.points[place]

    def labels_until(self, end: int) -> Sequence[WeekPlace]:
        """The labels, where only the hours and business days that have begun before `end` are present."""
        if not self.labels or end >= self.end:
            return self.labels
        present = [label.present for label in self.labels]
        for place in range(max(bisect_right(self._starts, end) - 1, 0), len(self.spans)):
            span, point = self.spans[place], self.points[place]
            if self.labels[point].hour is not None:
                present[point] -= (span.end - max(span.start, end)) / 3600
            elif span.start >= end:
                present[point] -= 1
        return [label._replace(present=each) for label, each in zip(self.labels, present, strict=True)]

    def point_of(self, window: int) -> int:
        """The place of the point that a window within the timeline belongs to."""
        return self.points[bisect_right(self._starts, window) - 1]


@lru_cache(maxsize=32)
def timeline(grain: Grain, days: BusinessDays, start: int, end: int) -> Timeline:
    """The points of all windows that touch [start, end), seconds since 1970. `start` must be before `end`."""
    whole = Span(round_down(start), round_up(end))
    if grain == "hour_of_week":
        return _by_hour_of_week(days.zone, clock_hours(days.zone, whole))
    if grain == "weekday":
        return _by_weekday(days, whole)
    spans = _clipped(_spans(grain, days, whole), whole)
    return Timeline(spans, tuple(range(len(spans))))


def _clipped(spans: Iterable[Span], whole: Span) -> tuple[Span, ...]:
    inside = (Span(max(span.start, whole.start), min(span.end, whole.end)) for span in spans)
    return tuple(span for span in inside if span.start < span.end)


def _spans(grain: Grain, days: BusinessDays, whole: Span) -> Iterator[Span]:
    if grain == "total":
        return iter([whole])
    if grain == "15m":
        return (Span(at, at + STEP) for at in range(whole.start, whole.end, STEP))
    if grain == "hour":
        return _hours(days.zone, whole)
    return _days(grain, days, whole)


def _days(grain: Grain, days: BusinessDays, whole: Span) -> Iterator[Span]:
    """Days, or weeks, months and years made of them; the first and last may reach beyond `whole`."""
    starts: list[int] = []
    day = _floor(grain, days, days.day_of(whole.start))
    while not starts or starts[-1] < whole.end:
        starts.append(days.start(day))
        day = _next(grain, day)
    return (Span(start, end) for start, end in pairwise(starts))


def clock_hours(zone: ZoneInfo, whole: Span) -> tuple[Span, ...]:
    """The hours of the clock within these windows, cut off where they reach beyond."""
    return _clipped(_hours(zone, whole), whole)


def _hours(zone: ZoneInfo, whole: Span) -> Iterator[Span]:
    for day in _days("day", BusinessDays(zone), whole):
        if offset(zone, day.start) == offset(zone, day.end - STEP) and not clock(zone, day.start).minute:
            yield from (Span(at, min(at + 3600, day.end)) for at in range(day.start, day.end, 3600))
            continue
        windows = range(day.start, day.end, STEP)
        for _, group in groupby(windows, key=lambda at: (clock(zone, at).hour, offset(zone, at))):
            hour = list(group)
            yield Span(hour[0], hour[-1] + STEP)


def _by_hour_of_week(zone: ZoneInfo, hours: tuple[Span, ...]) -> Timeline:
    keys = [weekday_and_hour(zone, hour) for hour in hours]
    present: dict[tuple[int, int], int] = {}
    for key, hour in zip(keys, hours, strict=True):
        present[key] = present.get(key, 0) + hour.end - hour.start
    order = {key: place for place, key in enumerate(sorted(present))}
    labels = tuple(WeekPlace(day, hour, present[day, hour] / 3600) for day, hour in order)
    return Timeline(hours, tuple(order[key] for key in keys), labels)


def _by_weekday(days: BusinessDays, whole: Span) -> Timeline:
    touched = list(days.touched(whole))
    present = Counter(day.isoweekday() for day, _ in touched)
    order = {weekday: place for place, weekday in enumerate(sorted(present))}
    labels = tuple(WeekPlace(weekday, None, present[weekday]) for weekday in order)
    return Timeline(
        _clipped((span for _, span in touched), whole), tuple(order[day.isoweekday()] for day, _ in touched), labels
    )


def weekday_and_hour(zone: ZoneInfo, hour: Span) -> tuple[int, int]:
    """The key of an hour of the week: ISO weekday and hour of the clock."""
    at = clock(zone, hour.start)
    return at.isoweekday(), at.hour


def _floor(grain: Grain, days: BusinessDays, day: date) -> date:
    if grain == "week":
        return days.week_of(day)
    if grain == "month":
        return day.replace(day=1)
    return day.replace(month=1, day=1) if grain == "year" else day


def _next(grain: Grain, day: date) -> date:
    if grain == "month":
        return (day.replace(day=28) + ONE_DAY * 4).replace(day=1)
    if grain == "year":
        return day.replace(year=day.year + 1)
    return day + ONE_DAY * (7 if grain == "week" else 1)


_WITHOUT_OFFSET = len("2026-11-30T12:00:00")


class PointLabel(NamedTuple):
    """What a point is called in the time of its store: stores of several zones have points of one label.

    Attributes:
        number: identifies the label among those of a grain, in the order of time.
        day: the first business date of the day, week, month or year, or of a total; None at other grains.
        local: where it begins, at the grains 15m and hour: the local instant of the store where that is earliest, with
            its offset if stores agree on it. None at others.
    """

    number: int
    day: date | None = None
    local: str | None = None

    def together(self, other: "PointLabel") -> "PointLabel":
        """The label of the points of several stores, which have the same number."""
        dates = [each.day for each in (self, other) if each.day]
        local = self.local
        if local and other.local and local != other.local:
            # The first hour of a store whose business day begins within it begins later than that of others.
            local = min(each[:_WITHOUT_OFFSET] for each in (local, other.local))
        return PointLabel(self.number, min(dates, default=None), local)


@lru_cache(maxsize=32)
def point_labels(grain: Grain, days: BusinessDays, start: int, end: int) -> tuple[PointLabel, ...]:
    """The labels of the points of `timeline` with the same arguments.

    Where clocks go back, both passes of an hour have labels of their own, and the first meets the first of others.
    """
    line = timeline(grain, days, start, end)
    if grain in ("weekday", "hour_of_week"):
        return tuple(PointLabel(each.weekday * 24 + (each.hour or 0)) for each in line.labels)
    if grain == "total":
        return (PointLabel(0, days.day_of(line.start)),)
    if grain in ("15m", "hour"):
        return tuple(_clock_label(grain, days.zone, bound.start) for bound in line.bounds)
    firsts = (_floor(grain, days, days.day_of(bound.start)) for bound in line.bounds)
    return tuple(PointLabel(first.toordinal(), first) for first in firsts)


def _clock_label(grain: Grain, zone: ZoneInfo, start: int) -> PointLabel:
    local = datetime.fromtimestamp(start, zone)
    minute = local.minute if grain == "15m" else 0
    number = ((local.toordinal() * 24 + local.hour) * 2 + local.fold) * 60 + minute
    return PointLabel(number, local=local.isoformat(timespec="seconds"))


@dataclass(frozen=True)
class QueryRange:
    """The time that a query is about: whole windows, cut into these days, at this grain.

    Its points are found once. Stores whose days are alike share one range, so that the points of an answer are found
    once for all of them, in however many time zones the others are.
    """

    days: BusinessDays
    span: Span
    grain: Grain

    @cached_property
    def timeline(self) -> Timeline:
        """Assigns its windows to points."""
        return timeline(self.grain, self.days, *self.span)

    @cached_property
    def labels(self) -> tuple[PointLabel, ...]:
        """The label of each point."""
        return point_labels(self.grain, self.days, *self.span)

    def until(self, end: int) -> "QueryRange":
        """The part of it that lies before `end`."""
        return replace(self, span=Span(self.span.start, end))

    @property
    def first(self) -> date:
        """The first day."""
        return self.days.day_of(self.span.start)

    @property
    def last(self) -> date:
        """The day after the last one."""
        return self.days.day_of(self.span.end - STEP) + ONE_DAY


@dataclass(frozen=True)
class Period:
    """The windows of a timeline that count.

    Attributes:
        timeline: assigns the windows to points.
        begun: where the windows end that are over or running, as far as the snapshot knows.
        over: where those end that are over.
        only: the windows that count; None for all of the timeline.
        is_loading: nothing was published yet, so a point without cells is not known to be zero.
    """

    timeline: Timeline
    begun: int
    over: int
    only: Windows | None = None
    is_loading: bool = False

    def keeping(self, windows: Windows) -> Self:
        """Of the windows that count those alone."""
        return replace(self, only=windows if self.only is None else self.only & windows)

    def ended(self) -> Self:
        """The windows that are over: a running one is not yet reported by interval."""
        return replace(self, begun=self.over)

    def holds(self, window: int) -> bool:
        """Whether the window counts."""
        return self.timeline.start <= window < self.timeline.end if self.only is None else window in self.only

    def counts_in(self, window: int) -> bool:
        """Whether the window counts and is over or running."""
        return self.holds(window) and window < self.begun

    def windows(self) -> Iterator[int]:
        """Those that count and are over or running, in order."""
        counted = (window for span in self.timeline.spans for window in range(*span, STEP))
        found = counted if self.only is None else self.only
        return (window for window in found if window < self.begun)

    def counts(self, between: Span | None = None) -> dict[int, int]:
        """Per point how many windows count; `between`: that begin there."""
        start, end = between or Span(self.timeline.start, self.timeline.end)
        found: dict[int, int] = {}
        if self.only is None:
            for span, point in zip(self.timeline.spans, self.timeline.points, strict=True):
                found[point] = found.get(point, 0) + max(0, min(span.end, end) - max(span.start, start)) // STEP
            return found
        for window in self.only:
            if start <= window < end:
                point = self.timeline.point_of(window)
                found[point] = found.get(point, 0) + 1
        return found


def zone_named(name: str) -> ZoneInfo:
    """The time zone of a name. BadQuestionError if the time zone database has none."""
    if name not in TIME_ZONES:
        raise BadQuestionError(f"There is no time zone `{name}`.", do="Use a name such as `Europe/Bratislava`.")
    return time_zones.zone_named(name)


def read_bound(text: str, start_of: Callable[[date], int], name: str) -> int:
    """A bound of a range: an instant with offset, or a date, which means `start_of` it. In seconds, not on the grid."""
    try:
        if len(text) == len("2026-11-21"):
            day = plain_date(text)
            _within_years(day, text, name)
            return start_of(day)
        at = datetime.fromisoformat(text.replace(" ", "+"))  # a `+` that a query string turned into a space
    except (ValueError, OverflowError) as error:
        message = f"`{name}` is neither a date nor a time: `{text}`."
        do = f"Write `{name}=2026-11-21`, `{name}=2026-11-21T09:00:00Z`, or a day counted from today: `{name}=-7d`."
        raise BadQuestionError(message, do=do) from error
    if at.tzinfo is None:
        raise BadQuestionError(f"`{name}` has no offset: `{text}`.", do=f"Write `{name}={text}Z`, or a date alone.")
    _within_years(at.date(), text, name)
    return seconds(at)


def _within_years(day: date, text: str, name: str) -> None:
    if not FIRST_YEAR < day.year < LAST_YEAR:
        message = f"`{name}` is beyond the years that Galatea keeps: `{text}`."
        raise BadQuestionError(message, do=f"Use a time between {FIRST_YEAR + 1} and {LAST_YEAR - 1}.")
