"""The rows that totals from day cells are made of, by columns."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from serving_layer.query.day_columns import Booleans, Integers, StateColumn
from serving_layer.store.day_cells import Texts, ViewDays
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

    def dimension(self, name: str) -> Texts:
        """The value of a dimension per row."""
        vocabulary, numbers = self.days.dimension(name)
        numbers = numbers[self.stored]
        if self.speed:
            place = list(self.days.view.dimensions).index(name)
            more = vocabulary.numbers(row.addition.key.dimensions[place] for row in self.speed)
            numbers = np.concatenate([numbers, more])
        return Texts(vocabulary, numbers)
