"""The answer to a request for an index: what the metric shows, what was to be expected, and how they compare.

Three steps per store: the metric is answered over history and range as one (`observations`), a model is fitted to the
history (`fit`), and each point of the range is compared with what the model expects.
"""

import asyncio
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from decimal import Decimal
from typing import NamedTuple

from msgspec import UNSET

from master_dataset.registry.stores import Store
from serving_layer.errors import TooManyStoresError
from serving_layer.index.model import PERCENT, Conditions, Expectation, Model, Past, weather
from serving_layer.index.request import IndexGrain, IndexRequest
from serving_layer.query.answer import LongAnswerSlot, answer_query, long_answer_slot, windows_read
from serving_layer.query.catalogue import Catalogue
from serving_layer.query.resolve import ResolvedQuery, resolve
from serving_layer.responses.encoding import iso_epoch
from serving_layer.responses.metrics import (
    Holidays,
    IndexFactors,
    IndexHistory,
    IndexPoint,
    IndexResponse,
    IndexSeries,
    Interval,
    MetricResponse,
    Value,
    Weather,
)
from serving_layer.store.cells import MergedCells
from serving_layer.store.snapshot import ReadSnapshot, as_of
from views.core.cut import seconds
from views.core.local_time import Span, clock

MOST_STORES = 20
"""How many stores one answer may hold: weeks of history are read of each."""


async def answer(  # noqa: PLR0913 - what it is answered from
    request: IndexRequest,
    stores: Sequence[Store],
    catalogue: Catalogue,
    snapshot: ReadSnapshot,
    cells: MergedCells,
    *,
    slot: LongAnswerSlot = nullcontext,
) -> IndexResponse:
    """Answer a request for an index. Every value in it is what `/v1/metrics` would show of the same snapshot.

    Args:
        request: as the caller wrote it; its `stores` are not read.
        stores: the stores that the answer is about.
        catalogue: the registered views and metrics.
        snapshot: the state of both layers that the answer is computed from.
        cells: the merged cells of both layers.
        slot: is held while the answer of a store is computed, if that is long.

    Raises:
        TooManyStoresError: more than `MOST_STORES`.
        RangeTooLongError: more days than an index may have.
        GalateaError: what the metric's own answer raises.
    """
    if len(stores) > MOST_STORES:
        message = f"A request for an index can have at most {MOST_STORES} stores; this one has {len(stores)}."
        raise TooManyStoresError(message, do="Name the stores with `store=`, and split them into several requests.")
    ranges = [request.range_of(store) for store in stores]
    series: list[IndexSeries] = []
    waiting, until = 0, seconds(snapshot.as_of_at)
    queries = [
        resolve(request.of_metric(store, index_range), [store], catalogue)
        for store, index_range in zip(stores, ranges, strict=True)
    ]
    cells = await cells.for_views(snapshot, (view for query in queries for view in query.views))
    for store, index_range, query in zip(stores, ranges, queries, strict=True):
        async with long_answer_slot(len(stores) * windows_read(query), slot):
            response = await answer_query(query, snapshot, cells)
        waiting += response.as_of.waiting_for_batch
        points = list(observations(query, request.grain, response))
        fitted = await asyncio.to_thread(fit, points, index_range.span, until)
        series.append(
            IndexSeries(
                store=store.id,
                timezone=query.stores[0].zone,
                unit=response.unit,
                currency=response.currency,
                flags=["holidays_unknown"] if _holidays_of(response).unknown else UNSET,
                history=fitted.history,
                factors=fitted.factors,
                points=fitted.points,
            )
        )
    return IndexResponse(
        metric=request.metric,
        kind="model",
        grain=request.grain,
        history_weeks=request.history_weeks,
        interval_percent=PERCENT,
        series=series,
        as_of=as_of(snapshot, waiting),
    )


class Observation(NamedTuple):
    """A point of the metric and its conditions. `is_final`: neither its value nor its weather can still change."""

    span: Span
    start: str
    value: float | None
    conditions: Conditions
    is_final: bool
    flags: tuple[str, ...]


def observations(query: ResolvedQuery, grain: IndexGrain, response: MetricResponse) -> Iterator[Observation]:
    """The points of an answer about one store, with weather and holidays beside them, in order."""
    [of], [series] = query.stores, response.series
    observed = {row.start: row for row in _weather_of(response).rows}
    names = {row.date: tuple(row.names) for row in _holidays_of(response).rows}
    days = list(of.range.days.touched(of.range.span))
    starts = [day.start for _, day in days]
    for span, point in zip(of.timeline.bounds, series.points, strict=True):
        day = days[bisect_right(starts, span.start) - 1][0]
        hour = clock(of.range.days.zone, span.start).hour if grain == "hour" else None
        row = observed.get(point.start)
        conditions = Conditions(day, (day.isoweekday(), hour), *weather(row, grain), names.get(day, ()))
        is_final = point.final and (row is None or row.final)
        yield Observation(span, point.start, _number(point.value), conditions, is_final, tuple(point.flags or ()))


def _holidays_of(response: MetricResponse) -> Holidays:
    """Always there: the request for the metric asks for them."""
    assert response.context  # noqa: S101
    return response.context["holidays"]


def _weather_of(response: MetricResponse) -> Weather:
    assert response.context  # noqa: S101
    return response.context["weather"]


def _number(value: Value) -> float | None:
    """As JSON would give it back: money is a number of two decimals there, and the nearest double here."""
    if isinstance(value, Decimal):
        return float(value)
    return value if isinstance(value, int | float) else None


UNFINISHED = "unfinished"
DIGITS, EXPECTED_DIGITS = 2, 6
"""Decimals of an index; significant digits of an expected value."""


class Fit(NamedTuple):
    """The index of one store. `history`: None if it has none."""

    history: IndexHistory | None
    factors: IndexFactors
    points: list[IndexPoint]


def fit(points: Sequence[Observation], span: Span, until: int) -> Fit:
    """Fit a model to the history of a store, and compare its points.

    Args:
        points: of history and range, in order.
        span: the range.
        until: what happened later is not known yet, so later points are neither history nor have an index.
    """
    requested = [each for each in points if each.span.end > span.start and each.span.start < span.end]
    before = min(requested[0].span.start, until)
    history = list(_since_first_value([each for each in points if each.span.end <= before]))
    model = Model.of([Past(each.conditions, each.value) for each in history if each.value is not None])
    is_final = all(each.is_final for each in history)
    shown = [_point(each, model.expectation(each.conditions), until, is_final=is_final) for each in requested]
    return Fit(_described(history), model.factors.response(), shown)


def _since_first_value(points: Sequence[Observation]) -> Iterator[Observation]:
    """From the first day with any value: a store that was not open yet did not sell zero."""
    first = next((each.conditions.day for each in points if each.value), None)
    return (each for each in points if first is not None and each.conditions.day >= first)


def _described(history: Sequence[Observation]) -> IndexHistory | None:
    if not history:
        return None
    number = sum(each.value is not None for each in history)
    return IndexHistory(history[0].start, iso_epoch(history[-1].span.end), number)


def _point(of: Observation, expected: Expectation, until: int, *, is_final: bool) -> IndexPoint:
    """`is_final`: of the history."""
    index, interval = None, None
    flags = (*of.flags, *expected.flags)
    if of.span.end > until:
        flags = (*flags, UNFINISHED)
    elif of.value is not None and expected.value is not None:
        exact, error = 100 * of.value / expected.value, expected.error
        index = round(exact, DIGITS)
        interval = Interval(round(exact - error, DIGITS), round(exact + error, DIGITS))
    return IndexPoint(
        start=of.start,
        value=of.value,
        expected=None if expected.value is None else float(f"{expected.value:.{EXPECTED_DIGITS}g}"),
        index=index,
        interval=interval,
        points_used=expected.points_used,
        conditions=of.conditions.response(),
        flags=flags or UNSET,
        final=is_final and of.is_final,
    )
