"""Stage 2, fetch: read the cells that a query needs, all from one snapshot.

The only stage that reads data. Cells come merged from both layers; nothing is added up here. Each store is fetched by
a call of its own, so that its cells can be aggregated and released while others are read.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from serving_layer.compare.period import ComparisonPeriod, comparison_period
from serving_layer.products.attribution import AnswerProducts, StoreProducts
from serving_layer.products.dimensions import SKU
from serving_layer.query.context import context_rows
from serving_layer.query.resolve import ResolvedQuery, StoreQuery
from serving_layer.responses.metrics import Context
from serving_layer.store.cells import MergedCells
from serving_layer.store.snapshot import ReadSnapshot
from serving_layer.timeline import Period, zone_named
from views.core import View
from views.core.cut import seconds
from views.core.local_time import STEP, BusinessDays, Span, open_windows, round_down, round_up
from views.core.merge import Cell


@dataclass(frozen=True)
class PeriodData:
    """What was read of a store for one period.

    Attributes:
        period: the windows that count.
        cells: by the name of the view, all cells of the windows read, which are those of `period` or more.
    """

    period: Period
    cells: Mapping[str, Sequence[Cell]]


@dataclass(frozen=True)
class StoreData:
    """What was read of one store.

    Attributes:
        query: the store, and its part of the query.
        until: where the windows end that count: where the query ends or, if it is compared, where the snapshot does.
        now: the period that was asked for.
        comparison: the period that it is compared with; None if nothing is compared, or nothing has a counterpart.
        before: what was read for `comparison`.
        waiting: how many events of both periods only the next publication will count.
        products: what the product master says of the SKUs in the cells, if the query depends on it.
    """

    query: StoreQuery
    until: int
    now: PeriodData
    comparison: ComparisonPeriod | None
    before: PeriodData | None
    waiting: int
    products: StoreProducts = field(default_factory=StoreProducts.without_master)

    @property
    def size(self) -> int:
        """How many cells were read."""
        periods = [each for each in (self.now, self.before) if each]
        return sum(len(cells) for each in periods for cells in each.cells.values())


async def fetch(
    query: ResolvedQuery,
    of: StoreQuery,
    snapshot: ReadSnapshot,
    cells: MergedCells,
    products: AnswerProducts | None = None,
) -> StoreData:
    """Read the cells of one store, of both periods where the query compares.

    Args:
        query: what to read.
        of: the store.
        snapshot: the state of both layers that the answer is computed from.
        cells: the merged cells of both layers.
        products: the products that the answer reads; None if no tenant has loaded any.

    Raises:
        DefinitionNotPublishedError: a view has changed since it was published.
        CellMissingError: the manifest names a cell that is not there.
        CassandraUnavailableError: Cassandra does not answer.
    """
    start, end = of.timeline.start, of.timeline.end
    known_until = seconds(snapshot.as_of_at)
    begun, over = round_up(known_until), round_down(known_until)
    until = end if of.calendar is None else min(end, over)
    loading = snapshot.is_loading
    periods = [replace(_asked_period(query, of, until, begun, over), is_loading=loading)]
    comparison = None
    if of.calendar is not None and start < until:
        comparison = comparison_period(of.range.until(until), of.timeline, of.calendar)
    if comparison is not None:
        periods.append(replace(_earlier_period(query, of, comparison, begun, over), is_loading=loading))
    spans = [_span_read(query, of, period) for period in periods]
    views = {view.name: view for view in (*query.views, *query.proofs)}

    async def read(period: Period, span: Span) -> PeriodData:
        found = await asyncio.gather(*(cells.read(snapshot, view, of.store.id, *span) for view in views.values()))
        return PeriodData(period, dict(zip(views, found, strict=True)))

    waiting, (now, *before) = await asyncio.gather(
        asyncio.gather(*(cells.waiting(snapshot, query.views, of.store.id, *span) for span in _disjoint(spans))),
        asyncio.gather(*map(read, periods, spans)),
    )
    data = StoreData(of, until, now, comparison, before[0] if before else None, sum(waiting))
    if products is None or not query.reads_attributes:
        return data
    skus = {sku for each in (now, *before) for view in query.views for sku in _skus(view, each.cells[view.name])}
    days = BusinessDays.of(of.store, zone_named(of.store.timezone))
    return replace(data, products=await products.of_store(of.store.tenant, days, skus))


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
        finished = frozenset(range(start, until, STEP))
        only = finished if only is None else finished & only
    return Period(of.timeline, begun, over, only)


def _earlier_period(
    query: ResolvedQuery, of: StoreQuery, comparison: ComparisonPeriod, begun: int, over: int
) -> Period:
    """The windows that those are compared with."""
    line = comparison.timeline
    is_open = open_windows(of.store, line.start, line.end) if query.counts_open_windows else comparison.windows
    return Period(line, begun, over, is_open & comparison.windows)


def _span_read(query: ResolvedQuery, of: StoreQuery, period: Period) -> Span:
    """The windows of the period, or whole business days if what was before in the day matters."""
    span = Span(period.timeline.start, period.timeline.end)
    return of.range.days.whole(span) if query.needs_whole_days else span


def _disjoint(spans: Sequence[Span]) -> list[Span]:
    """The same windows in spans that do not overlap, so that no waiting event counts twice."""
    found: list[Span] = []
    for span in sorted(spans):
        if found and span.start < found[-1].end:
            found[-1] = Span(found[-1].start, max(found[-1].end, span.end))
        else:
            found.append(span)
    return found
