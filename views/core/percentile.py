"""Percentiles of values that are known only by histogram: exact fractions, the same for every order of merges."""

from collections.abc import Sequence
from fractions import Fraction


def percentile(
    edges: Sequence[int], counts: Sequence[int], least: object, most: object, percent: int
) -> Fraction | None:
    """The value below which `percent` % of n values lie, by even spread within a bin that is clipped to [least, most].

    In the first bin with c > 0 and 100 (C + c) >= p n, where C values lie before it:
    lo + (p n - 100 C)(hi - lo) / (100 c). None without values.
    """
    n = sum(counts)
    if not n or not isinstance(least, int) or not isinstance(most, int):
        return None
    before = 0
    for place, count in enumerate(counts):
        if count and 100 * (before + count) >= percent * n:
            low = max(edges[place], least) if place else least
            high = min(edges[place + 1], most) if place + 1 < len(edges) else most
            return low + Fraction((percent * n - 100 * before) * (high - low), 100 * count)
        before += count
    raise AssertionError(counts)  # the last bin holds 100 %
