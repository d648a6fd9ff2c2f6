"""What a block of cells has columns for: a view, or the events that wait for batch."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

from views.core.aggregates.column import Column, Value


class Shape(Protocol):
    """The part of a view that says how its cells are written."""

    @property
    def name(self) -> str:
        """Under which the blocks lie."""

    @property
    def dimensions(self) -> Iterable[str]:
        """The names of the dimensions, in order."""

    @property
    def columns(self) -> Mapping[str, Column]:
        """The state columns by name, in order."""


@dataclass(frozen=True)
class _Pseudo:
    name: str
    dimensions: tuple[str, ...]
    columns: Mapping[str, Column]


WAITING: Shape = _Pseudo("waiting", ("source",), {"events": Column("1", "sum")})
"""The pseudo-view of events too old for speed (R6): a cell per window and source, whose state is their number."""


def number_of(waiting: tuple[Value, ...]) -> int:
    """How many events the states of a waiting cell stand for."""
    [events] = waiting
    return int(events or 0)
