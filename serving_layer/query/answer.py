"""One answer, from request to response, in five stages.

resolve     MetricRequest -> ResolvedQuery     look up names and times, refuse what cannot be answered
fetch       ResolvedQuery -> StoreData         read the cells of a store; the only stage that reads
aggregate   StoreData     -> QueryStates       merge cells into states per series and point
evaluate    QueryStates   -> SeriesValues      apply the formula: exact values, flags, comparisons
render      SeriesValues  -> MetricResponse    round, and say what the answer was computed from
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, nullcontext
from functools import partial
from itertools import zip_longest
from typing import TypeVar

from msgspec import UNSET, UnsetType

from master_dataset import tracing
from master_dataset.errors import RangeTooLongError
from master_dataset.registry.stores import Store
from serving_layer.off_loop import CELLS_PER_POINT, long_answer, off_loop
from serving_layer.products.attribution import AnswerProducts, ProductLabel
from serving_layer.products.dimensions import SKU
from serving_layer.query.aggregate import CURRENCY, StoreStates, aggregate, combine
from serving_layer.query.catalogue import Catalogue
from serving_layer.query.day_columns import NeedsWindowsError
from serving_layer.query.day_totals import DayTotals, MergedDays, takes_day_cells
from serving_layer.query.evaluate import GroupValues, evaluate, evaluate_groups
from serving_layer.query.fetch import StoreData, fetch, fetch_context
from serving_layer.query.groups import Totals, refuse_many_days, refuse_many_points
from serving_layer.query.ranking import points_written, ranked, ranked_top
from serving_layer.query.render import render, render_groups
from serving_layer.query.resolve import MetricRequest, ResolvedQuery, resolve_all
from serving_layer.query.targets import AnswerTargets, refuse_without_targets
from serving_layer.query.top import TopSeries, top_series
from serving_layer.responses.encoding import encode, encoded
from serving_layer.responses.metrics import MetricResponse, MetricsResponse, Series
from serving_layer.store.cells import STORES_TOGETHER, MergedCells
from serving_layer.store.snapshot import ReadSnapshot, provenance
from views.core import View
from views.core.cut import seconds
from views.core.local_time import ONE_DAY, STEP

Each = TypeVar("Each")
LongAnswerSlot = Callable[[], AbstractAsyncContextManager[None]]
"""Held while a long answer is computed, so that only a few run at once."""

CELLS_TOGETHER = 100_000
"""About so many cells are read together, of at most as many stores as one statement reads speed rows of."""
FIRST_TOGETHER = 4
"""So many stores are read together while it is not known how many cells each has."""
FEW_WINDOWS = 2 * int(ONE_DAY.total_seconds()) // STEP
"""Stores with so few windows, of one cell for each currency, have few cells: as many as possible are read together."""
PIECE = 20_000
"""Cells are added up in pieces of about so many, and other answers have their turn in between."""
GROUPS_AT_ONCE = 2
"""How many of such groups of stores are read side by side."""
LONG = 20_000
"""Answers that read more windows of stores than these wait for their turn: see `FairSemaphore`. About half a second."""
ADDED_UP, SPLIT = 5, 5
"""How many windows cost as much as one if stores are added up; and how many as one of cells by more than currency."""
LABELLED_AT_ONCE = 5_000
"""Series that get their titles before other requests have their turn. Titles of receipts take 64 reads of Cassandra."""
MOST_BYTES = 32 * 1024 * 1024
"""The longest JSON of an answer that is built as a whole: several metrics, cells, or a table. Half a million points."""


async def answer(  # noqa: PLR0913, PLR0917 - the request, and what it is answered from
    requests: Sequence[MetricRequest],
    stores: Sequence[Store],
    catalogue: Catalogue,
    snapshot: ReadSnapshot,
    cells: MergedCells,
    products: AnswerProducts,
    targets: AnswerTargets | None = None,
    *,
    following: str | UnsetType | None,
    slot: LongAnswerSlot = nullcontext,
) -> bytes:
    """Answer a request for one metric, or for several at one read version.

    Args:
        requests: one per metric; they differ in nothing else. All are resolved before anything is read.
        stores: the stores that the answer is about; `stores` of the requests is not read again.
        catalogue: the registered views and metrics.
        snapshot: the state of both layers that all metrics are computed from.
        cells: the merged cells of both layers. Several metrics read speed rows once, so that a quotient fits the sums
            beside it.
        products: the products that the answer reads, of all tenants of its stores.
        targets: likewise; None if this process has none.
        following: the value of `next`: a token, None on the last page, UNSET if the stores are not paged.
        slot: is held while a long answer is computed.

    Returns:
        The JSON of a MetricResponse, or of a MetricsResponse for several metrics.

    Raises:
        UnknownNameError, BadQuestionError, RangeTooLongError, NotAvailableError, CountryUnknownError: see `resolve`.
        UnknownNameError: no product has a category or brand that was asked for.
        DefinitionNotPublishedError, CellMissingError, CassandraUnavailableError: see `fetch`.
        MixedCurrenciesError: see `combine`.
        RangeTooLongError: several metrics together are longer than `MOST_BYTES`.
    """
    with tracing.stages("answer") as stages:
        with stages.stage("resolve"):
            queries = await resolve_all(requests, stores, catalogue)
        return await _answer_resolved(queries, snapshot, cells, products, targets, following, stages, slot)


@asynccontextmanager
async def long_answer_slot(windows: float, slot: LongAnswerSlot) -> AsyncIterator[bool]:
    """Compute an answer inside, once it is its turn.

    Args:
        windows: How many windows of stores it reads.
        slot: Held if these are more than `LONG`.

    Yields:
        Whether it is held.
    """
    if windows <= LONG:
        yield False
        return
    async with slot():
        with long_answer():
            yield True


def windows_read(query: ResolvedQuery, stores: Collection[str] | None = None) -> int:
    """How many windows a query reads of these stores (None: of all), as many as the cells of which cost as much."""
    spans = (of.range.span for of in query.stores if stores is None or of.store.id in stores)
    return (1 if query.compare is None else 2) * windows_weighed((*query.views, *query.proofs), spans)


def windows_weighed(views: Iterable[View], spans: Iterable[tuple[int, int]]) -> int:
    """How many windows these spans have of some views; those of many cells count `SPLIT` times."""
    weight = sum(SPLIT if view.dimensions.keys() - {"currency"} else 1 for view in views)
    return weight * sum((end - start) // STEP for start, end in spans)


async def _answer_resolved(  # noqa: PLR0913, PLR0917 - as `answer`
    queries: Sequence[ResolvedQuery],
    snapshot: ReadSnapshot,
    cells: MergedCells,
    products: AnswerProducts,
    targets: AnswerTargets | None,
    following: str | UnsetType | None,
    stages: tracing.Stages,
    slot: LongAnswerSlot,
) -> bytes:
    for query in queries:
        if query.reads_targets:
            refuse_without_targets(query)
    await products.refuse_unknown(queries[0].selection)
    cells = await cells.for_views(snapshot, (view for query in queries for view in query.views))
    if queries[0].merges_stores or queries[0].ranking:
        responses = await answer_totals(queries, snapshot, cells, products, targets, slot=slot, stages=stages)
        with stages.stage("render"):
            return await _encoded_totals(responses, snapshot, following)
    async with long_answer_slot(sum(map(windows_read, queries)), slot):
        bodies, same_cells = [], cells.for_one_answer() if len(queries) > 1 else cells
        for query in queries:
            response = await answer_query(query, snapshot, same_cells, products, targets, stages=stages)
            response.next = following if len(queries) == 1 else UNSET
            with stages.stage("render"):
                bodies.append(await _encoded(response))
            if len(queries) > 1:
                refuse_long(sum(map(len, bodies)))
    if len(queries) == 1:
        return bodies[0]
    answers = [encoded(body, MetricResponse) for body in bodies]
    return encode(MetricsResponse(answers, provenance(snapshot), following))


async def answer_query(  # noqa: PLR0913 - what it is answered from
    query: ResolvedQuery,
    snapshot: ReadSnapshot,
    cells: MergedCells,
    products: AnswerProducts | None = None,
    targets: AnswerTargets | None = None,
    *,
    is_limited: bool = True,
    stages: tracing.Stages = tracing.NO_STAGES,
) -> MetricResponse:
    """The stages after `resolve`: the response to one resolved query. `products`, `targets`: None if it reads none.

    `is_limited`: refuse what has too many points, because someone waits.
    """
    if is_limited and not query.by:  # then there is a series per store
        refuse_many_points(sum(len(of.range.labels) for of in query.stores))
    found: list[StoreStates] = []
    size = points = 0
    together = Together(query.stores, _first_together(query))
    for some in together:
        with stages.stage("fetch"):
            read = await fetch(query, some, snapshot, cells, products)
        size += together.note([data.size for data in read])
        with stages.stage("aggregate"):  # at once, so that these cells can go
            for cells_of_piece, piece in _pieces(read):
                states, points_of_piece = await off_loop(cells_of_piece, partial(_aggregated, query, piece))
                found += states
                points += points_of_piece
        if is_limited:
            refuse_many_points(points)
    with stages.stage("fetch"):
        context = await fetch_context(query, snapshot, cells)

    def rendered() -> MetricResponse:
        with stages.stage("aggregate"):
            combined = combine(query, found)
        with stages.stage("evaluate"):
            values = evaluate(query, combined)
        with stages.stage("render"):
            return render(query, snapshot, combined, values, context)

    response = await off_loop(size + CELLS_PER_POINT * points, rendered)
    await _label_skus(query, response, products)
    await _add_targets(query, response, snapshot, targets)
    return response


async def answer_totals(  # noqa: PLR0913 - what it is answered from
    queries: Sequence[ResolvedQuery],
    snapshot: ReadSnapshot,
    cells: MergedCells,
    products: AnswerProducts | None = None,
    targets: AnswerTargets | None = None,
    *,
    is_limited: bool = True,
    slot: LongAnswerSlot = nullcontext,
    stages: tracing.Stages = tracing.NO_STAGES,
) -> list[MetricResponse]:
    """The responses to queries of one request whose series add up stores, or are ranked.

    Stores are read a few at a time, each for all metrics from one reading of speed rows, and released once they are
    merged, so that memory does not grow with their number.

    Args:
        queries: What is asked.
        snapshot: As of `answer`.
        cells: Likewise.
        products: Likewise; None if no query reads any.
        targets: Likewise.
        is_limited: Refuse what takes long, because someone waits.
        slot: As of `answer`.
        stages: Where time is noted.

    Raises:
        RangeTooLongError: There are too many points, or days that are read window by window.
        GalateaError: See `answer`.
    """
    totals = [Totals(query) for query in queries]
    by_store = [{of.store.id: of for of in query.stores} for query in queries]
    async with AsyncExitStack() as slots:
        has_slot = await slots.enter_async_context(long_answer_slot(max(map(_foreseen, queries)), slot))
        with stages.stage("fetch"):
            merged = await _merged_days(queries, snapshot, cells)
        done = {of.store.id for days in merged for of in days.totals.stores}
        left = list(dict.fromkeys(store for stores in by_store for store in stores if store not in done))
        with stages.stage("aggregate"):
            tops = [
                await off_loop(days.points, partial(_top, days, into, is_whole=not left))
                for days, into in zip(merged, totals, strict=False)
            ]
        totals[0].refuse_slow(set(left))
        if is_limited:
            refuse_many_days(queries, set(left))
        together, adding = Together(left, min(map(_first_together, queries))), asyncio.Lock()

        async def merge_stores() -> None:
            for some in together:
                same_cells = cells.for_one_answer(keep_merged=True) if len(queries) > 1 else cells
                sizes = Counter[str]()
                for query, stores, into in zip(queries, by_store, totals, strict=True):
                    with stages.stage("fetch"):
                        chosen = [stores[store] for store in some if store in stores]
                        read = await fetch(query, chosen, snapshot, same_cells, products)
                    sizes.update({data.query.store.id: data.size for data in read})
                    async with adding:
                        with stages.stage("aggregate"):
                            for cells_of_piece, piece in _pieces(read):
                                await off_loop(cells_of_piece, partial(_add_all, into, piece))
                together.note(sizes.values())

        if not has_slot:
            of_windows = sum(windows_read(query, set(left)) for query in queries) / ADDED_UP
            await slots.enter_async_context(long_answer_slot(max(of_windows, *(each.points for each in totals)), slot))
        readers = [asyncio.ensure_future(merge_stores()) for _ in range(GROUPS_AT_ONCE)]
        try:
            await asyncio.gather(*readers)
        finally:  # if one fails, the others need not go on
            for reader in readers:
                reader.cancel()
        for into, top in zip_longest(totals, tops):
            refuse_many_points(points_written(into.query, into.groups) if top is None else sum(of.points for of in top))
        responses = [
            await off_loop(CELLS_PER_POINT * each.points, partial(_rendered_groups, each, snapshot, top, stages))
            for each, top in zip_longest(totals, tops, fillvalue=None)
            if each
        ]
        for query, response, into in zip(queries, responses, totals, strict=True):
            await _label_skus(query, response, products)
            await _add_targets(query, response, snapshot, targets, into.missing)
        return responses


def _foreseen(query: ResolvedQuery) -> int:
    """How many windows or points of a total are known of before anything is read: of whole days, one store counts."""
    if not query.stores:
        return 0
    first = query.stores[0]
    of_days = windows_read(query, {first.store.id}) if takes_day_cells(query) else 0
    return max(of_days, len(first.range.labels) * (1 if query.merges_stores else len(query.stores)))


def _aggregated(query: ResolvedQuery, read: Iterable[StoreData]) -> tuple[list[StoreStates], int]:
    """The states of some stores, and how many points their series have."""
    states = [aggregate(query, data) for data in read]
    return states, sum(len(of.query.range.labels) * len(of.series(query.by)) for of in states)


def _first_together(query: ResolvedQuery) -> int:
    """How many stores are read together before it is known how many cells one has."""
    windows = max(((of.range.span.end - of.range.span.start) // STEP for of in query.stores), default=0)
    splits_windows = any(view.dimensions.keys() - {"currency"} for view in (*query.views, *query.proofs))
    has_few = windows <= FEW_WINDOWS and not splits_windows and query.compare is None
    return STORES_TOGETHER if has_few else FIRST_TOGETHER


class Together(Iterator[Sequence[Each]]):
    """Stores in groups that are read together: the more cells they have, the fewer."""

    def __init__(self, stores: Sequence[Each], first: int) -> None:
        """`first`: how many are read together while it is not known how many cells each has."""
        self._stores, self._at, self._most = stores, 0, first

    def __next__(self) -> Sequence[Each]:
        """The next group."""
        some = self._stores[self._at : self._at + self._most]
        self._at += len(some)
        if not some:
            raise StopIteration
        return some

    def note(self, cells: Collection[int]) -> int:
        """How many cells were read of some stores. `cells`: of each; how many stores are next depends on it."""
        if cells:
            self._most = min(STORES_TOGETHER, max(1, CELLS_TOGETHER // max(*cells, 1)))
        return sum(cells)


def _pieces(read: Iterable[StoreData]) -> Iterator[tuple[int, Sequence[StoreData]]]:
    """Stores of which at least `PIECE` cells are read, and how many these are; the last ones may have fewer.

    The points of a range cost time even without any cell.
    """
    piece: list[StoreData] = []
    size = 0
    for data in read:
        piece.append(data)
        size += data.size + CELLS_PER_POINT * len(data.query.range.labels)
        if size >= PIECE:
            yield size, piece
            piece, size = [], 0
    if piece:
        yield size, piece


def _add_all(totals: Totals, read: Iterable[StoreData]) -> None:
    for data in read:
        totals.add(data)


async def _merged_days(
    queries: Sequence[ResolvedQuery], snapshot: ReadSnapshot, cells: MergedCells
) -> list[MergedDays]:
    """The totals from day cells, one per query and all of the same stores; none if the queries need windows."""
    if not all(map(takes_day_cells, queries)):
        return []
    days = [await DayTotals.read(query, snapshot, cells) for query in queries]
    shared = set.intersection(*({of.store.id for of in each.stores} for each in days))
    if not shared:
        return []
    same_cells = cells.for_one_answer() if len(queries) > 1 else cells
    try:
        return [await each.only(shared).merge(snapshot, same_cells) for each in days]
    except NeedsWindowsError:
        return []


async def _add_targets(
    query: ResolvedQuery,
    response: MetricResponse,
    snapshot: ReadSnapshot,
    targets: AnswerTargets | None,
    unknown: Collection[str] = (),
) -> None:
    """`unknown`: the stores that are in no total, because nothing is known of them."""
    if query.reads_targets and targets is not None:
        await targets.attach(query, response, seconds(snapshot.as_of_at), unknown)


async def _label_skus(query: ResolvedQuery, response: MetricResponse, products: AnswerProducts | None) -> None:
    """Say what the SKUs of series are called: only of those shown, however many there are.

    Titles are those of the last day of the range, or where the product master has none, those that receipts last had.
    Where series add up stores of several tenants that call a SKU differently, it has none.
    """
    series = [each for each in response.series if SKU in each.dimensions]
    if products is None or not series:
        return
    day = max(of.range.last for of in query.stores) - ONE_DAY
    of_store = {of.store.id: of.store.tenant for of in query.stores}
    by_tenants: dict[frozenset[str], list[Series]] = {}
    for each in series:
        tenants = frozenset(of_store.values()) if isinstance(each.store, UnsetType) else {of_store[each.store]}
        by_tenants.setdefault(frozenset(tenants), []).append(each)
    for tenants, named in by_tenants.items():
        for start in range(0, len(named), LABELLED_AT_ONCE):
            some = named[start : start + LABELLED_AT_ONCE]
            labels = await products.labels(tenants, {sku for each in some if (sku := each.dimensions[SKU])}, day)
            for each in some:
                label = labels.get(each.dimensions[SKU] or "", ProductLabel())
                each.title, each.category = label.title, label.category
                each.title_from = "receipts" if label.is_seen else UNSET
            await asyncio.sleep(0)  # other requests have their turn


def _top(days: MergedDays, into: Totals, *, is_whole: bool) -> list[TopSeries] | None:
    """Put totals from day cells into those of an answer, or find the top of them if they are `is_whole` of it."""
    query = days.totals.query
    is_apart = CURRENCY in query.by and query.metric.is_of_money  # each currency has its own top
    top = top_series(query, query.ranking, days) if is_whole and query.ranking and not is_apart else None
    if top is None:
        days.add_to(into)
    else:
        days.count_in(into)
    return top


def _rendered_groups(
    totals: Totals, snapshot: ReadSnapshot, top: Sequence[TopSeries] | None, stages: tracing.Stages
) -> MetricResponse:
    with stages.stage("evaluate"):
        series = _series(totals, top)
    with stages.stage("render"):
        return render_groups(totals, snapshot, series)


def _series(totals: Totals, top: Sequence[TopSeries] | None) -> Iterable[GroupValues]:
    query = totals.query
    if query.ranking and top is not None:
        return ranked_top(query, query.ranking, top)
    return ranked(query, query.ranking, totals.groups) if query.ranking else evaluate_groups(query, totals.groups)


async def _encoded_totals(
    responses: Sequence[MetricResponse], snapshot: ReadSnapshot, following: str | UnsetType | None
) -> bytes:
    if len(responses) == 1:
        responses[0].next = following
        return await _encoded(responses[0])
    bodies = [encoded(await _encoded(each), MetricResponse) for each in responses]
    body = encode(MetricsResponse(bodies, provenance(snapshot), following))
    refuse_long(len(body))
    return body


async def _encoded(response: MetricResponse) -> bytes:
    """The JSON of a response, series by series if it is long: nothing else runs while one object is encoded."""

    def encoded_by_series() -> bytes:
        response.series = [encoded(encode(each), Series) for each in response.series]
        return encode(response)

    points = sum(len(each.points) for each in response.series)
    if points <= PIECE:
        return await off_loop(points, partial(encode, response))
    with long_answer():
        return await off_loop(points, encoded_by_series)


def refuse_long(
    length: int,
    do: str = "Use a coarser `grain`, a shorter range, fewer metrics, or a smaller `limit`.",
) -> None:
    """Raise RangeTooLongError if an answer of so many bytes is longer than may be built as a whole."""
    if length > MOST_BYTES:
        raise RangeTooLongError(f"The answer is longer than {MOST_BYTES // 2**20} MiB as JSON.", do=do)
