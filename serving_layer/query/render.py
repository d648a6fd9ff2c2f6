"""Stage 5, render: from exact values to the response.

Pure. The only stage that rounds: amounts are written digit by digit from whole minor units and never go through a
float, ratios become the nearest double.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from decimal import MAX_EMAX, MAX_PREC, MIN_EMIN, Decimal
from decimal import Context as DecimalContext
from fractions import Fraction
from typing import NamedTuple, Self

from msgspec import UNSET, UnsetType

from master_dataset.registry.stores import DEFAULT_CURRENCY, currency
from serving_layer.query.aggregate import CURRENCY, QueryStates
from serving_layer.query.evaluate import GroupValues, PointComparison, PointValue, SeriesValues
from serving_layer.query.groups import GroupStates, Totals
from serving_layer.query.periods_compared import periods_compared
from serving_layer.query.resolve import ResolvedQuery, StoreQuery
from serving_layer.responses.encoding import Number, iso_epoch
from serving_layer.responses.metrics import (
    AnsweredRange,
    Context,
    DaysCompared,
    ListItem,
    MetricResponse,
    Point,
    RangeDates,
    Series,
    StoreCounts,
    Value,
)
from serving_layer.store.cells import NOTHING_WAITS, WaitingEvents
from serving_layer.store.snapshot import ReadSnapshot, as_of
from serving_layer.timeline import PointLabel, place_in_week
from views.core.cut import seconds
from views.core.formula import FormulaValue, Item
from views.core.local_time import Span
from views.core.metric import OF_ANSWERS, Metric

NO_COUNTERPART, STORES_DIFFER = "no_counterpart", "stores_differ"
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
        series=[_series(query, snapshot, each, states) for each in values],
        as_of=as_of(snapshot, sum(of.waiting.number for of in stores)),
        answered_range=_answered_range(query),
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


def _series(query: ResolvedQuery, snapshot: ReadSnapshot, values: SeriesValues, states: QueryStates) -> Series:
    of = values.store
    dimensions = dict(values.key.dimensions)
    code = None if states.currencies is None else states.currencies[of.query.store.id]
    digits = currency(dimensions.get(CURRENCY) or code or of.query.store.currency.code).digits
    return Series(
        store=values.key.store,
        currency=code if code and states.currency is None else UNSET,
        timezone=of.query.zone,
        dimensions=dimensions,
        dates=_dates_of_series(query, [of.query]),
        points=list(_points(query, snapshot, values, digits)),
        compared=UNSET
        if of.query.calendar is None
        else periods_compared(of, of.query.calendar.calendar, only_covered=query.only_covered),
    )


def _points(query: ResolvedQuery, snapshot: ReadSnapshot, values: SeriesValues, digits: int) -> Iterator[Point]:
    finality = Finality.of(query, snapshot, values.store.waiting)
    line, labels = values.store.query.timeline, values.store.query.range.labels
    places = values.store.places_in_week
    for number, (label, bound, found) in enumerate(zip(labels, line.bounds, values.points, strict=True)):
        is_final = finality.holds(bound, is_provisional=found.is_provisional)
        point = _point(label, line.starts[number], rendered(found.value, query.metric, digits), is_final=is_final)
        point.flags = found.flags or UNSET
        if values.comparisons is not None:
            _compare(point, found, values.comparisons[number], query.metric, digits)
        if places:
            place_in_week(point, places[number])
        yield point


def _answered_range(query: ResolvedQuery) -> AnsweredRange | UnsetType:
    """The dates that a relative range stands for, if the stores agree on them."""
    if query.asked is None:
        return UNSET
    name = query.asked.name or UNSET
    if len(query.range_dates) != 1:
        return AnsweredRange(name=name)
    [(start, end)] = query.range_dates
    return AnsweredRange(name=name, start=start, end=end)


def _dates_of_series(query: ResolvedQuery, stores: Sequence[StoreQuery]) -> RangeDates | UnsetType:
    """The dates of a series where the stores of the answer do not agree: from the earliest to the latest."""
    if len(query.range_dates) <= 1 or not stores:
        return UNSET
    return RangeDates(min(of.range.first for of in stores), max(of.range.last for of in stores))


def _dates_of_group(query: ResolvedQuery, group: GroupStates) -> RangeDates | UnsetType:
    if len(query.range_dates) <= 1:  # stores are many, and so are series
        return UNSET
    ids = group.stores
    return _dates_of_series(query, [of for of in query.stores if of.store.id in ids])


class Finality(NamedTuple):
    """Which values nothing can change any more that was received so far. A later event still can.

    Attributes:
        until: where the windows end whose events have all been received before the cut, unless they were late.
        is_whole: whether the snapshot lacks nothing.
        waiting: the events that only the next publication will count.
    """

    until: int
    is_whole: bool
    waiting: WaitingEvents

    @classmethod
    def of(cls, query: ResolvedQuery, snapshot: ReadSnapshot, waiting: WaitingEvents = NOTHING_WAITS) -> Self:
        """Of the values of a query, for one store. `waiting`: of this store."""
        settles_after = max(int(view.settles_after.total_seconds()) for view in query.views)
        return cls(seconds(snapshot.pointer.cut) - settles_after, not snapshot.missing, waiting)

    def holds(self, span: Span, *, is_provisional: bool) -> bool:
        """Whether a value of these windows is final. `is_provisional`: speed rows are in it."""
        is_settled = self.is_whole and not is_provisional and span.end <= self.until
        return is_settled and not self.waiting.may_change(span)


def _point(label: PointLabel, start: str, value: Value, *, is_final: bool) -> Point:
    return Point(
        start=start,
        business_date=label.day or UNSET,
        local=label.local or UNSET,
        value=value,
        final=is_final,
    )


def render_groups(totals: Totals, snapshot: ReadSnapshot, values: Iterable[GroupValues]) -> MetricResponse:
    """The response to a request for one metric whose series add up stores.

    Args:
        totals: the groups, and what was counted beside them.
        snapshot: what the answer was computed from.
        values: the series, in the order of the response.
    """
    query, metric, left_out = totals.query, totals.query.metric, totals.left_out
    currencies = {each.key.currency for each in totals.groups if each.key.currency}
    shared = next(iter(currencies)) if len(currencies) == 1 and CURRENCY not in query.by else None
    return MetricResponse(
        metric=metric.id,
        unit=metric.unit,
        grain=query.grain,
        timezone=next(iter(totals.zones)) if len(totals.zones) == 1 else None,
        series=[_group_series(query, snapshot, each, shared) for each in values],
        as_of=as_of(snapshot, totals.waiting),
        answered_range=_answered_range(query),
        currency=shared if metric.unit == "money" else UNSET,
        flags=[flag for flag in metric.flags if flag in OF_ANSWERS] or UNSET,
        event_flags=dict(sorted(totals.event_flags.items())) or UNSET,
        hours="open" if query.only_open else UNSET,
        only_covered=query.only_covered or UNSET,
        compare=query.compare or UNSET,
        change_unit="percent" if query.compare else UNSET,
        partial=(bool(query.compare) and totals.is_partial) or UNSET,
        left_out=UNSET if left_out is None else left_out,
    )


def _group_series(query: ResolvedQuery, snapshot: ReadSnapshot, values: GroupValues, shared: str | None) -> Series:
    group, dimensions = values.group, dict(values.dimensions)
    code = group.key.currency
    digits = currency(dimensions.get(CURRENCY) or code or DEFAULT_CURRENCY.code).digits
    finality, points = Finality.of(query, snapshot), []
    all_stores = len(group.counted) + len(group.missing)
    for number, (at, found) in enumerate(zip(group.ordered, values.points, strict=True)):
        is_final = finality.holds(at.span, is_provisional=found.is_provisional or at.is_waited_for)
        value = rendered(found.value, query.metric, digits)
        point = _point(at.label, iso_epoch(at.span.start), value, is_final=is_final)
        point.flags = found.flags or UNSET
        if values.comparisons is not None:
            _compare(point, found, values.comparisons[number], query.metric, digits)
        if values.shares is not None:
            point.share = _float(values.shares[number])
        if at.in_week:
            place_in_week(point, at.in_week)
        if group.key.store is None and at.stores < all_stores:
            point.stores = at.stores
        points.append(point)
    is_merged = group.key.store is None
    names_group = query.merges_stores and not (values.is_other and not query.by)
    return Series(
        store=UNSET if group.key.store is None else group.key.store,
        group=dict(group.key.groups) if names_group else UNSET,
        currency=code if code and code != shared and CURRENCY not in query.by else UNSET,
        other=values.is_other or UNSET,
        timezone=next(iter(group.zones)) if len(group.zones) == 1 else None,
        dimensions=dimensions,
        dates=_dates_of_group(query, group),
        stores=_store_counts(group) if is_merged else UNSET,
        points=points,
        compared=group.compared or UNSET,
    )


def _store_counts(group: GroupStates) -> StoreCounts:
    return StoreCounts(len(group.counted), len(group.missing), len(group.poor))


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
    if found.stores_differ:
        point.flags = (*value.flags, STORES_DIFFER)


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
        return [_item(item, digits if metric.is_of_money else None) for item in value]
    if metric.unit == "money":
        return money(int(value), digits) if metric.formula.is_sum else float(value / 10**digits)
    return int(value) if metric.unit == "n" else float(value)


def money(minor: int, digits: int) -> int | Decimal:
    """An amount in the major unit, with the currency's digits."""
    return Decimal(minor).scaleb(-digits, _EXACT) if digits else minor


def _item(item: Item, digits: int | None) -> ListItem:
    """`digits`: bounds are money in minor units."""
    fields: dict[str, Number] = {name: _item_number(value) for name, value in item.items() if value is not None}
    if digits is not None:
        fields |= {name: money(int(fields[name]), digits) for name in ("from", "to") if name in fields}
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
