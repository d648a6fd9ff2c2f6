"""One value of a state: how a row makes it, and how two of them become one.

Arrow joins the rows of a micro-batch and of a day as `GATHERED` says, and the layers are merged with the Python below.
Nothing else in the project says how states add up.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from views.core.sketch import united

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
