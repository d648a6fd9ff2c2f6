"""The points of a series as they are shown."""

from collections.abc import Mapping

from serving_layer.compare.changes import changes
from serving_layer.query.evaluate import reckon
from serving_layer.query.numbers import printed
from serving_layer.query.read_snapshot import Basis
from serving_layer.query.resolved_query import Asked
from serving_layer.query.store_part import StorePart
from views.core.cut import seconds

Shown = dict[str, object]


def points(
    asked: Asked, basis: Basis, part: StorePart, dimensions: Mapping[str, str | None], digits: int
) -> list[Shown]:
    """One per place of the timeline. `digits`: decimals of the currency."""
    settled = seconds(basis.pointer.cut) - max(int(view.settles_after.total_seconds()) for view in asked.views)
    line = part.asked.timeline
    values = reckon(asked, part.asked, part.now, dimensions)
    compared = changes(asked, part, values, dimensions, digits) if asked.compare else None
    shown: list[Shown] = []
    for number, (start, bound, found) in enumerate(zip(line.starts, line.bounds, values, strict=True)):
        is_final = not basis.missing and not found.is_provisional and bound.end <= settled
        point: Shown = {"start": start, "value": printed(found.value, asked.metric, digits), "final": is_final}
        flags = found.flags
        if compared:
            point |= compared[number].told
            flags += compared[number].flags
        if flags:
            point["flags"] = flags
        if line.labels:
            point.update(line.labels[number])
        shown.append(point)
    return shown
