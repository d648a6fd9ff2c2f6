"""The states of one cell, from both layers. Pure: no I/O, no clock.

    answer(cell) = batch(cell, events received before the cut)  (+)  speed(cell, events received at or after the cut)

The cut is an exclusive upper bound on `received_at`: rows of epochs before it are already inside `batch`, and adding
them would count a sale twice.
"""

from collections.abc import Iterable, Iterator
from datetime import datetime
from functools import reduce
from typing import NamedTuple

from views.core import States, View
from views.core.cells import Addition, CellKey
from views.core.cut import is_fresh


class Cell(NamedTuple):
    """One cell as both layers see it. `batch` or `speed` is None where that layer never saw an event of it."""

    key: CellKey
    batch: States | None
    speed: States | None
    merged: States


def fresh(rows: Iterable[Addition], cut: datetime) -> Iterator[Addition]:
    """The rows that speed answers for."""
    return (row for row in rows if is_fresh(row.epoch, cut))


def merge(view: View, batch: States | None, speed: Iterable[Addition], cut: datetime) -> States | None:
    """None means that no event ever reached this cell. It is not a zero."""
    states = [row.states for row in fresh(speed, cut)]
    parts = states if batch is None else [batch, *states]
    return reduce(view.merge, parts) if parts else None


def merge_cells(
    view: View, batch: Iterable[tuple[CellKey, States]], speed: Iterable[Addition], cut: datetime
) -> Iterator[Cell]:
    """Every cell that either layer knows, once. `batch` names a cell at most once, `speed` once for each addition."""
    provisional: dict[CellKey, list[Addition]] = {}
    for row in fresh(speed, cut):
        provisional.setdefault(row.key, []).append(row)
    for key, states in batch:
        rows = provisional.pop(key, None)
        yield _cell(view, key, states, rows) if rows else Cell(key, states, None, states)
    for key, rows in provisional.items():
        yield _cell(view, key, None, rows)


def _cell(view: View, key: CellKey, batch: States | None, rows: list[Addition]) -> Cell:
    speed = reduce(view.merge, (row.states for row in rows))
    return Cell(key, batch, speed, speed if batch is None else view.merge(batch, speed))
