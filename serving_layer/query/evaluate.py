"""Stage 4, evaluate: from summed states to the exact value of every point, its flags, and its comparison.

Pure. The formula is applied to states that are summed already: a ratio is the ratio of sums, never a mean of ratios.
Values are fractions; nothing is rounded here.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import NamedTuple

from master_dataset.registry.stores import Store
from serving_layer.compare.comparable_stores import ENOUGH
from serving_layer.query.aggregate import PeriodStates, PointStates, QueryStates, SeriesKey, StateSums, StoreStates
from serving_layer.query.resolve import ResolvedQuery, StoreQuery
from serving_layer.query.sensor_coverage import HALF
from serving_layer.query.window_terms import DRIFT_HIGH, TermValue, term_values
from views.core.formula import FormulaValue
from views.core.local_time import STEP, Span

NO_OPENING_HOURS, NO_SOURCE, LOW_COVERAGE, MASKED, DEVICE_DAYS = (
    "no_opening_hours",
    "no_source",
    "low_coverage",
    "masked",
    "device_days",
)
WINDOWS_OF_AN_HOUR = 3600 // STEP
STEP_MS = STEP * 1000


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
    """

    before: PointValue | None
    change: Fraction | None
    change_points: Fraction | None
    is_partial: bool
    days: tuple[int, int] | None
    lacks_counterpart: bool


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


class _Inputs(NamedTuple):
    """What the formula gets at one point. `has_cells`: whether any cell is there."""

    values: dict[str, FormulaValue]
    flags: tuple[str, ...]
    has_cells: bool
    is_provisional: bool


class _PeriodEvaluator:
    """Evaluates series of one store in one period."""

    def __init__(self, query: ResolvedQuery, of: StoreQuery, states: PeriodStates) -> None:
        self._query, self._of, self._states = query, of, states
        self._metric = query.metric
        self._facts = _StoreFacts(of.store, states, self._metric.facts)
        self._reason_for_null = self._why_null()
        is_covered = LOW_COVERAGE in self._metric.flags and states.coverage.is_expected
        self._covered = states.coverage.shares(states.period) if is_covered else {}

    def points(self, key: SeriesKey) -> list[PointValue]:
        """The values of one series, in the order of the points of the query."""
        return [self._point(number, inputs) for number, inputs in enumerate(self._inputs(key))]

    def _point(self, number: int, inputs: _Inputs) -> PointValue:
        if self._reason_for_null:
            return PointValue(None, (self._reason_for_null,), inputs.is_provisional)
        value, flags = self._metric.value(inputs.values)
        if not self._metric.formula.is_sum and not inputs.has_cells:
            value = None
        flags = tuple(flag for flag in (*flags, *inputs.flags) if flag != DRIFT_HIGH or self._is_over(number))
        if DEVICE_DAYS in self._metric.flags and self._has_several_days(number):
            flags += (DEVICE_DAYS,)
        covered = self._covered.get(number, ENOUGH)
        if covered < ENOUGH:
            flags += (LOW_COVERAGE,)
        if covered < HALF:
            value, flags = None, (*flags, MASKED)
        return PointValue(value, flags, inputs.is_provisional)

    def _inputs(self, key: SeriesKey) -> Iterator[_Inputs]:
        sums = [(each, each.at(key)) for each in self._states.sums if not each.is_by_window]
        in_order = {
            term.text: term_values(term, each.at(key), self._states.period, self._of.range.days)
            for each in self._states.sums
            if each.is_by_window
            for term in each.terms
        }
        for number in range(len(self._of.timeline.bounds)):
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
            tuple(flag for found in known for flag in found.flags),
            bool(there or known),
            any(each.is_provisional for each in there) or any(each.is_provisional for each in known),
        )

    def _why_null(self) -> str | None:
        """Why no point has a value: what was asked for is not known of this store at all."""
        if self._query.only_open and not self._of.store.opening_hours:
            return NO_OPENING_HOURS
        counts_sensors = "store.expected_ms" in self._metric.facts
        return None if counts_sensors or self._states.has_sources(self._of.store) else NO_SOURCE

    def _is_over(self, number: int) -> bool:
        """Whether the point is, so that nobody should be inside; what it is compared with always is."""
        period = self._states.period
        return period.timeline is not self._of.timeline or self._of.timeline.bounds[number].end <= period.over

    def _has_several_days(self, number: int) -> bool:
        bound, days = self._of.timeline.bounds[number], self._of.range.days
        return days.day_of(bound.start) != days.day_of(bound.end - STEP)


class _StoreFacts:
    """What a formula may take from the store itself: what the registry says of it, and how much time counts."""

    def __init__(self, store: Store, states: PeriodStates, names: frozenset[str]) -> None:
        """`names`: the facts that the formula needs; nothing else is counted."""
        period, self._names = states.period, names
        self._constant = {
            "store.floor_m2": _fraction(store.floor_m2),
            "store.conversion_target": _fraction(store.conversion_target),
        }
        begun = Span(period.timeline.start, min(period.timeline.end, period.begun))
        counts_open = "store.open_hours" in names and period.only is not None
        self._open = period.counts() if counts_open else {}
        self._selected = period.counts(begun) if "store.selected_ms" in names else {}
        self._expected = states.coverage.expected_ms(period) if "store.expected_ms" in names else {}

    def at(self, number: int) -> dict[str, FormulaValue]:
        """The facts at one point."""
        counted = {
            "store.open_hours": Fraction(self._open.get(number, 0), WINDOWS_OF_AN_HOUR),
            "store.selected_ms": Fraction(self._selected.get(number, 0) * STEP_MS),
            "store.expected_ms": Fraction(self._expected.get(number, 0)),
        }
        return {name: value for name, value in (self._constant | counted).items() if name in self._names}


def _fraction(number: Decimal | int | None) -> Fraction | None:
    return None if number is None else Fraction(str(number))
