"""Answers about metrics, cells, stores and receipts, as immutable types with the fields of the REST responses.

Numbers are as the API wrote them: `int`, or `Decimal` where there is a decimal point; never a float. Instants are
timezone-aware and in UTC. A field that the API left out is None or empty; fields that a newer API adds are ignored.
"""

from datetime import date, datetime
from decimal import Decimal
from typing import Any, TypedDict

import msgspec

from galatea.client.dataframes import Tabular

Number = int | Decimal


# Metrics


class AsOf(msgspec.Struct, frozen=True, kw_only=True):
    """The data that an answer was computed from.

    Attributes:
        publication: number of the publication that was read.
        cut: batch covers every event received before.
        speed_as_of: speed has read a record that was received then; None if speed was not read or has read nothing.
        waiting_for_batch: events of the range that only the next publication will count; None for several metrics.
        layers: the layers that were read, `batch` and `speed`.
        missing: layers that a partial answer had to do without.
        loading: whether nothing was published yet, so that a value without events is None, not zero.
    """

    publication: int
    cut: datetime
    speed_as_of: datetime | None = None
    waiting_for_batch: int | None = None
    layers: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    loading: bool = False


class ListItem(msgspec.Struct, frozen=True, kw_only=True):
    """An item of a metric whose unit is `list`: a bin, or an hour of the week.

    Attributes:
        start: lower bound of a bin, inclusive; None for an hour of the week.
        end: upper bound of a bin, exclusive; None if the bin is open, and for an hour of the week.
        weekday: ISO weekday, Monday is 1; None for a bin.
        hour: local hour; None for a bin.
        count: how many.
        share: percent of all.
    """

    start: Number | None = msgspec.field(name="from", default=None)
    end: Number | None = msgspec.field(name="to", default=None)
    weekday: Number | None = None
    hour: Number | None = None
    count: Number | None = None
    share: Number | None = None


Value = Number | tuple[ListItem, ...] | None
"""A tuple for metrics whose unit is `list`. None: the value cannot be known, which is not zero."""


class DaysCompared(msgspec.Struct, frozen=True, kw_only=True):
    """How many days a point has (`now`), and how many it is compared with (`before`)."""

    now: int
    before: int


class Point(msgspec.Struct, frozen=True, kw_only=True):
    """One window of a series.

    Attributes:
        start: when the window begins.
        value: in the `unit` of the answer; None if it cannot be known, and `flags` say why.
        final: whether no event that was received so far can still change it.
        local_date: the local business date on which a day or a longer window begins; None at finer grains.
        local: at the grains `15m` and `hour`, the local instant with its offset.
        share: with `share`, the value in percent of the total; None if it is unknown.
        flags: what to know about the value.
        before: with `compare`, the value that it is compared with; None if it is unknown.
        change: with `compare`, the difference to `before` in percent.
        change_points: with `compare`, the difference in percentage points, for metrics in percent.
        attainment: with `compare="target"`, the value in percent of its target; None if it cannot be known.
        before_flags: flags of `before`.
        days: with `compare`, how many days both sides have, if these differ.
        partial: with `compare`, the window is unfinished, so both sides end where the data ends.
        weekday: with the grains `weekday` and `hour_of_week`, the ISO weekday, Monday is 1.
        hour: with the grain `hour_of_week`, the local hour.
        hours_present: with the grain `hour_of_week`, how many such hours the range has.
        days_present: with the grain `weekday`, how many such business days the range has.
    """

    start: datetime
    value: Value
    final: bool
    local_date: date | None = msgspec.field(default=None, name="date")
    local: str | None = None
    share: Number | None = None
    flags: tuple[str, ...] = ()
    before: Value = None
    change: Number | None = None
    change_points: Number | None = None
    attainment: Number | None = None
    before_flags: tuple[str, ...] = ()
    days: DaysCompared | None = None
    partial: bool = False
    weekday: int | None = None
    hour: int | None = None
    hours_present: Number | None = None
    days_present: int | None = None


class PeriodCompared(msgspec.Struct, frozen=True, kw_only=True):
    """One period of a comparison: local dates from `start` (inclusive) to `end` (exclusive), in days and hours."""

    start: date = msgspec.field(name="from")
    end: date = msgspec.field(name="to")
    days: int
    hours: Number
    open_hours: Number


class Compared(msgspec.Struct, frozen=True, kw_only=True):
    """The two periods of a comparison.

    Attributes:
        calendar: how the period before was chosen, such as `previous_week`.
        now: the period of the series; None if nothing of it has a counterpart.
        before: the period that it is compared with; None if nothing has a counterpart.
        partial: whether `now` is unfinished.
        until: where both periods end, if `now` is unfinished.
    """

    calendar: str
    now: PeriodCompared | None
    before: PeriodCompared | None
    partial: bool = False
    until: datetime | None = None


class StoreCounts(msgspec.Struct, frozen=True, kw_only=True):
    """How many stores a series adds up.

    Attributes:
        counted: those whose events are in it.
        missing: those that are not, because they lack the source of the metric, or their opening hours are unknown.
        poor: those counted whose sensors were alive for less than 95 % of the time.
    """

    counted: int
    missing: int
    poor: int


class TargetDays(msgspec.Struct, frozen=True, kw_only=True):
    """Business days of the stores of a series that have a target (`found`), and that have none (`missing`)."""

    found: int
    missing: int


class RangeDates(msgspec.Struct, frozen=True, kw_only=True):
    """The business dates that a range relative to today stands for: from `start` (inclusive) to `end` (exclusive)."""

    start: date = msgspec.field(name="from")
    end: date = msgspec.field(name="to")


class AnsweredRange(msgspec.Struct, frozen=True, kw_only=True):
    """What a range relative to today stands for. `name`: of the range, None for bounds such as `-7d`.

    `start` (inclusive) and `end` (exclusive) are business dates; None if the stores do not agree on them, because in
    some it is tomorrow already: then each series has its own.
    """

    name: str | None = None
    start: date | None = msgspec.field(name="from", default=None)
    end: date | None = msgspec.field(name="to", default=None)


class Series(msgspec.Struct, frozen=True, kw_only=True):
    """The points of one store or of several, and of one combination of dimensions, oldest first.

    Attributes:
        store: id of the store; None if the series adds up stores.
        group: with `by=total` or groups, the value of each group, empty for a total; None for one store.
        currency: of this series, if the answer has several.
        other: whether it holds all that `top` left out.
        timezone: IANA name of the time zone that windows are aligned to; None if the stores have several.
        points: one for each window of the range.
        dimensions: the value of each dimension of `by`; a value is None where events have none.
        title: with `by=sku`, what the SKU is called; None if that is not known.
        title_from: "receipts" if the product master lacks the SKU, and the title is the one that receipts last had;
            None if it is that of the product master.
        category: with `by=sku`, the whole path of its category; None if the product master does not say.
        dates: the business dates of the series, where the stores of the answer do not agree on them.
        stores: how many stores it adds up; None for one store.
        compared: the two periods; None without `compare`, and with `compare="target"`.
        targets: with `compare="target"`, how many business days have a target.
    """

    store: str | None = None
    group: dict[str, str | None] | None = None
    currency: str | None = None
    other: bool = False
    timezone: str | None
    points: tuple[Point, ...]
    stores: StoreCounts | None = None
    dimensions: dict[str, str | None] = {}
    title: str | None = None
    title_from: str | None = None
    category: str | None = None
    dates: RangeDates | None = msgspec.field(default=None, name="range")
    compared: Compared | None = None
    targets: TargetDays | None = None


class LeftOut(msgspec.Struct, frozen=True, kw_only=True):
    """A store that `comp` left out: `reason` is a stable code, `detail` one sentence."""

    store: str
    reason: str
    detail: str


class Holiday(msgspec.Struct, frozen=True, kw_only=True):
    """A public holiday of a store on a local date."""

    store: str
    date: date
    names: tuple[str, ...]


class HolidaysUnknown(msgspec.Struct, frozen=True, kw_only=True):
    """A store whose public holidays are unknown: `reason` is a stable code, `detail` one sentence."""

    store: str
    reason: str
    detail: str


class Holidays(msgspec.Struct, frozen=True, kw_only=True):
    """Public holidays beside the points. `version`: of the library that knows them."""

    version: str
    category: str
    rows: tuple[Holiday, ...]
    unknown: tuple[HolidaysUnknown, ...]


class WeatherUnits(msgspec.Struct, frozen=True, kw_only=True):
    """The units of weather, such as `celsius` and `mm`."""

    temperature: str
    precipitation: str
    wind: str
    cloud: str


class WeatherRow(msgspec.Struct, frozen=True, kw_only=True):
    """Weather that was observed at a store during one point, in `Weather.units`.

    Temperatures, wind and cloud are None if no provider observed them. `observations`: how many the means are over.
    """

    store: str
    start: datetime
    weekday: int | None = None
    hour: int | None = None
    hours_present: Number | None = None
    days_present: int | None = None
    temperature_avg: Number | None
    temperature_min: Number | None
    temperature_max: Number | None
    precipitation: Number
    wind_avg: Number | None
    cloud_avg: Number | None
    providers: tuple[str, ...]
    observations: int
    final: bool


class Weather(msgspec.Struct, frozen=True, kw_only=True):
    """Weather beside the points. `grain`: that of the points, or `hour` where points are finer."""

    grain: str
    units: WeatherUnits
    rows: tuple[WeatherRow, ...]


class Context(TypedDict, total=False):
    """What was asked for with `context`, in that order."""

    holidays: Holidays
    weather: Weather


class Answer(Tabular, msgspec.Struct, frozen=True, kw_only=True):
    """One metric over time.

    Attributes:
        metric: id of the metric.
        unit: `money` (in the major unit of `currency`), `n`, `percent`, `ms`, `list` and so on.
        grain: how long the windows are.
        series: one per store and combination of dimensions.
        as_of: the data that it was computed from.
        range: what a range relative to today stands for; None for other ranges.
        timezone: of all series; None if the stores have several.
        currency: ISO 4217 code; None if the unit is not money, the series are split by currency, or state their own.
        compare: the comparison that was asked for; None without one.
        change_unit: `percent` or `points`, the unit of changes; None without a comparison.
        hours: `all` or `open`.
        only_covered: whether windows without sensor coverage were left out.
        partial: whether the answer is from batch alone, because speed was missing.
        flags: what to know about the whole answer.
        event_flags: how many of the events behind it are unusual, by flag.
        left_out: stores that `comp` left out, and why.
        context: holidays and weather; None if they were not asked for.
        next: the `after` for the next stores; None if these were the last.
    """

    metric: str
    unit: str
    grain: str
    series: tuple[Series, ...]
    as_of: AsOf
    range: AnsweredRange | None = None
    timezone: str | None = None
    currency: str | None = None
    compare: str | None = None
    change_unit: str | None = None
    hours: str = "all"
    only_covered: bool = False
    partial: bool = False
    flags: tuple[str, ...] = ()
    event_flags: dict[str, int] = {}
    left_out: tuple[LeftOut, ...] = ()
    context: Context | None = None
    next: str | None = None

    @property
    def points(self) -> tuple[Point, ...]:
        """The points of all series, one series after the other."""
        return tuple(point for series in self.series for point in series.points)

    @property
    def each(self) -> tuple["Answer", ...]:
        """This answer alone."""
        return (self,)


class Answers(Tabular, msgspec.Struct, frozen=True, kw_only=True):
    """Several metrics, all computed from the same data, in the order they were asked for. `answers["net_sales"]`.

    Attributes:
        answers: one per metric.
        as_of: the data that all of them were computed from.
        next: the `after` for the next stores; None if these were the last.
    """

    answers: tuple[Answer, ...]
    as_of: AsOf
    next: str | None = None

    def __getitem__(self, metric: str) -> Answer:
        """The answer about one metric. KeyError if it was not asked for."""
        by_metric = {answer.metric: answer for answer in self.answers}
        return by_metric[metric]

    @property
    def each(self) -> tuple[Answer, ...]:
        """All answers."""
        return self.answers


class Metric(msgspec.Struct, frozen=True, kw_only=True):
    """A metric that can be asked for.

    `formula`: how it is computed from states of `views`. `flags`: those that its values can have. `grains`: those that
    it has; empty means all. `needs_by`: dimensions that it has to be split by. `note`: its origin.
    """

    metric: str
    name: str
    formula: str
    unit: str
    views: tuple[str, ...]
    flags: tuple[str, ...] = ()
    grains: tuple[str, ...] = ()
    needs_by: tuple[str, ...] = ()
    note: str = ""


class Cell(msgspec.Struct, frozen=True, kw_only=True):
    """The states of one cell by layer. Money is in minor units. None: the layer has no such cell.

    `window`: when the window begins. `dimensions`: a value is None where events have none.
    """

    store: str
    window: datetime
    dimensions: dict[str, str | None]
    batch: dict[str, Any] | None
    speed: dict[str, Any] | None
    merged: dict[str, Any] | None


class Cells(msgspec.Struct, frozen=True, kw_only=True):
    """The cells of one view, and the data that they were read from."""

    view: str
    cells: tuple[Cell, ...]
    as_of: AsOf


# Stores and receipts


class StoreSensor(msgspec.Struct, frozen=True, kw_only=True):
    """A sensor that is expected to report from the day `start` until before the day `end`; None: always."""

    id: str
    source: str
    place: str | None = None
    start: date | None = msgspec.field(name="from", default=None)
    end: date | None = msgspec.field(name="to", default=None)


class StoreZone(msgspec.Struct, frozen=True, kw_only=True):
    """A part of the sales floor. `m2`: its area in square metres; None if unknown."""

    id: str
    m2: Number | None = None


class StoreGroups(msgspec.Struct, frozen=True, kw_only=True):
    """The groups of a store from business day `valid_from` on; None: from its first day on."""

    valid_from: date | None = None
    groups: dict[str, str] = {}


class Store(msgspec.Struct, frozen=True, kw_only=True):
    """A registered store, with the fields of `stores.yaml`. None: not stated there.

    `timezone`: IANA name. `currency`: ISO 4217 code. `opening_hours`: periods such as `09:00-18:00` by weekday.
    `floor_m2`: in square metres. `conversion_target`: in percent. `groups`: the newest version of its groups;
    `group_versions`: all of them, oldest first.
    """

    id: str
    timezone: str
    name: str = ""
    tenant: str | None = None
    currency: str | None = None
    opening_hours: dict[str, tuple[str, ...]] = {}
    floor_m2: Number | None = None
    open_since: date | None = None
    country: str | None = None
    subdivision: str | None = None
    day_starts_at: str | None = None
    closed_on: tuple[date, ...] = ()
    week_starts_on: str | None = None
    comp_start_date: date | None = None
    conversion_target: Number | None = None
    sensors: tuple[StoreSensor, ...] = ()
    zones: tuple[StoreZone, ...] = ()
    groups: dict[str, str] = {}
    group_versions: tuple[StoreGroups, ...] = ()


class SensorDay(msgspec.Struct, frozen=True, kw_only=True):
    """A business day of a sensor. None: not known, or the sensor was not expected, which is not zero.

    `coverage_percent`: of the time that is over. `people_in`, `people_out` and `drift_percent`: of door counters, once
    the day is over.
    """

    day: date
    coverage_percent: Number | None
    people_in: int | None = None
    people_out: int | None = None
    drift_percent: Number | None = None


class SensorHealth(msgspec.Struct, frozen=True, kw_only=True):
    """The health of a registered sensor at the end of the range, or now.

    Attributes:
        store: id of its store.
        timezone: of its store.
        sensor: its id.
        source: what it feeds.
        place: the door line, zone or queue that it watches; None if none in particular.
        start: the first day that it is registered for; None: no bound.
        end: the first day that it is not registered for any more; None: no bound.
        measured_by: what its signals are counted by: `sensor`, `line` or `other_lines`; None: nothing shows whether it
            is alive.
        shared: other sensors are measured by the same, so the numbers are of all of them.
        state: `ok`, `gaps`, `silent`, `never` or `unknown`.
        last_signal: start of the last 15-minute window with a signal; None: there is none in the range.
        silent_minutes: for how long the store has been open since then; None if that is not known.
        coverage_percent: part of the expected time that it was alive; None if it was not expected, or it is not known.
        drift_percent: of a door counter, people in minus people out in percent of people in; None if it is not known.
        days: each business day of the range.
    """

    store: str
    timezone: str
    sensor: str
    source: str
    place: str | None = None
    start: date | None = msgspec.field(name="from", default=None)
    end: date | None = msgspec.field(name="to", default=None)
    measured_by: str | None = None
    shared: bool = False
    state: str
    last_signal: datetime | None
    silent_minutes: int | None
    coverage_percent: Number | None
    drift_percent: Number | None = None
    days: tuple[SensorDay, ...] = ()


class Receipt(msgspec.Struct, frozen=True, kw_only=True):
    """A receipt, and when the platform received it. `receipt`: all its fields, as they were received."""

    happened_at: datetime
    received_at: datetime | None = None
    vendor_fiscal_module: str
    transaction_id: str
    receipt: dict[str, Any]


class LoadedFile(msgspec.Struct, frozen=True, kw_only=True):
    """The products or targets of a tenant after a load. `count`: of all that it has, `version`: which queries read."""

    tenant: str
    version: str
    count: int
    loaded_at: datetime
