"""How much of a sum can still change."""

from collections.abc import Mapping, Sequence
from typing import Any

PERCENT = 100


def provisional_share(points: Sequence[Mapping[str, Any]]) -> float | None:
    """Of the points of a sum the part in provisional ones, in percent; None of nothing.

    By size, not by sign: an hour of returns alone can change as well.
    """
    sizes = [(abs(float(point["value"] or 0)), point["final"]) for point in points]
    whole = sum(size for size, _ in sizes)
    return PERCENT * sum(size for size, is_final in sizes if not is_final) / whole if whole else None
