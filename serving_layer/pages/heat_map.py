"""The hours of a week as a map: a row per weekday, a column per hour, darker where there is more. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from serving_layer.pages.figures import Figure, figure

WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
SHADES = 5
SIZE = 24
"""Of a field, in the units of the drawing."""


class Field(NamedTuple):
    """`shade`: 0 (least) to SHADES - 1; None where nothing is known."""

    hour: int
    shade: int | None
    said: Figure
    is_final: bool


class HeatMap(NamedTuple):
    """`rows`: weekday and its fields. `bounds`: the least value of each shade, and the greatest of all."""

    hours: Sequence[int]
    rows: Sequence[tuple[str, Sequence[Field]]]
    bounds: Sequence[Figure]


def heat_map(points: Sequence[Mapping[str, Any]], unit: str, code: str) -> HeatMap | None:
    """Of points of `hour_of_week`; the hours in which nothing is ever known are left out. None of nothing."""
    values = {(point["weekday"], point["hour"]): point for point in points if point["value"] is not None}
    if not values:
        return None
    hours = range(min(hour for _, hour in values), max(hour for _, hour in values) + 1)
    known = [float(point["value"]) for point in values.values()]
    low, high = min(known), max(known)

    def field(day: int, hour: int) -> Field:
        point = values.get((day, hour))
        if point is None:
            return Field(hour, None, figure(None, unit, code), is_final=True)
        part = (float(point["value"]) - low) / ((high - low) or 1)
        shade = min(int(part * SHADES), SHADES - 1)
        return Field(hour, shade, figure(point["value"], unit, code), bool(point["final"]))

    rows = [(name, [field(day, hour) for hour in hours]) for day, name in enumerate(WEEKDAYS, 1)]
    bounds = [figure(low + (high - low) * number / SHADES, unit, code) for number in range(SHADES + 1)]
    return HeatMap(hours, rows, bounds)
