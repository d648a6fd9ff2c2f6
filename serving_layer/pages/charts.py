"""The hours of a week as a map: a row per weekday, a column per hour, darker where there is more. Pure.

A line as small as a word: values from left to right, the provisional end dashed. Pure geometry.

How much of a sum can still change.
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise
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


WIDTH, HEIGHT, MARGIN = 300, 48, 5
Place = tuple[float, float]


class Sparkline(NamedTuple):
    """`final`, `provisional`: paths of SVG. `end`: where the last value lies, None if there is none."""

    final: str
    provisional: str
    end: Place | None
    is_final: bool


def sparkline(points: Sequence[Mapping[str, Any]]) -> Sparkline:
    """Of the points of a series. Zero is the bottom, unless something lies below; a gap where nothing is known."""
    values = [None if point["value"] is None else float(point["value"]) for point in points]
    known = [value for value in values if value is not None]
    low, high = min([0.0, *known]), max([0.0, *known])
    step, scale = (WIDTH - 2 * MARGIN) / max(len(points) - 1, 1), (HEIGHT - 2 * MARGIN) / ((high - low) or 1)

    def place(number: int, value: float) -> Place:
        return round(MARGIN + number * step, 1), round(HEIGHT - MARGIN - (value - low) * scale, 1)

    places = [None if value is None else place(number, value) for number, value in enumerate(values)]
    final: list[str] = []
    provisional: list[str] = []
    for (one, _), (two, point) in pairwise(zip(places, points, strict=True)):
        if one and two:
            (final if point["final"] else provisional).append(f"M{one[0]} {one[1]}L{two[0]} {two[1]}")
    is_final = bool(points) and bool(points[-1]["final"])
    return Sparkline("".join(final), "".join(provisional), places[-1] if places else None, is_final)


PERCENT = 100


def provisional_share(points: Sequence[Mapping[str, Any]]) -> float | None:
    """Of the points of a sum the part in provisional ones, in percent; None of nothing.

    By size, not by sign: an hour of returns alone can change as well.
    """
    sizes = [(abs(float(point["value"] or 0)), point["final"]) for point in points]
    whole = sum(size for size, _ in sizes)
    return PERCENT * sum(size for size, is_final in sizes if not is_final) / whole if whole else None
