"""Metrics over time, the list of metrics, and what every answer says of the data that it was computed from.

The cells of a view with the states of each layer.

A metric beside what a model expected of it.
"""

from collections.abc import Mapping, Sequence
from datetime import date
from typing import Literal, TypedDict

from msgspec import UNSET, Struct, UnsetType, field

from serving_layer.responses.encoding import Instant, Number


class Provenance(Struct):
    """The data that an answer was computed from, whatever range it is about.

    `publication` and its `cut`: batch covers every event received before. `speed_as_of`: speed has read a record that
    was received then; null if it has read none. `layers`: those that were read. `missing`: those that a partial answer
    had to do without; absent if there are none. `loading`: nothing was published yet, so a value without events is
    null, not zero; absent once something was.
    """

    publication: int
    cut: Instant
    speed_as_of: Instant | None
    layers: Sequence[str]
    missing: Sequence[str] | UnsetType = UNSET
    loading: bool | UnsetType = UNSET


class AsOf(Struct):
    """The data that an answer was computed from.

    `publication` and its `cut`: batch covers every event received before. `speed_as_of`: speed has read a record that
    was received then; null if it has read none. `waiting_for_batch`: events of the answer's range that only the next
    publication will count. `layers`: those that were read. `missing`: those that a partial answer had to do without;
    absent if there are none. `loading`: nothing was published yet, so a value without events is null, not zero; absent
    once something was.
    """

    publication: int
    cut: Instant
    speed_as_of: Instant | None
    waiting_for_batch: int
    layers: Sequence[str]
    missing: Sequence[str] | UnsetType = UNSET
    loading: bool | UnsetType = UNSET


class ListItem(Struct, kw_only=True):
    """An item of a value that is a list: a bin `from` (inclusive) `to` (exclusive, null: open), or an hour of the week.

    `share`: percent of all.
    """

    start: Number | UnsetType = field(default=UNSET, name="from")
    end: Number | UnsetType | None = field(default=UNSET, name="to")
    weekday: Number | UnsetType = UNSET
    hour: Number | UnsetType = UNSET
    count: Number
    share: Number


Value = Number | Sequence[ListItem] | None


class DaysCompared(Struct):
    """How many days a point has, and how many it is compared with, where these differ."""

    now: int
    before: int


class Point(Struct, kw_only=True, gc=False):  # half a million in an answer, and none refers to itself
    """One point of a series. `final`: no event that was received so far can still change it.

    `date`: the local business date on which the day, week, month or year begins, or the range of a `total`. `local`:
    when a finer point begins, with the offset of the store; without it if the stores of the series have several.
    `stores`: how many stores the point adds up, where these are fewer than those of its series.
    `share`: with `share=true`, the value in percent of the total.
    `value`: null if it cannot be known, which is not zero; nor is that of a point that has not begun, unless it has
    events already. `flags`: what to know about the value. With `compare`: `before`, the value that it is compared with,
    or with `compare=target` what was to be reached; `change` in percent; `attainment`, the value in percent of its
    target; `change_points` where the metric is a percentage; `partial` if the point is unfinished. At the grain
    `hour_of_week`: `weekday` (ISO), `hour`, and how many such hours of the range have begun in `hours_present`; at
    `weekday`: `weekday`, and how many such business days in `days_present`.
    """

    start: Instant
    business_date: date | UnsetType = field(default=UNSET, name="date")
    local: str | UnsetType = UNSET
    value: Value
    final: bool
    stores: int | UnsetType = UNSET
    share: float | UnsetType | None = UNSET
    before: Value | UnsetType = UNSET
    change: float | UnsetType | None = UNSET
    change_points: float | UnsetType | None = UNSET
    attainment: float | UnsetType | None = UNSET
    partial: bool | UnsetType = UNSET
    days: DaysCompared | UnsetType = UNSET
    before_flags: Sequence[str] | UnsetType = UNSET
    flags: Sequence[str] | UnsetType = UNSET
    weekday: int | UnsetType = UNSET
    hour: int | UnsetType = UNSET
    hours_present: float | UnsetType = UNSET
    days_present: int | UnsetType = UNSET


class PeriodCompared(Struct):
    """Local dates `from` (inclusive) `to` (exclusive), how many days and hours, and how many of them are open."""

    start: date = field(name="from")
    end: date = field(name="to")
    days: int
    hours: float
    open_hours: float


class Compared(Struct):
    """The two periods of a comparison. `before` is null if nothing has a counterpart.

    `partial` and `until` are there if the period of now is unfinished.
    """

    calendar: str
    now: PeriodCompared | None
    before: PeriodCompared | None
    partial: bool | UnsetType = UNSET
    until: Instant | UnsetType = UNSET


class StoreCounts(Struct):
    """How many stores a series adds up.

    `counted`: those whose events are in it. `missing`: those that are not, because they lack the source of the metric,
    or their opening hours are unknown where only those count. `poor`: those counted whose sensors were alive for less
    than 95 % of the time.
    """

    counted: int
    missing: int
    poor: int


class TargetDays(Struct):
    """Business days of the stores of a series that have a target (`found`), and that have none (`missing`)."""

    found: int
    missing: int


class RangeDates(Struct):
    """The business dates `from` (inclusive) `to` (exclusive) that a relative range stands for."""

    start: date = field(name="from")
    end: date = field(name="to")


class AnsweredRange(Struct, kw_only=True):
    """What a relative range stands for now. `name`: absent if bounds were asked for, such as `from=-7d`.

    `from` (inclusive) and `to` (exclusive) are business dates; absent if the stores do not agree on them, because in
    some it is tomorrow already: then each series has its own.
    """

    name: str | UnsetType = UNSET
    start: date | UnsetType = field(default=UNSET, name="from")
    end: date | UnsetType = field(default=UNSET, name="to")


class Series(Struct, kw_only=True):
    """The points of one store or of several, and of one combination of `dimensions`.

    `store`: absent if the series adds up stores. `group`: with `by=total` or groups, the value of each group that was
    asked for (null: the stores are in none), and empty for a total. `currency`: of this series, if the answer has
    several. `other`: the series holds all that `top` left out. `timezone`: null if the stores have several. `title` and
    `category` (the whole path): with `by=sku`, what the product master says of it; null if it says nothing.
    `title_from`: `receipts` if the product master does not have the SKU, and the title is the one that receipts last
    had for it. `range`:
    the business dates of the series, where the stores of the answer do not agree on them.
    """

    store: str | UnsetType = UNSET
    group: Mapping[str, str | None] | UnsetType = UNSET
    currency: str | UnsetType = UNSET
    other: bool | UnsetType = UNSET
    timezone: str | None
    dimensions: Mapping[str, str | None]
    title: str | UnsetType | None = UNSET
    title_from: Literal["receipts"] | UnsetType = UNSET
    category: str | UnsetType | None = UNSET
    dates: RangeDates | UnsetType = field(default=UNSET, name="range")
    stores: StoreCounts | UnsetType = UNSET
    points: Sequence[Point]
    compared: Compared | UnsetType = UNSET
    targets: TargetDays | UnsetType = UNSET


class LeftOut(Struct, frozen=True):
    """A store that is not comparable, and so not in the answer. `reason` is a stable code, `detail` one sentence."""

    store: str
    reason: str
    detail: str


class Holiday(Struct):
    """A public holiday of a store on a local date."""

    store: str
    date: date
    names: Sequence[str]


class HolidaysUnknown(Struct):
    """A store whose public holidays are unknown. `reason` is a stable code, `detail` one sentence."""

    store: str
    reason: str
    detail: str


class Holidays(Struct):
    """Public holidays beside the points. `version`: of the library `holidays`."""

    version: str
    category: str
    rows: Sequence[Holiday]
    unknown: Sequence[HolidaysUnknown]


class WeatherUnits(Struct):
    """The units of weather."""

    temperature: str
    precipitation: str
    wind: str
    cloud: str


class WeatherRow(Struct, kw_only=True):
    """Weather that was observed at a store during one point. `providers`: who observed it.

    Means are over `observations`, whose number is given. `final`: nothing can change it any more.
    """

    store: str
    start: Instant
    weekday: int | UnsetType = UNSET
    hour: int | UnsetType = UNSET
    hours_present: float | UnsetType = UNSET
    days_present: int | UnsetType = UNSET
    temperature_avg: float | None
    temperature_min: float | None
    temperature_max: float | None
    precipitation: float
    wind_avg: float | None
    cloud_avg: float | None
    providers: Sequence[str]
    observations: int
    final: bool


class Weather(Struct):
    """Weather beside the points; hourly where the points are finer."""

    grain: str
    units: WeatherUnits
    rows: Sequence[WeatherRow]


class Context(TypedDict, total=False):
    """What was asked for with `context`, in the order in which it was asked for."""

    holidays: Holidays
    weather: Weather


class MetricResponse(Struct):
    """One metric over time, a series per store and combination of dimensions.

    `timezone`: null if the stores have several. `range`: the dates of a range that is relative to today. `currency`: of
    every amount; null if the series are split by currency, or state their own.
    `flags` hold for the whole answer. `event_flags`: how many of the events are odd, by flag. `left_out`: with
    `comp=true`, the stores that are not comparable. `next`: where stores are paged, the `after` of the next page, null
    on the last.
    """

    metric: str
    unit: str
    grain: str
    timezone: str | None
    series: Sequence[Series]
    as_of: AsOf
    answered_range: AnsweredRange | UnsetType = field(default=UNSET, name="range")
    currency: str | UnsetType | None = UNSET
    flags: Sequence[str] | UnsetType = UNSET
    event_flags: Mapping[str, int] | UnsetType = UNSET
    hours: str | UnsetType = UNSET
    only_covered: bool | UnsetType = UNSET
    compare: str | UnsetType = UNSET
    change_unit: str | UnsetType = UNSET
    partial: bool | UnsetType = UNSET
    left_out: Sequence[LeftOut] | UnsetType = UNSET
    context: Context | UnsetType = UNSET
    next: str | UnsetType | None = UNSET


class MetricsResponse(Struct):
    """Several metrics, all of one publication and one reading of speed. `next` as in an answer about one metric."""

    answers: Sequence[MetricResponse]
    as_of: Provenance
    next: str | UnsetType | None = UNSET


class ListedMetric(Struct):
    """A metric that can be asked for. `views`: what it is computed from. `grains`: those it has; empty means all.

    `needs_by`: dimensions that it has to be split by.
    """

    metric: str
    name: str
    formula: str
    unit: str
    views: Sequence[str]
    flags: Sequence[str]
    grains: Sequence[str]
    needs_by: Sequence[str]
    note: str


class MetricList(Struct):
    """Every metric."""

    metrics: Sequence[ListedMetric]


StateValue = int | str | Mapping[str, int | str | Sequence[int | str | None] | None] | None
"""A whole number, a sketch as text, or an object for a composite state: `sum` and `n`, or `counts`, `min` and `max`."""
States = Mapping[str, StateValue]


class CellStates(Struct):
    """The states of one store, window and combination of dimensions, by layer. Null: the layer has no such cell.

    Money is in minor units.
    """

    store: str
    window: Instant
    dimensions: Mapping[str, str | None]
    batch: States | None
    speed: States | None
    merged: States


class CellsResponse(Struct):
    """The cells of a view, by store, window and dimensions."""

    view: str
    cells: Sequence[CellStates]
    as_of: AsOf


class Interval(Struct):
    """Where the index of an ordinary point lies in `interval_percent` of all cases."""

    low: float
    high: float


class IndexConditions(Struct):
    """The conditions of a point; null if nothing was observed. `temperature`: a band of degrees Celsius."""

    temperature: str | None
    rain: bool | None
    holidays: Sequence[str]


class IndexPoint(Struct, kw_only=True):
    """`value` of the metric, `expected` by the model, and `index`: 100 x value / expected.

    `index` and `interval` are null, and a flag says why, where there is too little history. `points_used`: of the same
    hour of the week in the history.
    """

    start: Instant
    value: Number | None
    expected: float | None
    index: float | None
    interval: Interval | None
    points_used: int
    conditions: IndexConditions
    flags: Sequence[str] | UnsetType = UNSET
    final: bool


class IndexHistory(Struct):
    """The history that the model was fitted to, and how many points with a value it has."""

    start: Instant = field(name="from")
    end: Instant = field(name="to")
    points: int


class IndexFactors(Struct):
    """What the base of an hour of the week is multiplied by, by band of temperature, and `wet` or `dry`."""

    temperature: Mapping[str, float]
    rain: Mapping[str, float]


class IndexSeries(Struct, kw_only=True):
    """The points of one store. `history`: null if the store has none."""

    store: str
    timezone: str
    unit: str
    currency: str | UnsetType | None = UNSET
    flags: Sequence[str] | UnsetType = UNSET
    history: IndexHistory | None
    factors: IndexFactors
    points: Sequence[IndexPoint]


class IndexResponse(Struct):
    """A metric beside what a model expected, a series per store."""

    metric: str
    kind: str
    grain: str
    history_weeks: int
    interval_percent: int
    series: Sequence[IndexSeries]
    as_of: AsOf
