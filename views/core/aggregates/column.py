"""One whole number of a state: how a row makes it, and how two of them become one.

A reducer is a word that every engine knows: Arrow reduces the rows of a micro-batch and of a day with it, and the
layers are merged with the Python below. Nothing else in the project says how states add up.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

Reducer = Literal["sum", "min", "max"]
Value = int | None
"""NULL in SQL, None in Python: no row had a value. Only `min` and `max` can be None; a sum of nothing is 0."""


@dataclass(frozen=True)
class Column:
    """`of` is a Spark SQL expression over one row (a whole number or NULL), `by` the reducer that joins the rows."""

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
        return _MERGE[self.by](left, right)


_MERGE: dict[Reducer, Callable[[int, int], int]] = {"sum": lambda a, b: a + b, "min": min, "max": max}
