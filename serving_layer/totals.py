"""The states of one view, summed over the cells of each point: before any formula is applied."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from serving_layer.merge import Cell
from serving_layer.timeline import Timeline
from views.core import View
from views.core.aggregates import Value

Group = tuple[str | None, ...]
"""Values of the dimensions that the answer is split by, as far as the view has them."""

CURRENCY = "currency"


@dataclass
class Point:
    """`states`: the summed columns that were asked for. `is_provisional`: speed rows are in it."""

    states: list[Value]
    is_provisional: bool


@dataclass
class Totals:
    """One view's points. `split`: the dimensions it has of those asked for; a view that lacks one counts in total."""

    view: View
    columns: tuple[str, ...]
    split: tuple[str, ...]
    points: dict[Group, dict[int, Point]] = field(default_factory=dict)
    currencies: set[str] = field(default_factory=set)

    def add(self, cells: Iterable[Cell], timeline: Timeline, only: frozenset[int] | None) -> None:
        """Sum cells whose windows lie in the timeline. `only`: the windows that count, None for all."""
        places = [tuple(self.view.dimensions).index(name) for name in self.split]
        picked = [list(self.view.columns).index(name) for name in self.columns]
        reducers = [self.view.columns[name].merge for name in self.columns]
        money = tuple(self.view.dimensions).index(CURRENCY) if CURRENCY in self.view.dimensions else None
        for cell in cells:
            if only is not None and cell.key.window not in only:
                continue
            dimensions = cell.key.dimensions
            if money is not None:
                self.currencies.add(dimensions[money] or "")
            points = self.points.setdefault(tuple(dimensions[place] for place in places), {})
            place_in_time = timeline.point_of(cell.key.window)
            point = points.get(place_in_time)
            if point is None:
                points[place_in_time] = Point([cell.merged[place] for place in picked], cell.speed is not None)
                continue
            point.is_provisional = point.is_provisional or cell.speed is not None
            for number, (merge, place) in enumerate(zip(reducers, picked, strict=True)):
                point.states[number] = merge(point.states[number], cell.merged[place])

    def empty(self) -> list[Value]:
        """What no event adds up to: 0 for a sum, None for a least or greatest."""
        return [0 if self.view.columns[name].by == "sum" else None for name in self.columns]

    def at(self, series: Mapping[str, str | None]) -> Mapping[int, Point]:
        """The points that a series of these dimensions takes from this view."""
        return self.points.get(tuple(series[name] for name in self.split), {})


def series_of(totals: Sequence[Totals], by: Sequence[str]) -> list[dict[str, str | None]]:
    """The dimensions of every series: what the views that have all asked dimensions know of. One without `by`."""
    if not by:
        return [{}]
    groups = {
        tuple(dict(zip(each.split, group, strict=True))[name] for name in by)
        for each in totals
        if set(each.split) == set(by)
        for group in each.points
    }
    ordered = sorted(groups, key=lambda group: tuple((value is None, value or "") for value in group))
    return [dict(zip(by, group, strict=True)) for group in ordered]
