"""The exact value of every point: states summed first, then the formula."""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import NamedTuple

from serving_layer.asked import Asked, StoreTime
from serving_layer.side import Side, SideRead
from serving_layer.totals import Point, Totals
from views.core.aggregates import Value
from views.core.metric import Metric

NO_OPENING_HOURS = "no_opening_hours"


class Reckoned(NamedTuple):
    """Money in minor units. `is_provisional`: speed rows are in it."""

    value: Fraction | None
    flags: tuple[str, ...]
    is_provisional: bool


def reckon(asked: Asked, of: StoreTime, read: SideRead, dimensions: Mapping[str, str | None]) -> list[Reckoned]:
    """The points of one series, in the places of the question. Null, with a flag, if opening hours are not known."""
    sources = [(total, total.at(dimensions), total.empty()) for total in read.totals]
    unknown_hours = asked.hours_asked and not of.store.opening_hours
    found = []
    for number, facts in enumerate(_facts(asked, of, read.side)):
        points = [points.get(number) for _, points, _ in sources]
        is_provisional = any(point is not None and point.is_provisional for point in points)
        if unknown_hours:
            found.append(Reckoned(None, (NO_OPENING_HOURS,), is_provisional))
            continue
        value, flags = asked.metric.value(facts | _states(asked.metric, sources, points))
        if not asked.metric.formula.is_sum and not any(points):
            value = None
        found.append(Reckoned(value, flags, is_provisional))
    return found


def _states(
    metric: Metric, sources: Sequence[tuple[Totals, object, list[Value]]], found: Sequence[Point | None]
) -> dict[str, int | Fraction | None]:
    known: dict[tuple[str, str], Value] = {}
    for (total, _, empty), point in zip(sources, found, strict=True):
        values = empty if point is None else point.states
        known.update(zip(((total.view.name, column) for column in total.columns), values, strict=True))
    return {name: known[place] for name, place in metric.states.items()}


def _facts(asked: Asked, of: StoreTime, side: Side) -> list[dict[str, int | Fraction | None]]:
    """Per point what is known of the store itself: its floor, and its open hours in those windows."""
    floor = None if of.store.floor_m2 is None else Fraction(str(of.store.floor_m2))
    hours = [0] * len(of.timeline.bounds)
    for window in (side.only or ()) if asked.is_open else ():
        hours[side.timeline.point_of(window)] += 1
    return [{"store.floor_m2": floor, "store.open_hours": Fraction(windows, 4)} for windows in hours]
