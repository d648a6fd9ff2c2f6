"""Stage 2, fetch: read the cells that a query needs, all from one snapshot.

The only stage that reads data. Cells come merged from both layers; nothing is added up here. Stores are fetched a few
at a time, so that their cells can be aggregated and released while others are read.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from serving_layer.compare.period import ComparisonPeriod, comparison_until
from serving_layer.off_loop import off_loop
from serving_layer.products.attribution import AnswerProducts, StoreProducts
from serving_layer.products.dimensions import SKU
from serving_layer.query.context import context_rows
from serving_layer.query.resolve import ResolvedQuery, StoreQuery
from serving_layer.responses.metrics import Context
from serving_layer.store.cells import MergedCells, WaitingEvents
from serving_layer.store.snapshot import ReadSnapshot
from serving_layer.timeline import Period, zone_named
from views.core import View
from views.core.cut import seconds
from views.core.local_time import STEP, BusinessDays, Span, disjoint, round_down, round_up
from views.core.merge import Cell
from views.core.windows import Windows, open_windows


@dataclass(frozen=True)
class PeriodData:
    """What was read of a store for one period.

    Attributes:
        period: the windows that count.
        cells: by the name of the view, all cells of the windows read, which are those of `period` or more.
    """

    period: Period
    cells: Mapping[str, Sequence[Cell]]


WINDOWS_PER_CELL = 10
"""Chosen windows that take as much memory as one cell."""


@dataclass(frozen=True)
class StoreData:
    """What was read of one store.

    Attributes:
        query: the store, and its part of the query.
        until: where the windows end that count: where the query ends or, if it is compared, where the snapshot does.
        now: the period that was asked for.
        comparison: the period that it is compared with; None if nothing is compared, or nothing has a counterpart.
        before: what was read for `comparison`.
        waiting: the events of both periods that only the next publication will count.
        products: what the product master says of the SKUs in the cells, if the query depends on it.
    """

    query: StoreQuery
    until: int
    now: PeriodData
    comparison: ComparisonPeriod | None
    before: PeriodData | None
    waiting: WaitingEvents
    products: StoreProducts

    @property
    def size(self) -> int:
        """How many cells were read; windows that were chosen one by one take memory, too."""
        periods = [each for each in (self.now, self.before) if each]
        windows = sum(len(each.period.only or ()) for each in periods)
        return sum(len(cells) for each in periods for cells in each.cells.values()) + windows // WINDOWS_PER_CELL


@dataclass(frozen=True)
class _Periods:
    """The periods of one store of a query.

    Attributes:
        until: see `StoreData`.
        comparison: likewise.
        periods: now, and before if there is a comparison.
        spans: the windows that are read for each.
    """

    until: int
    comparison: ComparisonPeriod | None
    periods: Sequence[Period]
    spans: Sequence[Span]


async def fetch(
    query: ResolvedQuery,
    stores: Sequence[StoreQuery],
    snapshot: ReadSnapshot,
    cells: MergedCells,
    products: AnswerProducts | None = None,
) -> list[StoreData]:
    """Read the cells of some stores, of both periods where the query compares.

    Args:
        query: what to read.
        stores: different ones.
        snapshot: the state of both layers that the answer is computed from.
        cells: the merged cells of both layers.
        products: the products that the answer reads; None if no tenant has loaded any.

    Raises:
        DefinitionNotPublishedError: a view has changed since it was published.
        CellMissingError: the manifest names a cell that is not there.
        CassandraUnavailableError: Cassandra does not answer.
    """
    periods = await off_loop(_windows_chosen(query, stores), partial(_periods_of, query, stores, snapshot))
    spans = {store: each.spans for store, each in periods.items()}
    views = {view.name: view for view in (*query.views, *query.proofs)}
    waiting, found = await asyncio.gather(
        cells.waiting(snapshot, query.views, {store: disjoint(own) for store, own in spans.items()}),
        asyncio.gather(*(cells.read(snapshot, view, spans) for view in views.values())),
    )

    def data_of(of: StoreQuery) -> StoreData:
        at, own = periods[of.store.id], [each[of.store.id] for each in found]
        now, *before = (
            PeriodData(period, dict(zip(views, parts, strict=True)))
            for period, parts in zip(at.periods, zip(*own, strict=True), strict=True)
        )
        earlier = before[0] if before else None
        own_waiting = waiting[of.store.id]
        if query.needs_whole_days:  # what happens early in a day changes later windows
            whole_days = disjoint(map(of.range.days.whole, own_waiting.touched))
            own_waiting = WaitingEvents(own_waiting.number, whole_days)
        return StoreData(of, at.until, now, at.comparison, earlier, own_waiting, no_products)

    no_products = StoreProducts.without_master()
    read = list(map(data_of, stores))
    if products is None or not query.reads_attributes:
        return read
    return [await _with_products(query, data, products) for data in read]


def _windows_chosen(query: ResolvedQuery, stores: Sequence[StoreQuery]) -> int:
    """How many windows are chosen one by one, each of which takes about as long as a cell."""
    if query.compare is None and not query.counts_open_windows:
        return 0
    return sum((of.range.span.end - of.range.span.start) // STEP for of in stores)


def _periods_of(query: ResolvedQuery, stores: Sequence[StoreQuery], snapshot: ReadSnapshot) -> Mapping[str, _Periods]:
    """The periods by store. Stores whose days are alike have the same range, and share them unless hours count."""
    if query.counts_open_windows:
        return {of.store.id: _periods(query, of, snapshot) for of in stores}
    alike: dict[tuple[int, ...], _Periods] = {}
    found = {}
    for of in stores:
        key = id(of.timeline), id(of.range), id(of.calendar)  # of objects that `stores` holds
        if key not in alike:
            alike[key] = _periods(query, of, snapshot)
        found[of.store.id] = alike[key]
    return found


def _periods(query: ResolvedQuery, of: StoreQuery, snapshot: ReadSnapshot) -> _Periods:
    start, end = of.timeline.start, of.timeline.end
    known_until = seconds(snapshot.as_of_at)
    begun, over = round_up(known_until), round_down(known_until)
    until = end if of.calendar is None else min(end, over)
    loading = snapshot.is_loading
    periods = [replace(_asked_period(query, of, until, begun, over), is_loading=loading)]
    comparison = None
    if of.calendar is not None and start < until:
        comparison = comparison_until(of.range, until, of.calendar)
    if comparison is not None:
        periods.append(replace(_earlier_period(query, of, comparison, begun, over), is_loading=loading))
    return _Periods(until, comparison, periods, [_span_read(query, of, period) for period in periods])


async def _with_products(query: ResolvedQuery, data: StoreData, products: AnswerProducts) -> StoreData:
    store, periods = data.query.store, [each for each in (data.now, data.before) if each]
    skus = {sku for each in periods for view in query.views for sku in _skus(view, each.cells[view.name])}
    days = BusinessDays.of(store, zone_named(store.timezone))
    return replace(data, products=await products.of_store(store.tenant, days, skus))


def _skus(view: View, cells: Sequence[Cell]) -> Iterable[str | None]:
    if SKU not in view.dimensions:
        return ()
    place = list(view.dimensions).index(SKU)
    return (cell.key.dimensions[place] for cell in cells)


async def fetch_context(query: ResolvedQuery, snapshot: ReadSnapshot, cells: MergedCells) -> Context | None:
    """Read the context rows of all stores; None if none were asked for. Arguments and errors as `fetch`."""
    return await context_rows(query, snapshot, cells) if query.context else None


def _asked_period(query: ResolvedQuery, of: StoreQuery, until: int, begun: int, over: int) -> Period:
    """The windows that were asked for, as far as they lie before `until`."""
    start, end = of.timeline.start, of.timeline.end
    only = open_windows(of.store, start, end) if query.counts_open_windows else None
    if until < end:
        finished = Windows.within(Span(start, until))
        only = finished if only is None else finished & only
    return Period(of.timeline, begun, over, only)


def _earlier_period(
    query: ResolvedQuery, of: StoreQuery, comparison: ComparisonPeriod, begun: int, over: int
) -> Period:
    """The windows that those are compared with."""
    line = comparison.timeline
    only = comparison.windows
    if query.counts_open_windows:
        only &= open_windows(of.store, line.start, line.end)
    return Period(line, begun, over, only)


def _span_read(query: ResolvedQuery, of: StoreQuery, period: Period) -> Span:
    """The windows of the period, or whole business days if what was before in the day matters."""
    span = Span(period.timeline.start, period.timeline.end)
    return of.range.days.whole(span) if query.needs_whole_days else span
