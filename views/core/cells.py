"""Cells as they are stored: columnar JSON blocks, and what such blocks have columns for."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple, Protocol

import orjson

from views.core.aggregates import Column, Value

States = tuple[Value, ...]
"""All state columns of one cell of a view, in the order of `View.columns`."""


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


WINDOW_KEY = "window"


class CellKey(NamedTuple):
    """Which cell of a view and store: the window's start in seconds since 1970, and the dimensions' texts in order."""

    window: int
    dimensions: tuple[str | None, ...]


class Addition(NamedTuple):
    """What one micro-batch of speed adds to a cell; `epoch` is that of the events' receipt."""

    key: CellKey
    epoch: datetime
    states: States


def read_block(shape: Shape, block: str | bytes) -> Iterator[tuple[CellKey, States]]:
    """The cells of a block. KeyError if it lacks a column of the shape: it was written for another definition."""
    columns: dict[str, list[Value]] = orjson.loads(block)
    windows: list[int] = columns[WINDOW_KEY]  # type: ignore[assignment]
    dimensions: list[list[str | None]] = [columns[name] for name in shape.dimensions]  # type: ignore[misc]
    states = [columns[name] for name in shape.columns]
    keys: Iterator[tuple[str | None, ...]] = zip(*dimensions, strict=True) if dimensions else iter([()] * len(windows))
    for window, key, values in zip(windows, keys, zip(*states, strict=True), strict=True):
        yield CellKey(window, key), values


def write_block(shape: Shape, cells: Sequence[tuple[CellKey, States]]) -> str:
    """The block of these cells; `batch_layer.blocks` writes the same form from Arrow."""
    block: dict[str, Sequence[Value | str]] = {WINDOW_KEY: [key.window for key, _ in cells]}
    for place, name in enumerate(shape.dimensions):
        block[name] = [key.dimensions[place] for key, _ in cells]
    for place, name in enumerate(shape.columns):
        block[name] = [states[place] for _, states in cells]
    return orjson.dumps(block).decode()
