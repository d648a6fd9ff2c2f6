"""One metric over time: the cells it needs, summed per point, then the formula, then the numbers as printed."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

from master_dataset.currency import currency
from master_dataset.errors import MixedCurrencies
from master_dataset.stores import Store
from serving_layer.as_of import as_of
from serving_layer.basis import Basis
from serving_layer.merged_cells import MergedCells
from serving_layer.numbers import printed
from serving_layer.opening_hours import open_windows
from serving_layer.timeline import Grain, Timeline
from serving_layer.totals import CURRENCY, Point, Totals, series_of
from views.core import View
from views.core.aggregates import Value
from views.core.cut import seconds
from views.core.metric import Metric


class StoreTime(NamedTuple):
    """One store of the question, and its points in its own or the asked time zone."""

    store: Store
    zone: str
    timeline: Timeline


@dataclass(frozen=True)
class Asked:
    """A question about one metric, understood."""

    metric: Metric
    views: tuple[View, ...]
    grain: Grain
    by: tuple[str, ...]
    stores: Sequence[StoreTime]

    def totals(self, view: View) -> Totals:
        """An empty sum of the states that this view has to give."""
        columns = tuple(dict.fromkeys(state for name, state in self.metric.states.values() if name == view.name))
        return Totals(view, columns, tuple(name for name in self.by if name in view.dimensions))


@dataclass(frozen=True)
class StorePart:
    """What was read for one store. `open_windows`: None where all windows count."""

    asked: StoreTime
    totals: Sequence[Totals]
    open_windows: frozenset[int] | None
    waiting: int


async def answer(asked: Asked, basis: Basis, cells: MergedCells) -> dict[str, object]:
    """The body of the answer. MixedCurrencies if money of several currencies would be in it unsplit."""
    parts = await asyncio.gather(*(_part(asked, basis, cells, each) for each in asked.stores))
    shared = _currency(asked, parts)
    zones = {part.asked.zone for part in parts}
    told: dict[str, object] = {
        "metric": asked.metric.id,
        "unit": asked.metric.unit,
        "grain": asked.grain,
        "timezone": zones.pop() if len(zones) == 1 else None,
        "series": [each for part in parts for each in _series(asked, basis, part, shared)],
        "as_of": as_of(basis, sum(part.waiting for part in parts)),
    }
    if asked.metric.unit == "money":
        told["currency"] = shared
    return told | {"flags": ["open_only"]} if asked.metric.is_open_only else told


async def _part(asked: Asked, basis: Basis, cells: MergedCells, of: StoreTime) -> StorePart:
    start, end = of.timeline.start, of.timeline.end
    only = open_windows(of.store, start, end) if asked.metric.is_open_only else None
    reads = [cells.read(basis, view, of.store.id, start, end) for view in asked.views]
    waiting, read = await asyncio.gather(
        cells.waiting(basis, asked.views, of.store.id, start, end), asyncio.gather(*reads)
    )
    totals = [asked.totals(view) for view in asked.views]
    for total, found in zip(totals, read, strict=True):
        total.add(found, of.timeline, only)
    return StorePart(of, totals, only, waiting)


def _currency(asked: Asked, parts: Iterable[StorePart]) -> str | None:
    """The one currency of the answer; None if it is split by currency or no money is in it."""
    if not asked.metric.is_of_money or CURRENCY in asked.by:
        return None
    found: set[str] = set()
    for part in parts:
        found |= set().union(*(total.currencies for total in part.totals)) or {part.asked.store.currency.code}
    if len(found) > 1:
        message = f"The answer would add {' and '.join(sorted(found))}."
        raise MixedCurrencies(message, do="Add `by=currency`, or name stores of one currency with `store=`.")
    return next(iter(found), None)


def _series(asked: Asked, basis: Basis, part: StorePart, shared: str | None) -> Iterable[dict[str, object]]:
    for dimensions in series_of(part.totals, asked.by):
        code = dimensions.get(CURRENCY) or shared or part.asked.store.currency.code
        digits = currency(code).digits
        yield {
            "store": part.asked.store.id,
            "timezone": part.asked.zone,
            "dimensions": dimensions,
            "points": _points(asked, basis, part, dimensions, digits),
        }


def _points(
    asked: Asked, basis: Basis, part: StorePart, dimensions: Mapping[str, str | None], digits: int
) -> list[dict[str, object]]:
    sources = [(total, total.at(dimensions), total.empty()) for total in part.totals]
    settled = seconds(basis.pointer.cut) - max(int(view.settles_after.total_seconds()) for view in asked.views)
    facts = _facts(part)
    shown = []
    for number, (start, bound) in enumerate(zip(part.asked.timeline.starts, part.asked.timeline.bounds, strict=True)):
        found = [points.get(number) for _, points, _ in sources]
        provisional = any(point is not None and point.is_provisional for point in found)
        states = facts[number] | _states(asked.metric, sources, found)
        value, flags = asked.metric.value(states)
        if not asked.metric.formula.is_sum and not any(found):
            value = None
        point: dict[str, object] = {
            "start": start,
            "value": printed(value, asked.metric, digits),
            "final": not basis.missing and not provisional and bound.end <= settled,
        }
        if flags:
            point["flags"] = flags
        if part.asked.timeline.labels:
            point.update(part.asked.timeline.labels[number])
        shown.append(point)
    return shown


def _states(
    metric: Metric, sources: Sequence[tuple[Totals, object, list[Value]]], found: Sequence[Point | None]
) -> dict[str, int | Fraction | None]:
    known: dict[tuple[str, str], Value] = {}
    for (total, _, empty), point in zip(sources, found, strict=True):
        values = empty if point is None else point.states
        known.update(zip(((total.view.name, column) for column in total.columns), values, strict=True))
    return {name: known[place] for name, place in metric.states.items()}


def _facts(part: StorePart) -> list[dict[str, int | Fraction | None]]:
    """Per point what is known of the store itself: its floor, and its open hours in those windows."""
    floor = None if part.asked.store.floor_m2 is None else Fraction(str(part.asked.store.floor_m2))
    hours = [0] * len(part.asked.timeline.bounds)
    for window in part.open_windows or ():
        hours[part.asked.timeline.point_of(window)] += 1
    return [{"store.floor_m2": floor, "store.open_hours": Fraction(windows, 4)} for windows in hours]
