"""Sensor health: of each registered sensor its last signal, its coverage by business day, and the drift of counters.

Everything is read from cells, so it is what a full recompute would say. What these tell of one sensor differs:

    coverage   counts heartbeats by source and sensor: exact for each sensor that sends them
    traffic    counts intervals by door line, not by sensor: a counter is known by the line that it is registered for

A signal is known to the 15-minute window of its cell, not to the second.
"""

import asyncio
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

from msgspec import UNSET

from master_dataset.errors import RangeTooLongError
from master_dataset.registry.stores import Sensor, Store
from master_dataset.sources.people_counts import PEOPLE_COUNTS
from master_dataset.sources.sensor_heartbeats import WATCHED
from serving_layer.compare.comparable_stores import ENOUGH
from serving_layer.off_loop import off_loop
from serving_layer.query.answer import LongAnswerSlot, long_answer_slot, windows_weighed
from serving_layer.query.ranges import RangeName
from serving_layer.query.resolve import Hours, query_span
from serving_layer.query.sensor_coverage import (
    ALWAYS_END,
    ALWAYS_START,
    STEP_MS,
    SignalKey,
    expected_ms_at,
    key_of_line,
    registered_span,
    signal_key,
)
from serving_layer.query.stores import PageRequest, StorePage, write_token
from serving_layer.query.window_terms import LEAST_SHARE
from serving_layer.responses.encoding import iso_epoch
from serving_layer.responses.sensors import MeasuredBy, SensorDay, SensorHealth, SensorList, SensorState, SensorStore
from serving_layer.store.cells import MergedCells
from serving_layer.store.snapshot import ReadSnapshot, as_of
from serving_layer.timeline import Period, timeline, zone_named
from views.core import View
from views.core.cells import WAITING
from views.core.cut import seconds
from views.core.local_time import STEP, BusinessDays, Span, open_periods, round_down
from views.core.merge import Cell
from views.core.windows import open_windows
from views.coverage import COVERAGE
from views.traffic import TRAFFIC

SILENT_AFTER = 30
"""Open minutes without a signal after which a sensor is silent: counters send once in 15 minutes."""
USUAL_START = "-6d"
"""Where the range begins if none is given: seven business days with today."""
MOST_DAYS = 31
STORES_PER_PAGE = 25
FIRST_PAGE = PageRequest(STORES_PER_PAGE)
MOST_SENSORS = 2_000
"""A page ends with the store before the one that brings it above this number; a single store may have more."""
STORES_AT_ONCE = 8
EVER = Span(ALWAYS_START, ALWAYS_END)


@dataclass(frozen=True)
class SensorsRequest:
    """Which sensors, and of when; the range is widened to whole business days of each store.

    Attributes:
        stores: ids; none: all that the caller sees.
        start, end, range, partial, as_of, now: see `MetricRequest`.
        states: only sensors in one of these; none: all.
        hours: which windows count for coverage.
        silent_after: open minutes without a signal after which a sensor is silent.
        page: which of the stores.
    """

    stores: tuple[str, ...] = ()
    start: str | None = None
    end: str | None = None
    range: RangeName | None = None
    states: tuple[SensorState, ...] = ()
    hours: Hours = "all"
    silent_after: int = SILENT_AFTER
    partial: bool = False
    as_of: int | None = None
    page: PageRequest = FIRST_PAGE
    now: int | None = None

    def period(self, store: Store, snapshot: ReadSnapshot) -> Period:
        """The windows that count at a store, with a point for each business day.

        Raises:
            BadQuestionError: a time cannot be read, or the end is not after the start.
            RangeTooLongError: more than `MOST_DAYS` business days.
        """
        days = BusinessDays.of(store, zone_named(store.timezone))
        span = days.whole(query_span(self.start, self.end, days, "day", name=self.range, now=self.now))
        line = timeline("day", days, *span)
        if len(line.spans) > MOST_DAYS:
            message = f"A request about sensors can have at most {MOST_DAYS} days; this one has {len(line.spans)}."
            raise RangeTooLongError(message, do="Split it into several requests.")
        over = round_down(seconds(snapshot.as_of_at))
        only = open_windows(store, *span) if self.hours == "open" else None
        return Period(line, over, over, only, snapshot.is_loading)


async def answer(
    request: SensorsRequest,
    page: StorePage,
    snapshot: ReadSnapshot,
    cells: MergedCells,
    slot: LongAnswerSlot = nullcontext,
) -> SensorList:
    """The health of the sensors of some stores.

    Args:
        request: as the caller wrote it; its `stores` and `page` are not read.
        page: the stores that the answer is about. It may be cut short.
        snapshot: the state of both layers that all of it is computed from.
        cells: the merged cells of both layers.
        slot: is held while a long answer is computed.

    Raises:
        BadQuestionError, RangeTooLongError: see `SensorsRequest.period`.
        DefinitionNotPublishedError, CellMissingError, CassandraUnavailableError: as for any answer.
    """
    page = _cut(page)
    periods = {store.id: request.period(store, snapshot) for store in page.stores}
    cells, turns = cells.for_one_answer(), asyncio.Semaphore(STORES_AT_ONCE)
    with_sensors = [store.id for store in page.stores if _views(store)]

    async def of_store(store: Store) -> tuple[SensorStore, list[SensorHealth], int]:
        async with turns:  # so that memory does not grow with the number of stores
            return await _of_store(request, store, periods[store.id], snapshot, cells)

    lines = {store.id: periods[store.id].timeline for store in page.stores}
    windows = sum(windows_weighed(_views(of), [(lines[of.id].start, lines[of.id].end)]) for of in page.stores)
    async with long_answer_slot(windows, slot):
        await cells.speed.read_ahead(snapshot, (COVERAGE, TRAFFIC, WAITING), with_sensors)
        readers = [asyncio.ensure_future(of_store(store)) for store in page.stores]
        try:
            found = await asyncio.gather(*readers)
        finally:  # if one fails, the others need not go on
            for reader in readers:
                reader.cancel()
    return SensorList(
        request.silent_after,
        [store for store, _, _ in found],
        [each for _, sensors, _ in found for each in sensors if not request.states or each.state in request.states],
        as_of(snapshot, sum(waiting for _, _, waiting in found)),
        None if page.following is None else write_token(page.following),
    )


def _cut(page: StorePage) -> StorePage:
    total = 0
    for number, store in enumerate(page.stores):
        total += len(store.sensors)
        if number and total > MOST_SENSORS:
            return StorePage(page.stores[:number], page.stores[number - 1].id)
    return page


def _views(store: Store) -> list[View]:
    """The views that tell of sensors that the store has."""
    sources = {sensor.source for sensor in store.sensors}
    return [view for view, of in ((COVERAGE, WATCHED), (TRAFFIC, (PEOPLE_COUNTS.topic,))) if sources.intersection(of)]


async def _of_store(
    request: SensorsRequest, store: Store, period: Period, snapshot: ReadSnapshot, cells: MergedCells
) -> tuple[SensorStore, list[SensorHealth], int]:
    views, span = _views(store), Span(period.timeline.start, period.timeline.end)
    found = await asyncio.gather(*(cells.read(snapshot, view, {store.id: [span]}) for view in views))
    read = [each[store.id][0] for each in found]
    waiting = (await cells.waiting(snapshot, views, {store.id: [span]}))[store.id].number if views else 0
    by_view = dict(zip((view.name for view in views), read, strict=True))
    until = seconds(snapshot.as_of_at)

    def computed() -> tuple[SensorStore, list[SensorHealth]]:
        sensors = StoreSensors(store, period, until, by_view)
        listed = sensors.listed(request.silent_after)
        return sensors.summary(len(listed)), listed

    summary, listed = await off_loop(sum(map(len, read)), computed)
    return summary, listed, waiting


class People(NamedTuple):
    """How many came in and went out."""

    people_in: int
    people_out: int

    @classmethod
    def sum(cls, people: Iterable["People"]) -> "People | None":
        """All of them together; None if there are none."""
        found = list(people)
        return cls(sum(each.people_in for each in found), sum(each.people_out for each in found)) if found else None

    @property
    def drift_percent(self) -> float | None:
        """The difference in percent of people in; None if nobody came in."""
        return _percent(self.people_in - self.people_out, self.people_in)

    @property
    def is_drift_high(self) -> bool:
        """Whether the flag `drift_high` is set."""
        return LEAST_SHARE * abs(self.people_in - self.people_out) > self.people_in


@dataclass
class Signals:
    """What cells tell of the sensors that are counted together: milliseconds alive by window, people by day's point."""

    alive: Counter[int]
    people: dict[int, People]


NO_SIGNALS = Signals(Counter(), {})


class StoreSensors:
    """The sensors of one store, and what its cells tell of them."""

    def __init__(self, store: Store, period: Period, known_until: int, cells: Mapping[str, Sequence[Cell]]) -> None:
        """Sort the cells.

        Args:
            store: whose sensors.
            period: the windows that count, with a point for each business day.
            known_until: until when the snapshot knows what happened, in seconds since 1970.
            cells: by the name of the view, all cells of the period.
        """
        self._store, self._period, self._known_until = store, period, known_until
        self._days = BusinessDays.of(store, zone_named(store.timezone))
        self._sensors = [(sensor, registered_span(store, sensor)) for sensor in store.sensors]
        self._spans: dict[SignalKey, Counter[Span]] = {}
        for sensor, span in self._sensors:
            self._spans.setdefault(signal_key(sensor), Counter())[span] += 1
        self._signals: dict[SignalKey, Signals] = {}
        self._counts: dict[Span, dict[int, int]] = {}
        for cell in cells.get(COVERAGE.name, ()):
            source, id_ = cell.key.dimensions
            self._add(cell, (source or "", id_ or ""), _BEATEN)
        for cell in cells.get(TRAFFIC.name, ()):
            key = key_of_line(cell.key.dimensions[0], self._spans)
            self._add(cell, key, _COUNTED)
            self._add_people(cell, self._signals[key].people)

    def _add(self, cell: Cell, key: SignalKey, state: int) -> None:
        signals = self._signals.get(key)
        if signals is None:
            signals = self._signals[key] = Signals(Counter(), {})
        signals.alive[cell.key.window] += int(cell.merged[state] or 0)

    def _add_people(self, cell: Cell, people: dict[int, People]) -> None:
        point = self._period.timeline.point_of(cell.key.window)
        before = people.get(point, People(0, 0))
        people_in, people_out = (int(cell.merged[state] or 0) for state in (_PEOPLE_IN, _PEOPLE_OUT))
        people[point] = People(before.people_in + people_in, before.people_out + people_out)

    def listed(self, silent_after: int) -> list[SensorHealth]:
        """Every sensor that is registered for a part of the period, as registered. `silent_after`: in minutes."""
        line = self._period.timeline
        return [
            self._health(sensor, span, silent_after)
            for sensor, span in self._sensors
            if max(span.start, line.start) < min(span.end, line.end)
        ]

    def summary(self, sensors: int) -> SensorStore:
        """The store itself. `sensors`: how many are listed."""
        counters = [of for (source, _), of in self._signals.items() if source == PEOPLE_COUNTS.topic]
        people = People.sum(each for of in counters for each in self._people(of, EVER).values())
        drift, is_high = (people.drift_percent, people.is_drift_high) if people else (None, None)
        return SensorStore(self._store.id, self._store.name, sensors, drift, is_high)

    def _health(self, sensor: Sensor, registered: Span, silent_after: int) -> SensorHealth:
        line, key = self._period.timeline, signal_key(sensor)
        span = _overlap(registered, Span(line.start, line.end))
        signals, measured_by = self._signals.get(key, NO_SIGNALS), _measured_by(sensor)
        expected_spans = self._spans[key] if measured_by != "sensor" else Counter({registered: 1})
        alive = self._alive(signals, span, expected_spans)
        expected = self._expected(expected_spans, registered) if measured_by else {}
        coverage = Fraction(sum(alive.values()), sum(expected.values())) if expected else None
        last = max(
            (window for window, ms in signals.alive.items() if ms and span.start <= window < span.end), default=None
        )
        silent = self._open_seconds(span.start if last is None else last + STEP, span.end)
        is_counter = sensor.source == PEOPLE_COUNTS.topic
        people = self._people(signals, registered) if is_counter else {}
        total = People.sum(people.values())
        return SensorHealth(
            store=self._store.id,
            timezone=self._store.timezone,
            sensor=sensor.id,
            source=sensor.source,
            place=sensor.place or None,
            start=sensor.since,
            end=sensor.until,
            measured_by=measured_by,
            shared=measured_by in ("line", "other_lines") and self._has_others(key, registered),
            state=_state(
                coverage,
                last,
                is_silent=silent > 60 * silent_after,
                is_removed=span.end < line.end and span.end <= self._known_until,
            ),
            last_signal=None if last is None else iso_epoch(last),
            silent_minutes=None if coverage is None else silent // 60,
            coverage_percent=None if coverage is None else float(100 * coverage),
            drift_percent=(total and total.drift_percent) if is_counter else UNSET,
            days=[
                self._day(point, alive, expected, people if is_counter else None) for point in range(len(line.bounds))
            ],
        )

    def _day(
        self, point: int, alive: Mapping[int, int], expected: Mapping[int, int], people: Mapping[int, People] | None
    ) -> SensorDay:
        day = SensorDay(
            day=self._days.day_of(self._period.timeline.bounds[point].start),
            coverage_percent=_percent(alive.get(point, 0), expected.get(point, 0)),
        )
        if people is not None:
            counted = people.get(point)
            day.people_in, day.people_out, day.drift_percent = (
                (*counted, counted.drift_percent) if counted else (None,) * 3
            )
        return day

    def _alive(self, signals: Signals, span: Span, expected: Mapping[Span, int]) -> dict[int, int]:
        """For how long, in milliseconds by point, of windows that are over.

        In each window at most for as long as the sensors that are expected then: a counter without a line may count at
        several lines, and each of them would prove that it was alive.
        """
        found: dict[int, int] = {}
        for window, ms in signals.alive.items():
            if span.start <= window < span.end and self._period.counts_in(window):
                point = self._period.timeline.point_of(window)
                found[point] = found.get(point, 0) + min(ms, expected_ms_at(window, expected))
        return found

    def _expected(self, spans: Mapping[Span, int], registered: Span) -> dict[int, int]:
        """For how long all that are counted together should have been alive while the sensor was; none if not known."""
        if self._period.is_loading:
            return {}
        found: Counter[int] = Counter()
        for span, sensors in spans.items():
            for point, windows in self._windows(_overlap(span, registered)).items():
                found[point] += sensors * windows * STEP_MS
        return {point: ms for point, ms in found.items() if ms}

    def _windows(self, span: Span) -> dict[int, int]:
        if span not in self._counts:
            self._counts[span] = self._period.counts(_overlap(span, Span(span.start, self._period.over)))
        return self._counts[span]

    def _has_others(self, key: SignalKey, registered: Span) -> bool:
        line = self._period.timeline
        here = _overlap(registered, Span(line.start, line.end))
        overlaps = (_overlap(span, here) for span in self._spans[key].elements())
        return sum(span.start < span.end for span in overlaps) > 1

    def _people(self, signals: Signals, registered: Span) -> dict[int, People]:
        """By point, of whole days that are over and in which the sensor was registered."""
        if self._period.is_loading:
            return {}
        bounds = self._period.timeline.bounds
        return {
            point: people
            for point, people in signals.people.items()
            if registered.start <= bounds[point].start and bounds[point].end <= min(registered.end, self._period.over)
        }

    def _open_seconds(self, start: int, end: int) -> int:
        """For how long the store was open, as far as is known; at all times if it registers no opening hours."""
        end = min(end, self._known_until)
        if start >= end:
            return 0
        if not self._store.opening_hours:
            return end - start
        return sum(max(0, min(last, end) - max(first, start)) for first, last in open_periods(self._store, start, end))


def _measured_by(sensor: Sensor) -> MeasuredBy | None:
    if sensor.source == PEOPLE_COUNTS.topic:
        return "line" if sensor.place else "other_lines"
    return "sensor" if sensor.source in WATCHED else None


def _state(coverage: Fraction | None, last: int | None, *, is_silent: bool, is_removed: bool) -> SensorState:
    """Nothing is said of a sensor that was not expected, or only while the store was closed."""
    if coverage is None:
        return "unknown"
    if last is None:
        return "never" if is_silent else "unknown"
    if is_silent and not is_removed:
        return "silent"
    return "ok" if coverage >= ENOUGH else "gaps"


def _overlap(one: Span, other: Span) -> Span:
    return Span(max(one.start, other.start), min(one.end, other.end))


def _percent(part: int, whole: int) -> float | None:
    return float(Fraction(100 * part, whole)) if whole else None


_BEATEN = list(COVERAGE.columns).index("covered_ms")
_COUNTED, _PEOPLE_IN, _PEOPLE_OUT = map(list(TRAFFIC.columns).index, ("covered_ms", "people_in", "people_out"))
