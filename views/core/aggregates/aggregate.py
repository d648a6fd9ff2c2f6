"""What every aggregate has: columns that make its state, and one way to present it. What cannot merge has no class."""

from collections.abc import Mapping
from fractions import Fraction
from typing import Protocol

from views.core.aggregates.column import Column, Value

State = tuple[Value, ...]
"""The values of an aggregate's columns, in their order."""


class Aggregate(Protocol):
    """Merging is not asked of an aggregate: it follows from the reducers of its columns (`Column.merge`)."""

    @property
    def columns(self) -> Mapping[str, Column]:
        """The columns by suffix, in order. A single column has the suffix ""."""

    def present(self, state: State) -> int | Fraction | None:
        """The number a person reads, exact; None means that there is none."""
