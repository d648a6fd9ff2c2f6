"""Stage 3, aggregate: from the cells of windows to states summed per series and point, before any formula is applied.

Pure. A series has a key: its store, and its values of the dimensions that split the answer. States are merged per
(series key, point) by the rule of each column, so nothing that a formula needs is lost by adding up.
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from itertools import compress, repeat
from typing import NamedTuple

from master_dataset.errors import MixedCurrenciesError
from master_dataset.registry.stores import Store
from master_dataset.sources.pos_transactions import POS_TRANSACTIONS
from serving_layer.compare.comparable_stores import low_coverage
from serving_layer.compare.period import ComparisonPeriod
from serving_layer.products.attribution import StoreProducts
from serving_layer.products.dimensions import (
    ALL_PRODUCTS,
    SKU,
    ProductSelection,
    dimension_of,
    is_product_dimension,
)
from serving_layer.query.fetch import PeriodData, StoreData
from serving_layer.query.resolve import ResolvedQuery, StoreQuery
from serving_layer.query.sensor_coverage import SensorCoverage, sensor_sources
from serving_layer.responses.metrics import LeftOut
from serving_layer.store.cells import WaitingEvents
from serving_layer.timeline import Period, WeekPlace
from views.core import View
from views.core.aggregates import Value
from views.core.formula import FormulaValue, Term
from views.core.local_time import STEP, Span, open_spans
from views.core.merge import Cell
from views.core.view import flags_counted
from views.core.windows import Windows

Group = tuple[str | None, ...]
"""Values of the dimensions that split the answer, as far as a view has them."""
Where = tuple[tuple[str, tuple[str, ...]], ...]
"""Dimensions, each with the values that count."""
Renamed = tuple[tuple[str, str], ...]
"""Pairs of a dimension of a view, and the dimension of the answer that it stands for."""

CURRENCY = "currency"
DEVICE_DAYS = "device_days"
OUTSIDE_OPENING_HOURS = "outside_opening_hours"
NO_OPENING_HOURS, NO_SOURCE = "no_opening_hours", "no_source"
_RECEIPTS = "receipts"


class SeriesKey(NamedTuple):
    """What identifies a series. `dimensions`: pairs of name and value, in the order of `by`."""

    store: str
    dimensions: tuple[tuple[str, str | None], ...] = ()


@dataclass
class PointStates:
    """The states of one series at one point: the columns that terms need, merged over the cells of the point."""

    states: list[Value]
    is_provisional: bool
    """Whether speed rows are in it."""


@dataclass
class StateSums:
    """The states of one view, merged per group and point, for all terms that take the same cells.

    Attributes:
        view: where the cells are from.
        terms: those that need the states.
        split: the dimensions of `by` that the view has; a view that lacks one counts in total, in every series.
        where: the cells that count for these terms.
        selection: the products that count, by what the product master says of them.
        is_by_window: points are windows, for terms that go through them in order.
        renamed: pairs of a dimension of the view, and the one of `by` whose values are looked for in it.
        points: by group and point.
        currencies: those of the cells that count.
        has_cells: whether the view has any cells in the windows read, whether or not they count.
    """

    view: View
    terms: tuple[Term, ...]
    split: tuple[str, ...] = ()
    where: Where = ()
    selection: ProductSelection = ALL_PRODUCTS
    is_by_window: bool = False
    renamed: Renamed = ()
    points: dict[Group, dict[int, PointStates]] = field(default_factory=dict)
    currencies: set[str] = field(default_factory=set)
    has_cells: bool = False

    def add(
        self,
        cells: Sequence[Cell],
        point_of: Callable[[int], int],
        only: Windows | None,
        products: StoreProducts,
    ) -> None:
        """Merge cells into their points.

        Args:
            cells: of the view.
            point_of: the point that a window belongs to.
            only: the windows that count; None for all.
            products: what the product master says of their SKUs.
        """
        if not cells:
            return
        self.has_cells = True
        counted = self._counted(cells, only, products)
        picked = [list(self.view.columns).index(name) for name in self.columns]
        for cell, group in zip(counted, self._groups(counted, products), strict=True):
            points = self.points.setdefault(group, {})
            number = point_of(cell.key.window)
            point = points.get(number)
            if point is None:
                points[number] = PointStates([cell.merged[place] for place in picked], cell.speed is not None)
                continue
            point.is_provisional = point.is_provisional or cell.speed is not None
            for column, (merge, place) in enumerate(zip(self._reducers, picked, strict=True)):
                point.states[column] = merge(point.states[column], cell.merged[place])

    def _counted(self, cells: Sequence[Cell], only: Windows | None, products: StoreProducts) -> Sequence[Cell]:
        """The cells that count; notes the currencies of all in the windows that do."""
        dimensions = list(self.view.dimensions)
        if only is not None:
            cells = [cell for cell in cells if cell.key.window in only]
        if CURRENCY in dimensions:
            place = dimensions.index(CURRENCY)
            self.currencies.update(cell.key.dimensions[place] or "" for cell in cells)
        for name, values in self.where:
            place, chosen = dimensions.index(name), frozenset(values)
            cells = [cell for cell in cells if cell.key.dimensions[place] in chosen]
        if self.selection.needs_master:
            skus, windows = self._dimension(SKU, cells), [cell.key.window for cell in cells]
            cells = list(compress(cells, products.selected(self.selection, skus, windows)))
        return cells

    def _groups(self, cells: Sequence[Cell], products: StoreProducts) -> Iterable[Group]:
        """Per cell the values of the dimensions of `split`."""
        columns = []
        for name, own in zip(self.split, self.own_split, strict=True):
            column = self._dimension(own, cells)
            if is_product_dimension(name):
                column = products.column(name, column, [cell.key.window for cell in cells])
            columns.append(column)
        return zip(*columns, strict=True) if columns else repeat((), len(cells))

    def _dimension(self, name: str, cells: Sequence[Cell]) -> list[str | None]:
        place = list(self.view.dimensions).index(name)
        return [cell.key.dimensions[place] for cell in cells]

    def merge(self, other: "StateSums", labels: Sequence[int] | None = None) -> int:
        """Merge the points of other cells of the same view, which stay as they are; how many points are new here.

        Args:
            other: for the same terms.
            labels: what the points of `other` are called here, by their numbers; None: the same.
        """
        new = 0
        self.currencies |= other.currencies
        self.has_cells = self.has_cells or other.has_cells
        for group, points in other.points.items():
            mine = self.points.setdefault(group, {})
            for number, point in points.items():
                label = number if labels is None else labels[number]
                there = mine.get(label)
                if there is None:
                    mine[label] = PointStates(list(point.states), point.is_provisional)
                    new += 1
                else:
                    self.merge_point(there, point)
        return new

    def merge_point(self, into: PointStates, point: PointStates) -> None:
        """Merge the states of one point into those of another."""
        into.is_provisional = into.is_provisional or point.is_provisional
        pairs = zip(self._reducers, into.states, point.states, strict=True)
        into.states = [merge(one, other) for merge, one, other in pairs]

    def at(self, key: SeriesKey) -> Mapping[int, PointStates]:
        """The points that a series takes from this view."""
        values = dict(key.dimensions)
        return self.points.get(tuple(values[name] for name in self.split), {})

    def values(self, point: PointStates | None) -> Mapping[str, FormulaValue]:
        """The value of each term, by its text. Without any cell 0 for a sum, None for a least or greatest."""
        return self._without_cells if point is None else self._values(point.states)

    @cached_property
    def own_split(self) -> tuple[str, ...]:
        """The dimension of the view in which the values of each of `split` are found."""
        own = {name: dimension for dimension, name in self.renamed}
        return tuple(own.get(name) or dimension_of(self.view, name) or name for name in self.split)

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """The states that are merged."""
        return tuple(dict.fromkeys(name for term in self.terms for name in term.columns(self.view)))

    @cached_property
    def _reducers(self) -> list[Callable[[Value, Value], Value]]:
        return [self.view.columns[name].merge for name in self.columns]

    def _values(self, states: Sequence[Value]) -> Mapping[str, FormulaValue]:
        return {
            term.text: term.value(self.view, [states[place] for place in places])
            for term, places in zip(self.terms, self._places, strict=True)
        }

    @cached_property
    def _places(self) -> list[list[int]]:
        """Per term where its columns are among those that are merged."""
        return [[self.columns.index(name) for name in term.columns(self.view)] for term in self.terms]

    @cached_property
    def _without_cells(self) -> Mapping[str, FormulaValue]:
        return self._values([0 if self.view.columns[name].by == "sum" else None for name in self.columns])


@dataclass(frozen=True)
class PeriodStates:
    """The states of one store in one period.

    Attributes:
        period: the windows that count; only the covered ones if that was asked for.
        sums: one per view and set of terms that take the same cells.
        coverage: how long the sensors of the store were alive.
        event_flags: how many events carry each flag.
        sensor_share: the part of the sensor time that was covered, also of windows that do not count because they were
            not; None if nothing is expected.
        uncovered: the points whose windows all do not count because of that.
    """

    period: Period
    sums: Sequence[StateSums]
    coverage: SensorCoverage
    event_flags: Counter[str]
    sensor_share: Fraction | None
    uncovered: frozenset[int] = frozenset()

    def has_sources(self, store: Store) -> bool:
        """Whether the store has the source of every view: a till always, a registered sensor, or any cell.

        Without one nothing is known: a sum is not zero then, and neither is a part of a whole.
        """
        registered = {each.source for each in store.sensors} | {POS_TRANSACTIONS.topic}
        return all(each.has_cells or each.view.source.topic in registered for each in self.sums)


@dataclass(frozen=True)
class StoreStates:
    """The states of one store; for the fields see `StoreData`.

    `spans`: the windows that they are of, in either period, if the store is in a group only then; None for all.
    """

    query: StoreQuery
    until: int
    now: PeriodStates
    comparison: ComparisonPeriod | None
    before: PeriodStates | None
    waiting: WaitingEvents
    spans: Sequence[Span] | None = None

    @cached_property
    def places_in_week(self) -> Sequence[WeekPlace]:
        """Per point its weekday or hour of the week, and how many have begun of these; none at other grains."""
        return self.query.timeline.labels_until(min(self.until, self.now.period.begun))

    @property
    def is_partial(self) -> bool:
        """Whether the period is unfinished, so that both periods stop where the snapshot does."""
        return self.until < self.query.timeline.end

    @property
    def periods(self) -> Sequence[PeriodStates]:
        """Now, and before if there is one."""
        return (self.now,) if self.before is None else (self.now, self.before)

    @property
    def coverage_share(self) -> Fraction | None:
        """The lesser part of the sensor time that was covered in either period; None if no sensor is registered."""
        return min((share for each in self.periods if (share := each.sensor_share) is not None), default=None)

    def series(self, by: Sequence[str]) -> list[SeriesKey]:
        """The keys of its series, in order, also of those that only one period has. One without `by`.

        They are the groups of the views that have all dimensions of `by`.
        """
        if not by:
            return [SeriesKey(self.query.store.id)]
        groups = {
            tuple(dict(zip(sums.split, group, strict=True))[name] for name in by)
            for period in self.periods
            for sums in period.sums
            if set(sums.split) == set(by)
            for group in sums.points
        }
        ordered = sorted(groups, key=lambda group: tuple((value is None, value or "") for value in group))
        return [SeriesKey(self.query.store.id, tuple(zip(by, group, strict=True))) for group in ordered]


@dataclass(frozen=True)
class QueryStates:
    """The states of all stores of the answer.

    Attributes:
        stores: those that are in the answer.
        left_out: those that are not comparable; None if comparable ones were not asked for.
        currencies: of the amounts of each store; None if the answer is split by currency, or has no amounts.
    """

    stores: Sequence[StoreStates]
    left_out: Sequence[LeftOut] | None
    currencies: Mapping[str, str] | None

    @cached_property
    def currency(self) -> str | None:
        """Of every amount, if all have the same."""
        found = set(self.currencies.values()) if self.currencies else ()
        return next(iter(found)) if len(found) == 1 else None


def aggregate(query: ResolvedQuery, data: StoreData, spans: Sequence[Span] | None = None) -> StoreStates:
    """Merge the cells of one store into states per series and point.

    Args:
        query: says which windows and terms count, and how the answer is split.
        data: the cells of both periods.
        spans: the windows that count, in either period; None for all.
    """
    now = _period_states(query, data.query, data.now, spans, data.products)
    before = None if data.before is None else _period_states(query, data.query, data.before, spans, data.products)
    return StoreStates(data.query, data.until, now, data.comparison, before, data.waiting, spans)


def combine(query: ResolvedQuery, stores: Sequence[StoreStates]) -> QueryStates:
    """Put the stores of an answer together, without those whose sensors were alive for too little of the time.

    Args:
        query: says whether comparable stores were asked for.
        stores: their states, in the order of the answer.

    Raises:
        MixedCurrenciesError: a store has amounts of several currencies, and the answer would add them.
    """
    left_out = query.left_out
    if left_out is not None:
        left_out = [*left_out, *(found for of in stores if (found := low_coverage(of.query.store, of.coverage_share)))]
        excluded = {each.store for each in left_out}
        stores = [each for each in stores if each.query.store.id not in excluded]
    codes = {of.query.store.id: store_currency(query, of) for of in stores}
    known = {store: code for store, code in codes.items() if code is not None}
    return QueryStates(stores, left_out, known or None)


def reason_without_value(query: ResolvedQuery, of: StoreQuery, states: PeriodStates) -> str | None:
    """Why no point of a store has a value: what was asked for is not known of it at all. None if it is."""
    if query.counts_open_windows and not of.store.opening_hours:
        return NO_OPENING_HOURS
    counts_sensors = "store.expected_ms" in query.metric.facts
    return None if counts_sensors or states.has_sources(of.store) else NO_SOURCE


def event_flags(store: Store, view: View, cells: Sequence[Cell], counts: Callable[[int], bool]) -> Counter[str]:
    """How many events of a view carry each flag. Empty if the view counts no flags.

    Receipts outside the opening hours are found here and not on arrival, because hours may be registered later.

    Args:
        store: whose opening hours count.
        view: where the cells are from.
        cells: those that were read.
        counts: whether a window counts.
    """
    found = Counter[str]()
    if not cells:
        return found
    flags = flags_counted(view)
    counted = [cell for cell in cells if counts(cell.key.window)] if flags else []
    for flag, place in flags.items():
        found[flag] = sum(cell.merged[place] for cell in counted)  # type: ignore[misc]  # a count is a whole number
    if counted and _RECEIPTS in view.columns and store.opening_hours:
        windows = [cell.key.window for cell in counted]
        spans = open_spans(store.opening, min(windows), max(windows) + STEP)
        starts, place = [span.start for span in spans], list(view.columns).index(_RECEIPTS)
        before = (bisect_right(starts, window) - 1 for window in windows)  # of each the last span that has begun
        is_open = (at >= 0 and window < spans[at].end for at, window in zip(before, windows, strict=True))
        closed = (cell.merged[place] for cell, is_in in zip(counted, is_open, strict=True) if not is_in)
        found[OUTSIDE_OPENING_HOURS] = sum(closed)  # type: ignore[arg-type]  # likewise
    return +found


def _period_states(
    query: ResolvedQuery,
    of: StoreQuery,
    data: PeriodData,
    spans: Sequence[Span] | None,
    products: StoreProducts,
) -> PeriodStates:
    period, sources = data.period, sensor_sources(query.views)
    if spans is not None:
        line = period.timeline
        parts = (Span(max(span.start, line.start), min(span.end, line.end)) for span in spans)
        period = period.keeping(Windows.within(*parts))
    coverage = SensorCoverage(of.store, sources, data.cells, query.proofs)
    sensor_share = coverage.share(period)
    uncovered = frozenset[int]()
    if query.only_covered and sources:
        begun = Span(period.timeline.start, period.begun)
        due = period.counts(begun)
        period = period.keeping(coverage.covered(period))
        left = period.counts(begun)
        uncovered = frozenset(point for point, windows in due.items() if windows and not left.get(point))
    only = period.only
    if only is None and query.needs_whole_days:  # whole days were read, and only the windows asked for count
        only = Windows.within(Span(period.timeline.start, period.timeline.end))
    sums = empty_sums(query)
    for each in sums:
        if each.is_by_window:
            each.add(data.cells[each.view.name], int, None, products)
        else:
            each.add(data.cells[each.view.name], period.timeline.point_of, only, products)
    flags = (event_flags(of.store, view, data.cells[view.name], period.holds) for view in query.views)
    return PeriodStates(period, sums, coverage, sum(flags, Counter()), sensor_share, uncovered)


def empty_sums(query: ResolvedQuery) -> list[StateSums]:
    """One for all terms that take the same cells of a view. Totals of all parts are of all products, too."""
    views = {view.name: view for view in query.views}
    terms: dict[tuple[str, Where, Renamed, bool, bool], list[Term]] = {}
    for term in query.metric.terms.values():
        same_cells = (query.metric.view_of(term), term.where, term.renamed, term.is_total, term.is_sequential)
        terms.setdefault(same_cells, []).append(term)
    found = []
    for (name, where, renamed, is_total, is_by_window), of in terms.items():
        view, selection, hidden = views[name], ALL_PRODUCTS, {own for own, _ in renamed}
        renames = {each for _, each in renamed}
        split = tuple(each for each in query.by if each in renames or dimension_of(view, each) not in {None, *hidden})
        if not is_total and SKU in view.dimensions and SKU not in hidden:
            selection = query.selection
        chosen = ((SKU, selection.skus),) if selection.skus else ()
        split = () if is_total else split
        found.append(StateSums(view, tuple(of), split, (*where, *chosen), selection, is_by_window, renamed))
    return found


def store_currency(query: ResolvedQuery, of: StoreStates) -> str | None:
    """The currency of a store's amounts.

    Args:
        query: says whether there are amounts, and whether a dimension splits them.
        of: the states of the store.

    Returns:
        Its own currency if it has no amounts yet; None if a dimension splits them, or no money is added.

    Raises:
        MixedCurrenciesError: the store has amounts of several currencies.
    """
    if CURRENCY in query.by or not query.metric.is_of_money:
        return None
    own = of.query.store.currency.code
    found = {code for period in of.periods for sums in period.sums for code in sums.currencies} or {own}
    if len(found) > 1:
        message = f"Store `{of.query.store.id}` has amounts in {' and '.join(sorted(found))}."
        raise MixedCurrenciesError(message, do="Add `by=currency`, or leave the store out.")
    return next(iter(found))
