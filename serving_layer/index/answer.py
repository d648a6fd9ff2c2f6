"""What the metric's own answer shows: every point with the conditions under which it came about.

The index of one store: its history, the factors found in it, and the points asked for.

An index over time: what the metric's own answer says, what was to be expected, and how one stands to the other.
"""

import asyncio
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import NamedTuple

from msgspec import UNSET

from master_dataset.registry.stores import Store
from serving_layer.errors import TooManyStoresError
from serving_layer.index.model import PERCENT, Conditions, Expectation, Model, Past, weather
from serving_layer.index.request import IndexGrain, IndexRequest
from serving_layer.query import metric_answer
from serving_layer.query.catalogue import Catalogue
from serving_layer.query.questions import resolve
from serving_layer.query.resolved_query import ResolvedQuery
from serving_layer.query.snapshot import ReadSnapshot, as_of
from serving_layer.query.timeline import iso_epoch
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
from views.core.cut import seconds
from views.core.local_time import Span, clock


class Seen(NamedTuple):
    """`value`: as the metric shows it. `is_final`: neither it nor its weather can still change."""

    span: Span
    start: str
    value: float | None
    conditions: Conditions
    is_final: bool
    flags: tuple[str, ...]


def seen(asked: ResolvedQuery, grain: IndexGrain, response: MetricResponse) -> Iterator[Seen]:
    """The points of an answer about one store, with weather and holidays beside them, in order."""
    [of], [series] = asked.stores, response.series
    observed = {row.start: row for row in _weather_of(response).rows}
    names = {row.date: tuple(row.names) for row in holidays_of(response).rows}
    days = list(of.at.days.touched(of.at.span))
    starts = [day.start for _, day in days]
    for span, point in zip(of.timeline.bounds, series.points, strict=True):
        day = days[bisect_right(starts, span.start) - 1][0]
        hour = clock(of.at.days.zone, span.start).hour if grain == "hour" else None
        row = observed.get(point.start)
        conditions = Conditions(day, (day.isoweekday(), hour), *weather(row, grain), names.get(day, ()))
        is_final = point.final and (row is None or row.final)
        yield Seen(span, point.start, _number(point.value), conditions, is_final, tuple(point.flags or ()))


def holidays_of(response: MetricResponse) -> Holidays:
    """Those that stand beside the points: the model always asks for them."""
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
    """What is said of one store. `history`: None if it has none."""

    history: IndexHistory | None
    factors: IndexFactors
    points: list[IndexPoint]


def fit(points: Sequence[Seen], asked: Span, until: int) -> Fit:
    """`until`: what happened later is not known yet, so that such points are neither history nor have an index."""
    wanted = [each for each in points if each.span.end > asked.start and each.span.start < asked.end]
    before = min(wanted[0].span.start, until)
    history = list(_begun([each for each in points if each.span.end <= before]))
    model = Model.of([Past(each.conditions, each.value) for each in history if each.value is not None])
    is_final = all(each.is_final for each in history)
    shown = [_point(each, model.expectation(each.conditions), until, is_final=is_final) for each in wanted]
    return Fit(_described(history), model.factors.response(), shown)


def _begun(points: Sequence[Seen]) -> Iterator[Seen]:
    """From the first day on which there was anything: a shop that was not there yet did not sell nothing."""
    first = next((each.conditions.day for each in points if each.value), None)
    return (each for each in points if first is not None and each.conditions.day >= first)


def _described(history: Sequence[Seen]) -> IndexHistory | None:
    if not history:
        return None
    number = sum(each.value is not None for each in history)
    return IndexHistory(history[0].start, iso_epoch(history[-1].span.end), number)


def _point(of: Seen, expected: Expectation, until: int, *, is_final: bool) -> IndexPoint:
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


MOST_STORES = 20
"""How many one answer may hold: weeks of history are read of each."""


async def answer(
    ask: IndexRequest, stores: Sequence[Store], catalogue: Catalogue, basis: ReadSnapshot, cells: MergedCells
) -> IndexResponse:
    """The body of the answer. Every value in it is what `/v1/metrics` would say on the same basis."""
    if len(stores) > MOST_STORES:
        message = f"{len(stores)} stores in one index are more than {MOST_STORES}."
        raise TooManyStoresError(message, do="Name the stores with `store=`, in several questions.")
    reaches = [ask.reach(store) for store in stores]
    told: list[IndexSeries] = []
    waiting, until = 0, seconds(basis.as_of_at)
    for store, reach in zip(stores, reaches, strict=True):
        asked = resolve(ask.of_metric(store, reach), [store], catalogue)
        response = await metric_answer.answer(asked, basis, cells)
        waiting += response.as_of.waiting_for_batch
        points = list(seen(asked, ask.grain, response))
        fitted = await asyncio.to_thread(fit, points, reach.asked, until)
        told.append(
            IndexSeries(
                store=store.id,
                timezone=asked.stores[0].zone,
                unit=response.unit,
                currency=response.currency,
                flags=["holidays_unknown"] if holidays_of(response).unknown else UNSET,
                history=fitted.history,
                factors=fitted.factors,
                points=fitted.points,
            )
        )
    return IndexResponse(
        metric=ask.metric,
        kind="model",
        grain=ask.grain,
        history_weeks=ask.history_weeks,
        interval_percent=PERCENT,
        series=told,
        as_of=as_of(basis, waiting),
    )
