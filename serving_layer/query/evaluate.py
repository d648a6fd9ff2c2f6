"""Stage 4, evaluate: from summed states to the exact value of every point, its flags, and its comparison.

Pure. The formula is applied to states that are summed already: a ratio is the ratio of sums, never a mean of ratios.
Values are fractions; nothing is rounded here.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

from serving_layer.compare.comparable_stores import ENOUGH
from serving_layer.query.aggregate import (
    DEVICE_DAYS,
    Group,
    PeriodStates,
    PointStates,
    QueryStates,
    SeriesKey,
    StateSums,
    StoreStates,
    reason_without_value,
)
from serving_layer.query.groups import Covered, GroupStates, PeriodTotals, merged_states
from serving_layer.query.resolve import ResolvedQuery, StoreQuery
from serving_layer.query.sensor_coverage import HALF
from serving_layer.query.store_facts import StoreFacts, SummedFacts
from serving_layer.query.window_terms import DRIFT_HIGH, TermValue, term_values
from views.core.formula import FormulaValue
from views.core.local_time import STEP
from views.core.metric import MASKED, Metric

LOW_COVERAGE, LOADING = "low_coverage", "loading"


class PointValue(NamedTuple):
    """The value of one point, money in minor units. `is_provisional`: speed rows are in it."""

    value: FormulaValue
    flags: tuple[str, ...]
    is_provisional: bool


class PointComparison(NamedTuple):
    """What one point is compared with, and by how much it changed.

    Whether the point is final does not depend on it: a late event of the earlier period is too old for the speed layer,
    so it waits for the next publication.

    Attributes:
        before: the earlier value; None if the point has no counterpart, or has not begun.
        change: in percent of the earlier value; None if it cannot be known.
        change_points: in percentage points; None if it cannot be known, or the metric is no percentage.
        is_partial: the point is unfinished.
        days: how many days the point has, and how many it is compared with, where these differ.
        lacks_counterpart: the point has begun, and there is nothing to compare it with.
        stores_differ: the periods are not of the same stores, so there is no change.
    """

    before: PointValue | None
    change: Fraction | None
    change_points: Fraction | None
    is_partial: bool
    days: tuple[int, int] | None
    lacks_counterpart: bool
    stores_differ: bool = False


@dataclass(frozen=True)
class SeriesValues:
    """The values of one series, one per point of the timeline of its store.

    Attributes:
        key: identifies the series.
        store: the states that the values are computed from.
        points: the values.
        comparisons: one per point; None if nothing is compared.
    """

    key: SeriesKey
    store: StoreStates
    points: list[PointValue]
    comparisons: list[PointComparison] | None


def evaluate(query: ResolvedQuery, states: QueryStates) -> Iterator[SeriesValues]:
    """Apply the formula of the metric to every point of every series, one series at a time.

    Args:
        query: says which metric, and whether it is compared.
        states: summed per series and point.

    Yields:
        The values of each series, by store and then by dimensions.
    """
    for of in states.stores:
        now = _PeriodEvaluator(query, of.query, of.now)
        before = None if of.before is None else _PeriodEvaluator(query, of.query, of.before)
        for key in of.series(query.by):
            points = now.points(key)
            earlier = [] if before is None else before.points(key)
            comparisons = list(_compared(query, of, points, earlier)) if query.compare else None
            yield SeriesValues(key, of, points, comparisons)


def evaluate_places(
    query: ResolvedQuery, of: StoreStates, places: Mapping[SeriesKey, Sequence[int]]
) -> Iterator[tuple[SeriesKey, list[PointValue]]]:
    """Apply the formula at some points of some series of one store: the values that `evaluate` gives there.

    Args:
        query: says which metric.
        of: the states of the store.
        places: by series the places of the points that are needed.
    """
    evaluator = _PeriodEvaluator(query, of.query, of.now)
    for key, numbers in places.items():
        yield key, evaluator.points(key, numbers)


def change(now: Fraction | None, before: Fraction | None) -> Fraction | None:
    """(now - before) / abs(before), in percent; None if either is not known, or nothing was there before."""
    if now is None or not before:
        return None
    return 100 * (now - before) / abs(before)


def change_points(now: Fraction | None, before: Fraction | None) -> Fraction | None:
    """How many points lie between percentages, now - before; None if either is not known."""
    return None if now is None or before is None else now - before


def _compared(
    query: ResolvedQuery, of: StoreStates, points: list[PointValue], earlier: list[PointValue]
) -> Iterator[PointComparison]:
    there = of.comparison.points if of.comparison else frozenset()
    lengths = of.comparison.lengths if of.comparison else {}
    for number, (point, bound) in enumerate(zip(points, of.query.timeline.bounds, strict=True)):
        before = earlier[number] if number in there else None
        values = _number(point), _number(before)
        yield PointComparison(
            before=before,
            change=change(*values),
            change_points=change_points(*values) if query.metric.unit == "percent" else None,
            is_partial=bound.end > of.until,
            days=lengths.get(number),
            lacks_counterpart=before is None and bound.start < of.until,
        )


def _number(point: PointValue | None) -> Fraction | None:
    return point.value if point and isinstance(point.value, Fraction) else None


NOT_COVERED = Covered(alive=0, expected=1)
"""Of a point of which no window counts, because no sensor was alive for long enough."""


class _Inputs(NamedTuple):
    """What the formula gets at one point. `has_cells`: whether any cell is there. `is_loading`: see `Period`."""

    values: dict[str, FormulaValue]
    flags: tuple[str, ...]
    has_cells: bool
    is_provisional: bool
    is_loading: bool


class _Time(NamedTuple):
    """Where a point lies.

    Attributes:
        has_begun: whether it has begun, so that a sum without events is zero.
        is_over: whether it is over, so that nobody should be inside.
        has_several_days: whether devices may count on several days.
    """

    has_begun: bool
    is_over: bool
    has_several_days: bool


def _point_value(metric: Metric, inputs: _Inputs, covered: Fraction | None, time: _Time) -> PointValue:
    """The value of one point.

    Args:
        metric: the metric.
        inputs: what its formula gets.
        covered: the part of the sensor time that was covered; None if it does not matter.
        time: where the point lies.
    """
    value, flags = metric.value(inputs.values)
    if not inputs.has_cells and (inputs.is_loading or not metric.formula.is_sum or not time.has_begun):
        value = None
        flags = (*flags, LOADING) if inputs.is_loading else flags
    flags = tuple(flag for flag in (*flags, *inputs.flags) if flag != DRIFT_HIGH or time.is_over)
    if DEVICE_DAYS in metric.flags and time.has_several_days:
        flags += (DEVICE_DAYS,)
    if covered is not None and covered < ENOUGH:
        flags += (LOW_COVERAGE,)
        if covered < HALF:
            value, flags = None, (*flags, MASKED)
    return PointValue(value, flags, inputs.is_provisional)


class _PeriodEvaluator:
    """Evaluates series of one store in one period."""

    def __init__(self, query: ResolvedQuery, of: StoreQuery, states: PeriodStates) -> None:
        self._query, self._of, self._states = query, of, states
        self._metric = query.metric
        self._facts = StoreFacts(of.store, states, self._metric.facts)
        self._reason_for_null = reason_without_value(query, of, states)
        is_covered = LOW_COVERAGE in self._metric.flags and states.coverage.is_expected
        self._covered = states.coverage.shares(states.period) if is_covered else {}

    def points(self, key: SeriesKey, numbers: Sequence[int] | None = None) -> list[PointValue]:
        """The values of one series at some points, by their places; None: at all points of the query, in order."""
        chosen = range(len(self._of.timeline.bounds)) if numbers is None else numbers
        found = self._inputs(key, chosen)
        return [self._point(number, inputs) for number, inputs in zip(chosen, found, strict=True)]

    def _point(self, number: int, inputs: _Inputs) -> PointValue:
        if self._reason_for_null:
            return PointValue(None, (self._reason_for_null,), inputs.is_provisional)
        return _point_value(
            self._metric,
            inputs,
            NOT_COVERED.share if number in self._states.uncovered else self._covered.get(number),
            self._time(number),
        )

    def _inputs(self, key: SeriesKey, numbers: Sequence[int]) -> Iterator[_Inputs]:
        sums = [(each, each.at(key)) for each in self._states.sums if not each.is_by_window]
        in_order = {
            term.text: term_values(term, each.at(key), self._states.period, self._of.range.days)
            for each in self._states.sums
            if each.is_by_window
            for term in each.terms
        }
        for number in numbers:
            points = [(each, at.get(number)) for each, at in sums]
            terms = {text: found.get(number) for text, found in in_order.items()}
            yield self._inputs_at(number, points, terms)

    def _inputs_at(
        self, number: int, points: list[tuple[StateSums, PointStates | None]], terms: Mapping[str, TermValue | None]
    ) -> _Inputs:
        values = self._facts.at(number)
        for sums, point in points:
            values |= sums.values(point)
        values |= {text: found.value if found else None for text, found in terms.items()}
        known = [found for found in terms.values() if found]
        there = [point for _, point in points if point]
        return _Inputs(
            values,
            (*self._facts.flags, *(flag for found in known for flag in found.flags)),
            bool(there or known),
            any(each.is_provisional for each in there) or any(each.is_provisional for each in known),
            self._states.period.is_loading,
        )

    def _time(self, number: int) -> _Time:
        """Where a point lies; what it is compared with is always over."""
        period, bound = self._states.period, self._of.timeline.bounds[number]
        is_before = period.timeline is not self._of.timeline
        has_begun, is_over = is_before or bound.start < period.begun, is_before or bound.end <= period.over
        return _Time(has_begun, is_over, self._has_several_days(number))

    def _has_several_days(self, number: int) -> bool:
        if DEVICE_DAYS not in self._metric.flags:
            return False
        bound, days = self._of.timeline.bounds[number], self._of.range.days
        return days.day_of(bound.start) != days.day_of(bound.end - STEP)


@dataclass(frozen=True)
class GroupValues:
    """The values of one series of a group of stores, one per point of the group.

    Attributes:
        group: the states that the values are computed from.
        dimensions: pairs of name and value, in the order of `by`.
        points: the values.
        comparisons: one per point; None if nothing is compared.
        shares: in percent of the total, one per point; None if they were not asked for.
        is_other: the series holds all that `top` leaves out.
    """

    group: GroupStates
    dimensions: tuple[tuple[str, str | None], ...]
    points: list[PointValue]
    comparisons: list[PointComparison] | None
    shares: list[Fraction | None] | None = None
    is_other: bool = False


def evaluate_groups(query: ResolvedQuery, groups: Iterable[GroupStates]) -> Iterator[GroupValues]:
    """Apply the formula of the metric to every point of every series of groups of stores.

    Args:
        query: says which metric, and whether it is compared.
        groups: states merged over stores.

    Yields:
        The values of each series, by group and then by dimensions.
    """
    for group in groups:
        for values in group.series(query.by):
            dimensions = tuple(zip(query.by, values, strict=True))
            yield GroupValues(group, dimensions, *group_points(query, group, [values]))


def group_points(
    query: ResolvedQuery, group: GroupStates, chosen: Sequence[Group]
) -> tuple[list[PointValue], list[PointComparison] | None]:
    """The values of one series of a group, and their comparisons.

    Args:
        query: says which metric, and whether it is compared.
        group: its states.
        chosen: the values of dimensions that the series adds up; one, or what `top` left out.
    """
    now = _GroupEvaluator(query, group, group.now, chosen)
    points = [now.at(point.label.number) for point in group.ordered]
    if not query.compare:
        return points, None
    before, comparisons = _GroupEvaluator(query, group, group.before, chosen), []
    for point, value in zip(group.ordered, points, strict=True):
        earlier = before.at(point.label.number) if point.has_counterpart else None
        differs = earlier is not None and point.stores_differ and group.key.store is None
        values = _number(value), _number(None if differs else earlier)
        comparison = PointComparison(
            before=earlier,
            change=change(*values),
            change_points=change_points(*values) if query.metric.unit == "percent" else None,
            is_partial=point.span.end > group.now.over,
            days=point.lengths,
            lacks_counterpart=earlier is None and point.span.start < group.now.over,
            stores_differ=differs,
        )
        comparisons.append(comparison)
    return points, comparisons


def whole_values(query: ResolvedQuery, group: GroupStates, chosen: Group) -> tuple[Fraction | None, Fraction | None]:
    """The value of a series over the whole range, now and before.

    None if it is not known; before also if nothing is compared, or the periods are not of the same stores.
    """
    now = _number(_GroupEvaluator(query, group, group.now, [chosen]).whole())
    is_compared = query.compare and not group.apart
    before = _GroupEvaluator(query, group, group.before, [chosen]).whole() if is_compared else None
    return now, _number(before)


class _GroupEvaluator:
    """Evaluates one series of a group in one period."""

    def __init__(self, query: ResolvedQuery, group: GroupStates, period: PeriodTotals, chosen: Sequence[Group]) -> None:
        self._metric, self._group, self._period = query.metric, group, period
        self._counted = group.counted if period is group.now else group.before_counted
        self._sums = [(sums, _selected(sums, query.by, chosen)) for sums in period.sums]
        self._has_no_sum = bool(self._metric.needs_by) and len(chosen) > 1

    def at(self, number: int) -> PointValue:
        """The value of the point whose label has this number."""
        group, period = self._group, self._period
        inputs = self._inputs([(sums, at.get(number)) for sums, at in self._sums], period.facts.get(number))
        point = group.points[number]
        if period is group.now and point.missing == point.stores:  # other stores of the group have no such point
            return PointValue(None, (min(group.reasons),), inputs.is_provisional)
        is_before = period is group.before
        has_begun, is_over = is_before or point.span.start < period.begun, is_before or point.span.end <= period.over
        covered = period.covered.get(number) if period.counts.get(number, True) else NOT_COVERED
        return self._value(inputs, covered, _Time(has_begun, is_over, point.has_several_days))

    def whole(self) -> PointValue:
        """The value over all points."""
        points = [(sums, merged_states(sums, at.values())) for sums, at in self._sums]
        inputs = self._inputs(points, self._period.facts_of_all)
        counts = any(self._period.counts.values()) or not self._period.counts
        covered = self._period.covered_of_all if counts else NOT_COVERED
        return self._value(inputs, covered, _Time(has_begun=True, is_over=True, has_several_days=True))

    def _value(self, inputs: _Inputs, covered: Covered | None, time: _Time) -> PointValue:
        if not self._counted and self._group.reasons:
            return PointValue(None, (min(self._group.reasons),), inputs.is_provisional)
        if self._has_no_sum:
            return PointValue(None, (), inputs.is_provisional)
        share = covered.share if covered else None
        return _point_value(self._metric, inputs, share, time)

    def _inputs(self, points: list[tuple[StateSums, PointStates | None]], facts: SummedFacts | None) -> _Inputs:
        facts = facts or SummedFacts()
        values = facts.values(self._metric.facts)
        for sums, point in points:
            values |= sums.values(point)
        there = [point for _, point in points if point]
        is_provisional = any(each.is_provisional for each in there)
        return _Inputs(values, facts.flags, bool(there), is_provisional, self._period.is_loading)


def _selected(sums: StateSums, by: Sequence[str], chosen: Sequence[Group]) -> Mapping[int, PointStates]:
    """The points that a series takes from a view: of all the values of dimensions, each that the view has once."""
    places = [list(by).index(name) for name in sums.split]
    found = [sums.points.get(group, {}) for group in {tuple(values[place] for place in places) for values in chosen}]
    if len(found) == 1:
        return found[0]
    numbers = {number for at in found for number in at}
    merged = {number: merged_states(sums, (at[number] for at in found if number in at)) for number in numbers}
    return {number: point for number, point in merged.items() if point}
