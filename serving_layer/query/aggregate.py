"""The states of one view, summed over the cells of each point: before any formula is applied."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from views.core import View
from views.core.aggregates import Value
from views.core.formula import Term, Worth
from views.core.merge import Cell

Group = tuple[str | None, ...]
"""Values of the dimensions that the answer is split by, as far as the view has them."""
Where = tuple[tuple[str, tuple[str, ...]], ...]
"""Dimensions, each with the values that count."""

CURRENCY = "currency"


@dataclass
class Point:
    """`states`: the summed columns that were asked for. `is_provisional`: speed rows are in it."""

    states: list[Value]
    is_provisional: bool


@dataclass
class Totals:
    """One view's points, as far as `terms` need them: those of terms that take the same cells.

    `split`: the dimensions it has of those asked for; a view that lacks one counts in total. `is_by_window`: its points
    are windows, for terms that need them in order. `has_cells`: the view has any, whether or not they count.
    """

    view: View
    terms: tuple[Term, ...]
    split: tuple[str, ...] = ()
    where: Where = ()
    is_by_window: bool = False
    points: dict[Group, dict[int, Point]] = field(default_factory=dict)
    currencies: set[str] = field(default_factory=set)
    has_cells: bool = False

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """The states that are summed."""
        return tuple(dict.fromkeys(name for term in self.terms for name in term.columns(self.view)))

    def add(self, cells: Iterable[Cell], place_of: Callable[[int], int], only: frozenset[int] | None) -> None:
        """Sum cells. `place_of`: of which point a window is. `only`: the windows that count, None for all."""
        dimensions = list(self.view.dimensions)
        places = [dimensions.index(name) for name in self.split]
        wanted = [(dimensions.index(name), frozenset(values)) for name, values in self.where]
        picked = [list(self.view.columns).index(name) for name in self.columns]
        reducers = [self.view.columns[name].merge for name in self.columns]
        for cell in cells:
            self.has_cells = True
            key = cell.key
            if only is not None and key.window not in only:
                continue
            if CURRENCY in dimensions:
                self.currencies.add(key.dimensions[dimensions.index(CURRENCY)] or "")
            if any(key.dimensions[place] not in values for place, values in wanted):
                continue
            points = self.points.setdefault(tuple(key.dimensions[place] for place in places), {})
            place_in_time = place_of(key.window)
            point = points.get(place_in_time)
            if point is None:
                points[place_in_time] = Point([cell.merged[place] for place in picked], cell.speed is not None)
                continue
            point.is_provisional = point.is_provisional or cell.speed is not None
            for number, (merge, place) in enumerate(zip(reducers, picked, strict=True)):
                point.states[number] = merge(point.states[number], cell.merged[place])

    def worth(self, point: Point | None) -> Mapping[str, Worth]:
        """What the terms are worth there. Of no event 0 for a sum, None for a least or greatest."""
        return self._nothing if point is None else self._worth(point.states)

    def at(self, series: Mapping[str, str | None]) -> Mapping[int, Point]:
        """The points that a series of these dimensions takes from this view."""
        return self.points.get(tuple(series[name] for name in self.split), {})

    def _worth(self, values: Sequence[Value]) -> Mapping[str, Worth]:
        return {
            term.text: term.worth(self.view, [values[place] for place in places])
            for term, places in zip(self.terms, self._places, strict=True)
        }

    @cached_property
    def _places(self) -> list[list[int]]:
        """Per term where its columns are among those that are summed."""
        return [[self.columns.index(name) for name in term.columns(self.view)] for term in self.terms]

    @cached_property
    def _nothing(self) -> Mapping[str, Worth]:
        return self._worth([0 if self.view.columns[name].by == "sum" else None for name in self.columns])


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
