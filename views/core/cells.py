"""Cells as they are written: from batch a block of a (view, store, day), from speed for each micro-batch and epoch.

A block is columnar JSON, `{"window": [...], "<dimension>": [...], "<state column>": [...]}`: one entry per cell,
windows in seconds since 1970. It never changes once written, as it belongs to its run (R11) or micro-batch (R7).
Text, so that an operator can read it; whole numbers only, so that reading it back is exact.
"""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

import orjson

from views.core.shape import Shape
from views.core.view import States

if TYPE_CHECKING:
    from views.core.aggregates import Value

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
