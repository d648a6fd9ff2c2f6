"""A line as small as a word: values from left to right, the provisional end dashed. Pure geometry."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

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
