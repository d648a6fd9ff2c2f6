"""What became of the numbers 0..n-1 that were sent: lost, duplicated, reordered. Exact, since each is known."""

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple


class Tally(NamedTuple):
    """`lost`: numbers that are nowhere. `duplicated`: copies beyond the first. `reordered`: steps back."""

    lost: int
    duplicated: int
    reordered: int


def inversions(numbers: Iterable[int]) -> int:
    """How often the next number is less than the one before it."""
    return sum(after < before for before, after in pairwise(numbers))


def tally(sent: int, *seen: Sequence[int]) -> Tally:
    """Count what was seen, partition by partition (order means nothing between two), of the numbers 0..sent-1.

    ValueError if a number was seen that nobody sent: then nothing that was counted means anything.
    """
    distinct = {number for partition in seen for number in partition}
    if strange := distinct - set(range(sent)):
        raise ValueError(f"numbers that were never sent: {sorted(strange)[:5]}")
    copies = sum(len(partition) for partition in seen)
    return Tally(sent - len(distinct), copies - len(distinct), sum(inversions(partition) for partition in seen))


def together(tallies: Iterable[Tally]) -> Tally:
    """Of several topics or endpoints that were to get the same."""
    return Tally(*map(sum, zip(*tallies, strict=True)))
