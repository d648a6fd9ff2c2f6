"""What each point of a series is compared with, and by how much it changed."""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import NamedTuple

from serving_layer.compare.change import change, change_points
from serving_layer.query.evaluate import Reckoned, reckon
from serving_layer.query.numbers import printed
from serving_layer.query.resolved_query import Asked
from serving_layer.query.store_part import StorePart

NO_COUNTERPART = ("no_counterpart",)


class Change(NamedTuple):
    """What a point says of its comparison.

    Whether the point is final does not depend on it: a late event of the earlier side is too old for speed, and waits.
    """

    told: dict[str, object]
    flags: tuple[str, ...]


def changes(
    asked: Asked, part: StorePart, values: Sequence[Reckoned], dimensions: Mapping[str, str | None], digits: int
) -> list[Change]:
    """One per point. `values`: those of now. A point that has not begun is compared with nothing yet."""
    there = part.earlier.points if part.earlier else frozenset()
    before = reckon(asked, part.asked, part.before, dimensions) if part.before else []
    return [
        _change(asked, part, number, (now, before[number] if number in there else None), digits)
        for number, now in enumerate(values)
    ]


def _change(asked: Asked, part: StorePart, number: int, sides: tuple[Reckoned, Reckoned | None], digits: int) -> Change:
    now, before = (each.value if each and isinstance(each.value, Fraction) else None for each in sides)
    changed = change(now, before)
    told: dict[str, object] = {
        "before": printed(sides[1].value if sides[1] else None, asked.metric, digits),
        "change": None if changed is None else float(changed),
    }
    if asked.metric.unit == "percent":
        points = change_points(now, before)
        told["change_points"] = None if points is None else float(points)
    bound = part.asked.timeline.bounds[number]
    if bound.end > part.until:
        told["partial"] = True
    if part.earlier and number in part.earlier.lengths:
        told["days"] = dict(zip(("now", "before"), part.earlier.lengths[number], strict=True))
    if sides[1] is None:
        return Change(told, NO_COUNTERPART if bound.start < part.until else ())
    if sides[1].flags:
        told["before_flags"] = sides[1].flags
    return Change(told, ())
