"""One metric over time: the cells it needs, summed per point, then the formula, then the numbers as printed."""

import asyncio
from collections import Counter
from collections.abc import Iterable

from msgspec import UNSET

from master_dataset.errors import MixedCurrenciesError
from master_dataset.registry.stores import currency
from serving_layer.compare.comparable_stores import unseen
from serving_layer.compare.compared import compared
from serving_layer.context.kinds import context_rows
from serving_layer.query.aggregate import CURRENCY
from serving_layer.query.points import points
from serving_layer.query.resolved_query import ResolvedQuery
from serving_layer.query.snapshot import ReadSnapshot, as_of
from serving_layer.query.store_part import StorePart, read_part
from serving_layer.responses.metrics import LeftOut, MetricResponse, Series
from serving_layer.store.cells import MergedCells
from views.core.metric import OF_ANSWERS


async def answer(asked: ResolvedQuery, basis: ReadSnapshot, cells: MergedCells) -> MetricResponse:
    """The body of the answer. MixedCurrenciesError if money of several currencies would be in it unsplit."""
    read = await asyncio.gather(*(read_part(asked, basis, cells, each) for each in asked.stores))
    left_out = None if asked.left_out is None else [*asked.left_out, *_unseen(read)]
    gone = {each.store for each in left_out or ()}
    parts = [each for each in read if each.asked.store.id not in gone]
    shared = _currency(asked, parts)
    zones = {part.asked.zone for part in parts}
    odd = sum((part.now.odd for part in parts), Counter[str]())
    return MetricResponse(
        metric=asked.metric.id,
        unit=asked.metric.unit,
        grain=asked.grain,
        timezone=zones.pop() if len(zones) == 1 else None,
        series=[each for part in parts for each in _series(asked, basis, part, shared)],
        as_of=as_of(basis, sum(part.waiting for part in parts)),
        currency=shared if asked.metric.unit == "money" else UNSET,
        flags=[flag for flag in asked.metric.flags if flag in OF_ANSWERS] or UNSET,
        event_flags=dict(sorted(odd.items())) or UNSET,
        hours="open" if asked.hours_asked else UNSET,
        only_covered=asked.only_covered or UNSET,
        compare=asked.compare or UNSET,
        change_unit="percent" if asked.compare else UNSET,
        partial=(bool(asked.compare) and any(part.is_partial for part in parts)) or UNSET,
        left_out=UNSET if left_out is None else left_out,
        context=await context_rows(asked, basis, cells) if asked.context else UNSET,
    )


def _unseen(parts: Iterable[StorePart]) -> Iterable[LeftOut]:
    return (found for part in parts if (found := unseen(part.asked.store, part.sensor_time)))


def _currency(asked: ResolvedQuery, parts: Iterable[StorePart]) -> str | None:
    """The one currency of the answer; None if it is split by currency or no money is in it."""
    if not asked.metric.is_of_money or CURRENCY in asked.by:
        return None
    found: set[str] = set()
    for part in parts:
        found |= set().union(*(total.currencies for total in part.totals)) or {part.asked.store.currency.code}
    if len(found) > 1:
        message = f"The answer would add {' and '.join(sorted(found))}."
        raise MixedCurrenciesError(message, do="Add `by=currency`, or name stores of one currency with `store=`.")
    return next(iter(found), None)


def _series(asked: ResolvedQuery, basis: ReadSnapshot, part: StorePart, shared: str | None) -> Iterable[Series]:
    comparison = UNSET if part.asked.by is None else compared(part, part.asked.by.calendar)
    for dimensions in part.series(asked.by):
        code = dimensions.get(CURRENCY) or shared or part.asked.store.currency.code
        yield Series(
            store=part.asked.store.id,
            timezone=part.asked.zone,
            dimensions=dimensions,
            points=points(asked, basis, part, dimensions, currency(code).digits),
            compared=comparison,
        )
