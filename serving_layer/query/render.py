"""Stage 5, render: from exact values to the response.

Pure. The only stage that rounds: amounts are written digit by digit from whole minor units and never go through a
float, ratios become the nearest double.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import date
from decimal import MAX_EMAX, MAX_PREC, MIN_EMIN, Decimal
from decimal import Context as DecimalContext
from fractions import Fraction

from msgspec import UNSET

from master_dataset.registry.stores import Store, currency
from serving_layer.query.aggregate import CURRENCY, QueryStates, StoreStates
from serving_layer.query.evaluate import WINDOWS_OF_AN_HOUR, PointComparison, PointValue, SeriesValues
from serving_layer.query.resolve import ResolvedQuery
from serving_layer.query.snapshot import ReadSnapshot, as_of
from serving_layer.query.timeline import iso_epoch
from serving_layer.responses.encoding import Number
from serving_layer.responses.metrics import (
    Compared,
    Context,
    DaysCompared,
    ListItem,
    MetricResponse,
    PeriodCompared,
    Point,
    Series,
    Value,
)
from views.core.cut import seconds
from views.core.formula import FormulaValue, Item
from views.core.local_time import ONE_DAY, STEP, open_windows
from views.core.metric import OF_ANSWERS, Metric

NO_COUNTERPART = "no_counterpart"
_EXACT = DecimalContext(prec=MAX_PREC, Emax=MAX_EMAX, Emin=MIN_EMIN)


def render(
    query: ResolvedQuery,
    snapshot: ReadSnapshot,
    states: QueryStates,
    values: Iterable[SeriesValues],
    context: Context | None,
) -> MetricResponse:
    """The response to a request for one metric.

    Args:
        query: what was asked for.
        snapshot: what the answer was computed from; becomes `as_of`, and says which points are final.
        states: the stores of the answer, and its currency.
        values: the series, in the order of the response.
        context: the context rows; None if none were asked for.
    """
    stores, metric = states.stores, query.metric
    zones = {of.query.zone for of in stores}
    flagged = sum((of.now.event_flags for of in stores), Counter[str]())
    return MetricResponse(
        metric=metric.id,
        unit=metric.unit,
        grain=query.grain,
        timezone=zones.pop() if len(zones) == 1 else None,
        series=[_series(query, snapshot, each, states.currency) for each in values],
        as_of=as_of(snapshot, sum(of.waiting for of in stores)),
        currency=states.currency if metric.unit == "money" else UNSET,
        flags=[flag for flag in metric.flags if flag in OF_ANSWERS] or UNSET,
        event_flags=dict(sorted(flagged.items())) or UNSET,
        hours="open" if query.only_open else UNSET,
        only_covered=query.only_covered or UNSET,
        compare=query.compare or UNSET,
        change_unit="percent" if query.compare else UNSET,
        partial=(bool(query.compare) and any(of.is_partial for of in stores)) or UNSET,
        left_out=UNSET if states.left_out is None else states.left_out,
        context=UNSET if context is None else context,
    )


def _series(query: ResolvedQuery, snapshot: ReadSnapshot, values: SeriesValues, shared: str | None) -> Series:
    """`shared`: the currency of the whole answer, if it has one."""
    of = values.store
    dimensions = dict(values.key.dimensions)
    digits = currency(dimensions.get(CURRENCY) or shared or of.query.store.currency.code).digits
    return Series(
        store=values.key.store,
        timezone=of.query.zone,
        dimensions=dimensions,
        points=list(_points(query, snapshot, values, digits)),
        compared=UNSET if of.query.calendar is None else _compared(of, of.query.calendar.calendar),
    )


def _points(query: ResolvedQuery, snapshot: ReadSnapshot, values: SeriesValues, digits: int) -> Iterator[Point]:
    settled = seconds(snapshot.pointer.cut) - max(int(view.settles_after.total_seconds()) for view in query.views)
    line = values.store.query.timeline
    for number, (start, bound, found) in enumerate(zip(line.starts, line.bounds, values.points, strict=True)):
        is_final = not snapshot.missing and not found.is_provisional and bound.end <= settled
        point = Point(start, rendered(found.value, query.metric, digits), is_final, flags=found.flags or UNSET)
        if values.comparisons is not None:
            _compare(point, found, values.comparisons[number], query.metric, digits)
        if line.labels:
            point.weekday, point.hour, point.hours_present = line.labels[number]
        yield point


def _compare(point: Point, value: PointValue, found: PointComparison, metric: Metric, digits: int) -> None:
    """Add what a point is compared with."""
    point.before = rendered(found.before.value if found.before else None, metric, digits)
    point.change = _float(found.change)
    point.change_points = _float(found.change_points) if metric.unit == "percent" else UNSET
    point.days = UNSET if found.days is None else DaysCompared(*found.days)
    if found.is_partial:
        point.partial = True
    if found.before and found.before.flags:
        point.before_flags = found.before.flags
    if found.lacks_counterpart:
        point.flags = (*value.flags, NO_COUNTERPART)


def _compared(of: StoreStates, calendar: str) -> Compared:
    """The two periods of a comparison: local dates from (inclusive) to (exclusive), how many, and their hours."""
    windows = frozenset(range(of.query.timeline.start, of.until, STEP))
    at = of.query.range
    dates = [day for day, _ in at.days.touched(at.span._replace(end=of.until))]
    before = of.comparison
    return Compared(
        calendar=calendar,
        now=_period_compared(of.query.store, dates, windows),
        before=_period_compared(of.query.store, before.dates, before.windows) if before else None,
        partial=of.is_partial or UNSET,
        until=iso_epoch(of.until) if of.is_partial else UNSET,
    )


def _period_compared(store: Store, dates: Sequence[date], windows: frozenset[int]) -> PeriodCompared | None:
    if not windows:
        return None
    is_open = open_windows(store, min(windows), max(windows) + STEP)
    return PeriodCompared(
        start=dates[0],
        end=dates[-1] + ONE_DAY,
        days=len(dates),
        hours=len(windows) / WINDOWS_OF_AN_HOUR,
        open_hours=len(windows & is_open) / WINDOWS_OF_AN_HOUR,
    )


def rendered(value: FormulaValue, metric: Metric, digits: int) -> Value:
    """A value as the response writes it.

    Args:
        value: exact; money in minor units.
        metric: whose unit it has.
        digits: decimals of the currency. Money is written in the major unit.
    """
    if value is None:
        return None
    if isinstance(value, tuple):
        return [_item(item) for item in value]
    if metric.unit == "money":
        return money(int(value), digits) if metric.formula.is_sum else float(value / 10**digits)
    return int(value) if metric.unit == "n" else float(value)


def money(minor: int, digits: int) -> int | Decimal:
    """An amount in the major unit, with the currency's digits."""
    return Decimal(minor).scaleb(-digits, _EXACT) if digits else minor


def _item(item: Item) -> ListItem:
    fields = {name: _item_number(value) for name, value in item.items() if value is not None}
    end = fields.get("to") if "to" in item else UNSET
    return ListItem(
        start=fields.get("from", UNSET),
        end=end,
        weekday=fields.get("weekday", UNSET),
        hour=fields.get("hour", UNSET),
        count=fields["count"],
        share=fields["share"],
    )


def _item_number(value: int | Fraction) -> Number:
    return float(value) if isinstance(value, Fraction) else value


def _float(value: Fraction | None) -> float | None:
    return None if value is None else float(value)
