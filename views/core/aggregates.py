"""Aggregates: states that merge, how a row contributes to them, and how they are presented."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, Protocol

from views.core.sketch import estimate, united

Reducer = Literal["sum", "min", "max", "union"]
LISTED = "list"
GATHERED: Mapping[Reducer, str] = {"sum": "sum", "min": "min", "max": "max", "union": LISTED}
"""Arrow's word for each: what it lists are hashes, and the state is their sketch (`views.core.sketch.sketch_of`)."""
Value = int | str | None
"""NULL in SQL, None in Python: no row had a value. Only a sum cannot be None: of nothing it is 0. Text is a sketch."""


@dataclass(frozen=True)
class Column:
    """`of` is a Spark SQL expression over one row (a whole number or NULL), `by` the reducer that joins the rows.

    Of a `union`, the number is the 64-bit hash of what is counted once.
    """

    of: str
    by: Reducer

    @property
    def row_sql(self) -> str:
        """The value that one row contributes, as BIGINT. A NULL contributes nothing: 0 to a sum."""
        value = f"cast({self.of} as bigint)"
        return f"coalesce({value}, 0L)" if self.by == "sum" else value

    def merge(self, left: Value, right: Value) -> Value:
        """Two values of the same cell from disjoint sets of events, as one."""
        if left is None or right is None:
            return right if left is None else left
        merged: Value = _MERGE[self.by](left, right)
        return merged


_MERGE: dict[Reducer, Callable[[Any, Any], Any]] = {"sum": lambda a, b: a + b, "min": min, "max": max, "union": united}


State = tuple[Value, ...]
"""The values of an aggregate's columns, in their order."""
Shown = Value | Mapping[str, Value | Sequence[Value]]
"""A state as the API has it: the value itself, or an object of a composite one."""


class Aggregate(Protocol):
    """Merging is not asked of an aggregate: it follows from the reducers of its columns (`Column.merge`)."""

    @property
    def columns(self) -> Mapping[str, Column]:
        """The columns by suffix, in order. A single column has the suffix ""."""

    def present(self, state: State) -> int | Fraction | None:
        """The number a person reads, exact; None means that there is none."""

    def shown(self, state: State) -> Shown:
        """The state itself."""


class Number:
    """The state is the number itself."""

    def present(self, state: State) -> int | None:
        """The number."""
        [number] = state
        return None if number is None else int(number)

    def shown(self, state: State) -> int | None:
        """The number."""
        return self.present(state)


@dataclass(frozen=True)
class Count(Number):
    """The state is the number. `where`: a Spark SQL condition; a row where it is NULL does not count."""

    where: str = "true"

    @property
    def columns(self) -> Mapping[str, Column]:
        """One whole number, added."""
        return {"": Column(f"if({self.where}, 1L, 0L)", "sum")}


@dataclass(frozen=True)
class Sum(Number):
    """The state is the total. `of`: Spark SQL giving a whole number; NULL adds nothing. No float is ever summed."""

    of: str

    @property
    def columns(self) -> Mapping[str, Column]:
        """One whole number, added."""
        return {"": Column(self.of, "sum")}


@dataclass(frozen=True)
class Min(Number):
    """The state is the least value, or None while no row had one. `of`: Spark SQL giving a whole number or NULL."""

    of: str

    @property
    def columns(self) -> Mapping[str, Column]:
        """One whole number; of two the least stays."""
        return {"": Column(self.of, "min")}


@dataclass(frozen=True)
class Max(Number):
    """The state is the greatest value, or None while no row had one. `of`: Spark SQL giving a whole number or NULL."""

    of: str

    @property
    def columns(self) -> Mapping[str, Column]:
        """One whole number; of two the greatest stays."""
        return {"": Column(self.of, "max")}


@dataclass(frozen=True)
class Mean:
    """The state is (sum, n): an average of averages is wrong. `of`: Spark SQL, a whole number; NULL does not count."""

    of: str

    @property
    def columns(self) -> Mapping[str, Column]:
        """The sum of the values and their number."""
        return {"sum": Column(self.of, "sum"), "n": Column(f"if(({self.of}) is null, 0L, 1L)", "sum")}

    def present(self, state: State) -> Fraction | None:
        """Exact; rounded once, where it is printed. None without a value."""
        total, n = (int(value or 0) for value in state)
        return Fraction(total, n) if n else None

    def shown(self, state: State) -> Shown:
        """The sum and the number."""
        return dict(zip(("sum", "n"), state, strict=True))


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


@dataclass(frozen=True)
class CountDistinct:
    """The state is a sketch (`views.core.sketch`). `of`: Spark SQL of what is told apart; NULL does not count."""

    of: str

    @property
    def columns(self) -> Mapping[str, Column]:
        """One sketch; of two their union."""
        return {"": Column(f"if(({self.of}) is null, null, xxhash64({self.of}))", "union")}

    def present(self, state: State) -> int | None:
        """The estimate, rounded: exact up to 384."""
        [sketch] = state
        return round(estimate(sketch)) if isinstance(sketch, str) else None

    def shown(self, state: State) -> str | None:
        """The sketch in base64, as DataSketches reads it."""
        [sketch] = state
        return sketch if isinstance(sketch, str) else None


STAY_EDGES = tuple(minutes * 60_000 for minutes in (0, 2, 5, 10, 15, 20, 30, 45, 60, 90, 120, 180))
WAIT_EDGES = tuple(seconds * 1000 for seconds in (0, 15, 30, 60, 120, 180, 240, 300, 420, 600, 900, 1800))
