"""Aggregates: states that merge, how a row contributes to them, and how they are presented.

An aggregate consists of columns; a column is a row expression in Spark SQL and a reducer. Nothing else in the project
says how states add up: Arrow joins the rows of a micro-batch and of a day as `ARROW_FUNCTION` says, and `Column.merge`
merges the layers. There is no class for anything that cannot be merged.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, Protocol

from views.core.sketch import estimate, united

Reducer = Literal["sum", "min", "max", "union"]
LISTED = "list"
ARROW_FUNCTION: Mapping[Reducer, str] = {"sum": "sum", "min": "min", "max": "max", "union": LISTED}
"""Arrow's aggregation for each reducer. A list consists of hashes; the state is their sketch, `views.core.sketch`."""
Value = int | str | None
"""One column of a state. None (NULL in SQL): no row had a value; a sum is 0 instead. Text is a sketch."""


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
    """Columns, and how their values are shown. Merging follows from the reducers of the columns (`Column.merge`)."""

    @property
    def columns(self) -> Mapping[str, Column]:
        """The columns by suffix, in order. A single column has the suffix ""."""

    def present(self, state: State) -> int | Fraction | None:
        """The number a person reads, exact; None means that there is none."""

    def shown(self, state: State) -> Shown:
        """The state itself."""


class _Number:
    """An aggregate whose state is one number."""

    def present(self, state: State) -> int | None:
        """The number."""
        [number] = state
        return None if number is None else int(number)

    def shown(self, state: State) -> int | None:
        """The number."""
        return self.present(state)


@dataclass(frozen=True)
class Count(_Number):
    """The number of rows. `where`: a Spark SQL condition; a row where it is NULL does not count."""

    where: str = "true"

    @property
    def columns(self) -> Mapping[str, Column]:
        """One whole number, added."""
        return {"": Column(f"if({self.where}, 1L, 0L)", "sum")}


@dataclass(frozen=True)
class Sum(_Number):
    """A total. `of`: Spark SQL giving a whole number (minor units, milliseconds); NULL adds nothing. Never a float."""

    of: str

    @property
    def columns(self) -> Mapping[str, Column]:
        """One whole number, added."""
        return {"": Column(self.of, "sum")}


@dataclass(frozen=True)
class Min(_Number):
    """The smallest value, None while no row had one. `of`: Spark SQL giving a whole number or NULL."""

    of: str

    @property
    def columns(self) -> Mapping[str, Column]:
        """One whole number; the smaller of two."""
        return {"": Column(self.of, "min")}


@dataclass(frozen=True)
class Max(_Number):
    """The greatest value, None while no row had one. `of`: Spark SQL giving a whole number or NULL."""

    of: str

    @property
    def columns(self) -> Mapping[str, Column]:
        """One whole number; the greater of two."""
        return {"": Column(self.of, "max")}


@dataclass(frozen=True)
class Mean:
    """The average: the state is (sum, n), because an average of averages is wrong.

    `of`: Spark SQL giving a whole number; NULL does not count.
    """

    of: str

    @property
    def columns(self) -> Mapping[str, Column]:
        """The sum of the values and their number."""
        return {"sum": Column(self.of, "sum"), "n": Column(f"if(({self.of}) is null, 0L, 1L)", "sum")}

    def present(self, state: State) -> Fraction | None:
        """Exact; rounded only when printed. None without a value."""
        total, n = (int(value or 0) for value in state)
        return Fraction(total, n) if n else None

    def shown(self, state: State) -> Shown:
        """The sum and the number."""
        return dict(zip(("sum", "n"), state, strict=True))


def percentile(
    edges: Sequence[int], counts: Sequence[int], least: object, most: object, percent: int
) -> Fraction | None:
    """The value below which `percent` % of the values lie, assuming an even spread within a bin.

    With n values, in the first bin [lo, hi), clipped to [least, most], that has c > 0 values and 100 (C + c) >= p n,
    where C values lie before it: lo + (p n - 100 C)(hi - lo) / (100 c). An exact fraction, the same for every order of
    merges.

    Args:
        edges: Where bins begin, rising. The last bin is open.
        counts: Values per bin.
        least: The smallest value, None without values.
        most: The greatest value, None without values.
        percent: p, from 0 to 100.

    Returns:
        None without values.
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


STAY_EDGES = tuple(minutes * 60_000 for minutes in (0, 2, 5, 10, 15, 20, 30, 45, 60, 90, 120, 180))
"""Where the bins of stays begin, in milliseconds. One scale per kind of duration, so that histograms compare."""
WAIT_EDGES = tuple(seconds * 1000 for seconds in (0, 15, 30, 60, 120, 180, 240, 300, 420, 600, 900, 1800))
"""Where the bins of waits begin, in milliseconds."""
_MEDIAN = 50


@dataclass(frozen=True)
class Histogram:
    """The distribution of whole numbers: the state is (a count for each bin, min, max).

    Attributes:
        of: Spark SQL giving a whole number; NULL does not count.
        edges: Where bins begin, rising: bins are [lo, hi), the last is open. Smaller values are in the first bin.
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
        return percentile(self.edges, _whole(counts), least, most, _MEDIAN)

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
    """The number of different values, estimated by a sketch (`views.core.sketch`), because an exact set would grow.

    `of`: Spark SQL of the values to distinguish; NULL does not count.
    """

    of: str

    @property
    def columns(self) -> Mapping[str, Column]:
        """One sketch; two are united."""
        return {"": Column(f"if(({self.of}) is null, null, xxhash64({self.of}))", "union")}

    def present(self, state: State) -> int | None:
        """The estimate, rounded: exact up to 384."""
        [sketch] = state
        return round(estimate(sketch)) if isinstance(sketch, str) else None

    def shown(self, state: State) -> str | None:
        """The sketch in base64, as DataSketches reads it."""
        [sketch] = state
        return sketch if isinstance(sketch, str) else None
