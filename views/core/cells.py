"""Cells as they are stored: from batch a block of a (view, store, day), from speed for each micro-batch and epoch.

A block is columnar JSON, `{"window": [...], "<dimension>": [...], "<state column>": [...]}`: one entry per cell,
windows in seconds since 1970. It never changes once written, as it belongs to its run (R11) or micro-batch (R7). It is
text, so that an operator can read it, and has whole numbers only, so that reading it back is exact.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple, Protocol

import orjson

from views.core.aggregates import Column, Value

States = tuple[Value, ...]
"""All state columns of one cell of a view, in the order of `View.columns`."""


class Shape(Protocol):
    """What the cells of a block are columns of: a view, or the events that wait for batch."""

    @property
    def name(self) -> str:
        """The name that the blocks are stored under."""

    @property
    def dimensions(self) -> Iterable[str]:
        """The names of the dimensions, in order."""

    @property
    def columns(self) -> Mapping[str, Column]:
        """The state columns by name, in order."""


@dataclass(frozen=True)
class _PseudoView:
    name: str
    dimensions: tuple[str, ...]
    columns: Mapping[str, Column]


WAITING: Shape = _PseudoView("waiting", ("source",), {"events": Column("1", "sum")})
"""The pseudo-view of events that are too old for speed (R6): a cell per window and source, with their number."""


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
    for at, name in enumerate(shape.dimensions):
        block[name] = [key.dimensions[at] for key, _ in cells]
    for at, name in enumerate(shape.columns):
        block[name] = [states[at] for _, states in cells]
    return orjson.dumps(block).decode()
