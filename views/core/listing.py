"""Values that are lists: how many lie in each bin, and which hours of the week hold most."""

from collections.abc import Mapping, Sequence
from fractions import Fraction

Item = Mapping[str, int | Fraction | None]
Listing = tuple[Item, ...]
Worth = Fraction | Listing | None
"""What a formula can be worth: a number, a list of items, or nothing."""
PERCENT = 100


def bins(edges: Sequence[int], counts: Sequence[int]) -> Listing | None:
    """Every bin `from` (inclusive) `to` (exclusive; None: open), its count, and its share in percent. None of none."""
    n = sum(counts)
    if not n:
        return None
    ends = (*edges[1:], None)
    return tuple(
        {"from": edge, "to": end, "count": count, "share": Fraction(PERCENT * count, n)}
        for edge, end, count in zip(edges, ends, counts, strict=True)
    )


def busiest(hours: Mapping[tuple[int, int], int], percent: int) -> Listing | None:
    """The fewest hours of the week that together hold so many percent, the fullest first; of equal ones the earlier.

    `hours`: (ISO weekday, hour of the clock) to how many. None if there are none at all.
    """
    n = sum(hours.values())
    if not n:
        return None
    found: list[Item] = []
    held = 0
    for (weekday, hour), count in sorted(hours.items(), key=lambda each: (-each[1], each[0])):
        if PERCENT * held >= percent * n:
            break
        held += count
        found.append({"weekday": weekday, "hour": hour, "count": count, "share": Fraction(PERCENT * count, n)})
    return tuple(found)
