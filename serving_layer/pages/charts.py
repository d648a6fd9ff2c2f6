"""What is drawn on the server, as geometry: heat maps, sparklines and the bar of provisional sales."""

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple, Self

from serving_layer.pages.figures import Figure, figure, with_minus
from serving_layer.responses.metrics import Point, Value

WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
SHADES = 5
MANY = 100
"""From this value on, a square of a heat map has no room for tenths."""
SPARK_WIDTH, SPARK_HEIGHT, SPARK_MARGIN = 300, 48, 5
"""As in `static/live.js`, which draws the same line again."""


class Scale(NamedTuple):
    """Shades of equal steps from the least to the greatest value."""

    low: float
    high: float

    @classmethod
    def of(cls, values: Sequence[Value]) -> Self | None:
        """The scale of these values, of which None is unknown. None if no value is known."""
        known = [_number(value) for value in values if value is not None]
        return cls(min(known), max(known)) if known else None

    def shade(self, value: Value) -> int | None:
        """0 (least) to SHADES - 1; None if the value is unknown."""
        if value is None:
            return None
        part = (_number(value) - self.low) / ((self.high - self.low) or 1)
        return min(int(part * SHADES), SHADES - 1)

    def bounds(self, unit: str, code: str) -> Sequence[Figure]:
        """The least value of each shade, then the greatest of all."""
        step = (self.high - self.low) / SHADES
        return [figure(self.low + step * number, unit, code) for number in range(SHADES + 1)]


class Square(NamedTuple):
    """An hour of a heat map.

    `shade`: 0 (least) to SHADES - 1; None where the value is unknown. `short`: the value as it fits into the square.
    """

    hour: int
    shade: int | None
    figure: Figure
    short: str
    is_final: bool


class HeatMap(NamedTuple):
    """`rows`: each weekday with its squares. `bounds`: the least value of each shade, then the greatest of all."""

    hours: Sequence[int]
    rows: Sequence[tuple[str, Sequence[Square]]]
    bounds: Sequence[Figure]


def heat_map(points: Sequence[Point], unit: str, code: str) -> HeatMap | None:
    """Points of the grain `hour_of_week` as a row per weekday and a column per hour. None if no value is known.

    Hours before the first and after the last known value are left out.
    """
    known = {(point.weekday, point.hour): point for point in points if point.value is not None}
    scale = Scale.of([point.value for point in known.values()])
    if scale is None:
        return None
    hours = [point.hour for point in known.values() if isinstance(point.hour, int)]
    columns = range(min(hours), max(hours) + 1)
    digits, unknown = 0 if scale.high >= MANY else 1, figure(None, unit, code)

    def square(day: int, hour: int) -> Square:
        point = known.get((day, hour))
        if point is None:
            return Square(hour, None, unknown, unknown.number, is_final=True)
        short = with_minus(f"{point.value:,.{digits}f}")
        return Square(hour, scale.shade(point.value), figure(point.value, unit, code), short, point.final)

    rows = [(name, [square(day, hour) for hour in columns]) for day, name in enumerate(WEEKDAYS, 1)]
    return HeatMap(columns, rows, scale.bounds(unit, code))


class Sparkline(NamedTuple):
    """`final`, `provisional`: SVG paths. `end`: x and y of the last value, None if it is unknown."""

    final: str
    provisional: str
    end: tuple[float, float] | None
    is_final: bool


def sparkline(points: Sequence[Point]) -> Sparkline:
    """A line through the values of a series, with gaps where values are unknown.

    Zero is at the bottom, unless a value is below it.
    """
    values = [None if point.value is None else _number(point.value) for point in points]
    known = [value for value in values if value is not None]
    low, high = min([0.0, *known]), max([0.0, *known])
    step = (SPARK_WIDTH - 2 * SPARK_MARGIN) / max(len(points) - 1, 1)
    scale = (SPARK_HEIGHT - 2 * SPARK_MARGIN) / ((high - low) or 1)

    def position(number: int, value: float) -> tuple[float, float]:
        x, y = SPARK_MARGIN + number * step, SPARK_HEIGHT - SPARK_MARGIN - (value - low) * scale
        return round(x, 1), round(y, 1)

    positions = [None if value is None else position(number, value) for number, value in enumerate(values)]
    final: list[str] = []
    provisional: list[str] = []
    for (one, _), (two, point) in pairwise(zip(positions, points, strict=True)):
        if one and two:
            (final if point.final else provisional).append(f"M{one[0]} {one[1]}L{two[0]} {two[1]}")
    is_final = bool(points) and points[-1].final
    return Sparkline("".join(final), "".join(provisional), positions[-1] if positions else None, is_final)


def provisional_share(points: Sequence[Point]) -> float | None:
    """How much of a sum is in provisional points, in percent; None if the sum is nothing.

    Points count by size, not by sign, because an hour with more returns than sales can change as well.
    """
    sizes = [(abs(_number(point.value or 0)), point.final) for point in points]
    whole = sum(size for size, _ in sizes)
    return 100 * sum(size for size, is_final in sizes if not is_final) / whole if whole else None


def _number(value: Value) -> float:
    """A value of a metric that is no list."""
    return float(value)  # type: ignore[arg-type]
