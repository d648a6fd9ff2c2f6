"""How values are spread: how many lie in each bin, and the least and greatest of them. Percentiles follow from it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from views.core.aggregates.aggregate import Shown, State
from views.core.aggregates.column import Column
from views.core.percentile import percentile

HALF = 50


@dataclass(frozen=True)
class Histogram:
    """The state is (a count for each bin, min, max). `of`: Spark SQL, a whole number; NULL does not count.

    `edges`: where bins begin, rising: bins are [lo, hi) and the last is open. Whatever is less lies in the first.
    """

    of: str
    edges: tuple[int, ...]

    @property
    def columns(self) -> Mapping[str, Column]:
        """A count for each bin, then the least and the greatest."""
        bins = {str(place): Column(self._is_in(place), "sum") for place in range(len(self.edges))}
        return bins | {"min": Column(self.of, "min"), "max": Column(self.of, "max")}

    def present(self, state: State) -> Fraction | None:
        """The median."""
        *counts, least, most = state
        return percentile(self.edges, _whole(counts), least, most, HALF)

    def shown(self, state: State) -> Shown:
        """The counts in order of their bins, and both ends."""
        *counts, least, most = state
        return {"counts": _whole(counts), "min": least, "max": most}

    def _is_in(self, place: int) -> str:
        value, bounds = f"({self.of})", []
        if place:
            bounds.append(f"{value} >= {self.edges[place]}L")
        if place + 1 < len(self.edges):
            bounds.append(f"{value} < {self.edges[place + 1]}L")
        return f"if({' and '.join(bounds) or f'{value} is not null'}, 1L, 0L)"


def _whole(counts: Sequence[object]) -> list[int]:
    return [count if isinstance(count, int) else 0 for count in counts]
