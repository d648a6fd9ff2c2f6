"""What each point of a series is compared with, and by how much it changed."""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import NamedTuple

from msgspec import UNSET, UnsetType

from serving_layer.compare.change import change, change_points
from serving_layer.query.evaluate import PointValue, evaluate
from serving_layer.query.numbers import printed
from serving_layer.query.resolved_query import ResolvedQuery
from serving_layer.query.store_part import StorePart
from serving_layer.responses.metrics import DaysCompared, Point, Value

NO_COUNTERPART = ("no_counterpart",)


class Change(NamedTuple):
    """What a point says of its comparison; for the fields see `Point`. `flags` are added to those of the point.

    Whether the point is final does not depend on it: a late event of the earlier side is too old for speed, and waits.
    """

    before: Value
    change: float | None
    change_points: float | UnsetType | None
    is_partial: bool
    days: DaysCompared | UnsetType
    before_flags: tuple[str, ...]
    flags: tuple[str, ...]

    def put_into(self, point: Point) -> None:
        """Let the point say so."""
        point.before, point.change, point.change_points = self.before, self.change, self.change_points
        point.days = self.days
        if self.is_partial:
            point.partial = True
        if self.before_flags:
            point.before_flags = self.before_flags
        if self.flags:
            point.flags = (*(point.flags or ()), *self.flags)


def changes(
    asked: ResolvedQuery,
    part: StorePart,
    values: Sequence[PointValue],
    dimensions: Mapping[str, str | None],
    digits: int,
) -> list[Change]:
    """One per point. `values`: those of now. A point that has not begun is compared with nothing yet."""
    there = part.earlier.points if part.earlier else frozenset()
    before = evaluate(asked, part.asked, part.before, dimensions) if part.before else []
    return [
        _change(asked, part, number, (now, before[number] if number in there else None), digits)
        for number, now in enumerate(values)
    ]


def _change(
    asked: ResolvedQuery, part: StorePart, number: int, sides: tuple[PointValue, PointValue | None], digits: int
) -> Change:
    now, before = (each.value if each and isinstance(each.value, Fraction) else None for each in sides)
    there = sides[1]
    bound = part.asked.timeline.bounds[number]
    days = part.earlier.lengths.get(number) if part.earlier else None
    return Change(
        before=printed(there.value if there else None, asked.metric, digits),
        change=_float(change(now, before)),
        change_points=_float(change_points(now, before)) if asked.metric.unit == "percent" else UNSET,
        is_partial=bound.end > part.until,
        days=UNSET if days is None else DaysCompared(*days),
        before_flags=there.flags if there else (),
        flags=NO_COUNTERPART if there is None and bound.start < part.until else (),
    )


def _float(value: Fraction | None) -> float | None:
    return None if value is None else float(value)
