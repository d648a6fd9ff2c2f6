"""The hours of a week as a map: a row per weekday, a column per hour, darker where there is more. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from serving_layer.pages.figures import MINUS, Figure, figure

WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
SHADES = 5
MANY = 100
"""From here on a field has no room for tenths."""


class Field(NamedTuple):
    """`shade`: 0 (least) to SHADES - 1; None where nothing is known. `short`: as much of the value as fits into it."""

    hour: int
    shade: int | None
    said: Figure
    short: str
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
    digits, nothing = 0 if high >= MANY else 1, figure(None, unit, code)

    def field(day: int, hour: int) -> Field:
        point = values.get((day, hour))
        if point is None:
            return Field(hour, None, nothing, nothing.number, is_final=True)
        part = (float(point["value"]) - low) / ((high - low) or 1)
        shade = min(int(part * SHADES), SHADES - 1)
        short = f"{point['value']:,.{digits}f}".replace("-", MINUS)
        return Field(hour, shade, figure(point["value"], unit, code), short, bool(point["final"]))

    rows = [(name, [field(day, hour) for hour in hours]) for day, name in enumerate(WEEKDAYS, 1)]
    bounds = [figure(low + (high - low) * number / SHADES, unit, code) for number in range(SHADES + 1)]
    return HeatMap(hours, rows, bounds)
