"""The points of a series as they are shown."""

from collections.abc import Mapping

from msgspec import UNSET

from serving_layer.compare.changes import changes
from serving_layer.query.evaluate import evaluate
from serving_layer.query.numbers import printed
from serving_layer.query.resolved_query import ResolvedQuery
from serving_layer.query.snapshot import ReadSnapshot
from serving_layer.query.store_part import StorePart
from serving_layer.responses.metrics import Point
from views.core.cut import seconds


def points(
    asked: ResolvedQuery, basis: ReadSnapshot, part: StorePart, dimensions: Mapping[str, str | None], digits: int
) -> list[Point]:
    """One per place of the timeline. `digits`: decimals of the currency."""
    settled = seconds(basis.pointer.cut) - max(int(view.settles_after.total_seconds()) for view in asked.views)
    line = part.asked.timeline
    values = evaluate(asked, part.asked, part.now, dimensions)
    compared = changes(asked, part, values, dimensions, digits) if asked.compare else None
    shown: list[Point] = []
    for number, (start, bound, found) in enumerate(zip(line.starts, line.bounds, values, strict=True)):
        is_final = not basis.missing and not found.is_provisional and bound.end <= settled
        point = Point(start, printed(found.value, asked.metric, digits), is_final, flags=found.flags or UNSET)
        if compared:
            compared[number].put_into(point)
        if line.labels:
            point.weekday, point.hour, point.hours_present = line.labels[number]
        shown.append(point)
    return shown
