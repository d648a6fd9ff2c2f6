"""Cells by the names of their dimensions and states: cells of two definitions of a view have nothing else in common."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import orjson

from views.core.aggregates.column import Column, Value
from views.core.cells import WINDOW_KEY
from views.core.view import View


class NamedKey(NamedTuple):
    """The window's start, and (name, text) of each dimension."""

    window: int
    dimensions: tuple[tuple[str, str | None], ...]


NamedCells = dict[NamedKey, dict[str, Value]]
_SUM = Column("", "sum")


def add_block(cells: NamedCells, view: View, block: str | bytes) -> None:
    """Add the cells of a block, which may have been written for another definition than `view`, the one of now.

    What is text is a dimension; a state that the view no longer has is a sum.
    """
    columns: Mapping[str, list[Value | str]] = orjson.loads(block)
    windows = columns[WINDOW_KEY]
    names = [name for name in columns if name != WINDOW_KEY]
    texts = [
        name for name in names if name not in view.columns and (name in view.dimensions or _is_text(columns[name]))
    ]
    numbers = [name for name in names if name not in texts]
    for at, window in enumerate(windows):
        key = NamedKey(int(window or 0), tuple(sorted((name, _text(columns[name][at])) for name in texts)))
        own = cells.setdefault(key, {})
        for name in numbers:
            value = _number(columns[name][at])
            own[name] = view.columns.get(name, _SUM).merge(own[name], value) if name in own else value


def _is_text(values: Iterable[Value | str]) -> bool:
    return any(isinstance(value, str) for value in values)


def _text(value: Value | str) -> str | None:
    return None if value is None else str(value)


def _number(value: Value | str) -> Value:
    return value if value is None or isinstance(value, str) else int(value)
