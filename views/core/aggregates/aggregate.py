"""What every aggregate has: columns that make its state, and how it is shown. What cannot merge has no class."""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Protocol

from views.core.aggregates.column import Column, Value

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
