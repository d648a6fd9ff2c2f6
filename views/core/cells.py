"""Cells as they are written: a block of one (view, store, day) from batch, one row per (cell, epoch) from speed.

A block is columnar JSON, `{"window": [...], "<dimension>": [...], "<state column>": [...]}`: one entry per cell,
windows in seconds since 1970. It never changes once written, because it belongs to the run that wrote it (R11).
Text, so that an operator can read it; whole numbers only, so that reading it back is exact.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import orjson

from views.core.aggregates import Value
from views.core.view import States, View

WINDOW_KEY = "window"
WAITING = "waiting"
"""The pseudo-view of events too old for speed (R6): a row per source, store and window; its state is their number."""


class CellKey(NamedTuple):
    """Which cell of a view and store: the window's start in seconds since 1970, and the dimensions' texts in order."""

    window: int
    dimensions: tuple[str | None, ...]


def read_block(view: View, block: str | bytes) -> Iterator[tuple[CellKey, States]]:
    """The cells of a block. KeyError if it lacks a column of the view: it was written for another definition."""
    columns: dict[str, list[Value]] = orjson.loads(block)
    windows: list[int] = columns[WINDOW_KEY]  # type: ignore[assignment]
    dimensions: list[list[str | None]] = [columns[name] for name in view.dimensions]  # type: ignore[misc]
    states = [columns[name] for name in view.columns]
    keys: Iterator[tuple[str | None, ...]] = zip(*dimensions, strict=True) if dimensions else iter([()] * len(windows))
    for window, key, values in zip(windows, keys, zip(*states, strict=True), strict=True):
        yield CellKey(window, key), values


def write_block(view: View, cells: Sequence[tuple[CellKey, States]]) -> str:
    """The block of these cells: what batch writes through Spark SQL, here for tests and fakes."""
    block: dict[str, Sequence[Value | str]] = {WINDOW_KEY: [key.window for key, _ in cells]}
    for place, name in enumerate(view.dimensions):
        block[name] = [key.dimensions[place] for key, _ in cells]
    for place, name in enumerate(view.columns):
        block[name] = [states[place] for _, states in cells]
    return orjson.dumps(block).decode()


def write_values(values: Sequence[Value | str]) -> str:
    """States or dimensions of one speed row, as a JSON list."""
    return orjson.dumps(values).decode()


def read_states(text: str) -> States:
    """The states of one speed row."""
    return tuple(orjson.loads(text))


def read_dimensions(text: str) -> tuple[str | None, ...]:
    """The dimensions of one speed row."""
    return tuple(orjson.loads(text))
