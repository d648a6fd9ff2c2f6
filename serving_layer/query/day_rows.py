"""The rows that totals from day cells are made of, by columns, and the numbers of their series."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, overload

import numpy as np

from serving_layer.query.aggregate import Group, StateSums
from serving_layer.query.day_columns import Booleans, Integers, StateColumn, occurring
from serving_layer.store.day_cells import ViewDays
from views.core.cells import Addition


class FreshRow(NamedTuple):
    """A speed row that counts. `store`, `label`: the place of its store, and of its label among those of the query."""

    store: int
    label: int
    addition: Addition


@dataclass
class DayRows:
    """The cells of one view by columns: day cells, then speed rows.

    Attributes:
        days: the day cells.
        stored: the rows of `days` that count; a slice of all of them if all do.
        speed: the speed rows that count.
        store: the place of the store per row.
        label: the number of the label per row.
    """

    days: ViewDays
    stored: Integers | slice
    speed: Sequence[FreshRow]
    store: Integers
    label: Integers

    @property
    def stored_count(self) -> int:
        """How many rows of `days` count."""
        return len(self.store) - len(self.speed)

    @cached_property
    def provisional(self) -> Booleans:
        """Whether the row is a speed row."""
        return np.arange(len(self.store)) >= self.stored_count

    def state(self, name: str) -> StateColumn:
        """The values of a state per row."""
        place = list(self.days.view.columns).index(name)
        more = [row.addition.states[place] for row in self.speed]
        stored = self.days.state(name)
        if not isinstance(self.stored, slice):
            stored = stored.take(self.stored)
        return StateColumn.of(self.days.view.columns[name].by, stored, more)

    def dimension(self, name: str) -> tuple[Integers, Sequence[str | None]]:
        """The number of the value of a dimension per row, and the values."""
        place = list(self.days.view.dimensions).index(name)
        texts = self.days.dimension(name)
        if not self.speed:
            return texts.numbers[self.stored], texts.values
        values = list(texts.values)
        number = {text: at for at, text in enumerate(values)}
        more = []
        for row in self.speed:
            text = row.addition.key.dimensions[place]
            more.append(number.setdefault(text, len(number)))
        values += list(number)[len(values) :]
        return np.concatenate([texts.numbers[self.stored], np.array(more, np.int64)]), values


class DaySeries:
    """Numbers the values of dimensions. Sums that are split by all of `by` share them, so that series meet."""

    def __init__(self, by: Sequence[str], sums: Sequence[StateSums], *, is_sliced: bool) -> None:
        """`is_sliced`: the rows of a view come in several slices, whose series have to meet."""
        self._by = tuple(by)
        self._is_shared = sum(each.split == self._by for each in sums) > 1
        self._is_sliced = is_sliced
        self._numbers: dict[tuple[str, ...], dict[Group, int]] = {}

    def numbered(self, sums: StateSums, rows: DayRows, used: Integers) -> tuple[Integers, Sequence[Group]]:
        """The number of the series per row of `used`, and all series."""
        if not sums.split:
            return np.zeros(len(used), np.int64), [()]
        code, values = np.zeros(len(used), np.int64), list[Sequence[str | None]]()
        for name in sums.own_split:
            numbers, own = rows.dimension(name)
            code = code * len(own) + (numbers[used] if len(used) < len(numbers) else numbers)
            values.append(own)
        found, code = occurring(code, math.prod(map(len, values)))
        series = CodedSeries(found, values)
        if not (self._is_sliced or (self._is_shared and sums.split == self._by)):
            return code, series
        known = self._numbers.setdefault(sums.split, {})
        places = [known.setdefault(group, len(known)) for group in series]
        return np.array(places, np.int64)[code], list(known)


class CodedSeries(Sequence[Group]):
    """Values of dimensions by number, each made when it is needed: few of very many are shown."""

    def __init__(self, codes: Integers, values: Sequence[Sequence[str | None]]) -> None:
        """`codes`: the places of the values of every dimension, as one number. `values`: of every dimension."""
        self._codes, self._values = codes, values

    def __len__(self) -> int:
        """How many there are."""
        return len(self._codes)

    @overload
    def __getitem__(self, at: int) -> Group: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[Group]: ...
    def __getitem__(self, at: int | slice) -> Group | Sequence[Group]:
        """The values of a number, or of several."""
        if isinstance(at, slice):
            return CodedSeries(self._codes[at], self._values)
        code, group = int(self._codes[at]), list[str | None]()
        for own in reversed(self._values):
            code, place = divmod(code, len(own))
            group.append(own[place])
        return tuple(reversed(group))
