"""States by columns: many cells merged at once, exactly. Whole numbers of 64 bits, guarded against overflow.

StateColumn      the values of one state, one per row
NumberedSeries   values of dimensions by number, made when they are shown
MergedStates     the states of all points, one column per state; a point is a group of stores, a series and a label
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, overload

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from serving_layer.query.aggregate import Group, PointStates, StateSums
from serving_layer.store.day_cells import Texts, Vocabulary
from views.core.aggregates import Reducer, Value
from views.core.sketch import united

Integers = npt.NDArray[np.int64]
Booleans = npt.NDArray[np.bool_]
MOST = 2**62
"""No sum of absolute values may reach it."""
MOST_PLACES = 8_000_000
"""How many points there may be before only those that occur get a place."""
_INT = np.iinfo(np.int64)


class NeedsWindowsError(Exception):
    """Only whoever merges cells one by one can answer: a sum may need more than 64 bits, or currencies are mixed."""


def occurring(numbers: Integers, size: int) -> tuple[Integers, Integers]:
    """The different numbers, all below `size`, in order; and the place of each number among them."""
    if size > MOST_PLACES:
        found, places = np.unique(numbers, return_inverse=True)
        return found, places
    place = np.zeros(size, np.int64)
    place[numbers] = 1
    found = np.flatnonzero(place)
    if len(found) == size:
        return found, numbers
    place[found] = np.arange(len(found))
    return found, place[numbers]


@dataclass(frozen=True)
class StateColumn:
    """The values of one state, one per row.

    Attributes:
        by: how they are merged.
        values: whole numbers, 0 where there is none; of sketches objects, None where there is none.
        known: where there is a value; None: everywhere.
    """

    by: Reducer
    values: npt.NDArray[Any]
    known: Booleans | None = None

    @classmethod
    def of(cls, by: Reducer, stored: pa.ChunkedArray, more: Sequence[Value]) -> "StateColumn":
        """Values that were stored, and more behind them."""
        if by == "union":
            texts = np.empty(len(stored) + len(more), object)
            texts[:] = [*stored.to_pylist(), *more]
            return cls(by, texts, np.array([each is not None for each in texts], bool))
        numbers = [(chunk.fill_null(0) if chunk.null_count else chunk).to_numpy() for chunk in stored.chunks]
        numbers.append(np.array([0 if each is None else each for each in more], np.int64))
        if not stored.null_count and None not in more:
            return cls(by, np.concatenate(numbers))
        known = [chunk.is_valid().to_numpy(zero_copy_only=False) for chunk in stored.chunks]
        known.append(np.array([each is not None for each in more], bool))
        return cls(by, np.concatenate(numbers), np.concatenate(known))

    @classmethod
    def joined(cls, columns: Sequence["StateColumn"]) -> "StateColumn":
        """The values of several columns of one state, which follow each other."""
        values = np.concatenate([each.values for each in columns])
        if all(each.known is None for each in columns):
            return cls(columns[0].by, values)
        known = [np.ones(len(each.values), bool) if each.known is None else each.known for each in columns]
        return cls(columns[0].by, values, np.concatenate(known))

    def where(self, rows: npt.NDArray[Any]) -> "StateColumn":
        """The column of some rows."""
        return StateColumn(self.by, self.values[rows], None if self.known is None else self.known[rows])

    def merged(self, places: Integers, size: int) -> "StateColumn":
        """Merge the values of rows that have the same place; `places`: of each row, below `size`.

        Raises:
            NeedsWindowsError: a sum may need more than 64 bits.
        """
        values, has = self.values, None
        if self.known is not None:
            places, values = places[self.known], values[self.known]
            has = np.zeros(size, bool)
            has[places] = True
        if self.by == "union":
            return StateColumn(self.by, _united(values, places, size), has)
        if self.by == "sum":
            if len(values) and len(values) * max(int(values.max()), -int(values.min())) >= MOST:
                raise NeedsWindowsError
            found = np.zeros(size, np.int64)
            np.add.at(found, places, values)
            return StateColumn(self.by, found, has)
        found = np.full(size, _INT.max if self.by == "min" else _INT.min)
        (np.minimum if self.by == "min" else np.maximum).at(found, places, values)
        return StateColumn(self.by, found, has)

    def listed(self) -> list[Value]:
        """The values as Python has them."""
        values: list[Value] = self.values.tolist()
        if self.known is None:
            return values
        return [value if known else None for value, known in zip(values, self.known.tolist(), strict=True)]


def _united(sketches: npt.NDArray[Any], places: Integers, size: int) -> npt.NDArray[Any]:
    listed: dict[int, list[str]] = {}
    for place, sketch in zip(places.tolist(), sketches.tolist(), strict=True):
        listed.setdefault(place, []).append(sketch)
    found = np.empty(size, object)
    for place, of in listed.items():
        found[place] = reduce(united, of)
    return found


@dataclass(frozen=True)
class NumberedSeries(Sequence[Group]):
    """Values of dimensions by number, each made when it is needed: few of very many are shown.

    Attributes:
        columns: per dimension the value of every series.
        size: how many there are; one, if there are no dimensions.
    """

    columns: Sequence[Texts]
    size: int = 1

    @classmethod
    def of(cls, group: Group) -> "NumberedSeries":
        """One series."""
        columns = [Vocabulary() for _ in group]
        return cls([Texts(of, of.numbers([text])) for of, text in zip(columns, group, strict=True)])

    @classmethod
    def of_rows(cls, columns: Sequence[Texts], rows: int) -> tuple["NumberedSeries", Integers]:
        """The different series of rows, and per row the number of its own. `columns`: one per dimension.

        Raises:
            NeedsWindowsError: there may be more than 2^62.
        """
        code, sizes = np.zeros(rows, np.int64), [len(each.vocabulary.texts) for each in columns]
        if math.prod(sizes) >= MOST:
            raise NeedsWindowsError
        for each, size in zip(columns, sizes, strict=True):
            code *= size
            code += each.numbers
        if not columns:
            return cls([]), code
        rest, places = occurring(code, math.prod(sizes))
        count, found = len(rest), list[Texts]()
        for each, size in zip(reversed(columns), reversed(sizes), strict=True):
            rest, numbers = np.divmod(rest, size)
            found.append(Texts(each.vocabulary, numbers.astype(np.int32)))
        return cls(found[::-1], count), places

    @classmethod
    def together(cls, parts: Sequence["NumberedSeries"]) -> tuple["NumberedSeries", list[Integers]]:
        """The different series of all parts, and for each part their numbers by its own numbers.

        Raises:
            NeedsWindowsError: see `of_rows`.
        """
        columns = [Texts.joined(each) for each in zip(*(part.columns for part in parts), strict=True)]
        sizes = list(map(len, parts))
        series, places = cls.of_rows(columns, sum(sizes))
        return series, np.split(places, np.cumsum(sizes)[:-1])

    def __len__(self) -> int:
        """How many there are."""
        return self.size

    @overload
    def __getitem__(self, at: int) -> Group: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[Group]: ...
    def __getitem__(self, at: int | slice) -> Group | Sequence[Group]:
        """The values of a number, or of several."""
        if isinstance(at, slice):
            return [self[each] for each in range(self.size)[at]]
        at = range(self.size)[at]
        return tuple(of.texts[numbers[at]] for of, numbers in self.columns)


@dataclass(frozen=True)
class MergedStates:
    """The states of every point that has cells, for terms that take the same cells of a view.

    Attributes:
        sums: which terms, and the columns that are merged for them.
        series: the values of dimensions by number.
        labels: the numbers of labels by number.
        group: of each point the number of its group of stores.
        place: of each point the number of its series.
        label: of each point the number of its label.
        provisional: of each point whether speed rows are in it.
        columns: the states, one value per point.
    """

    sums: StateSums
    series: NumberedSeries
    labels: Sequence[int]
    group: Integers
    place: Integers
    label: Integers
    provisional: Booleans
    columns: Sequence[StateColumn]

    @classmethod
    def of(  # noqa: PLR0913 - the key of each row in three parts, and what is merged
        cls,
        sums: StateSums,
        series: NumberedSeries,
        labels: Sequence[int],
        *,
        key: tuple[Integers, Integers, Integers],
        provisional: Booleans,
        columns: Sequence[StateColumn],
    ) -> "MergedStates":
        """Merge rows. `key`: per row the numbers of group, series and label.

        Raises:
            NeedsWindowsError: a sum may need more than 64 bits.
        """
        group, place, label = key
        whole = group * len(series)
        whole += place
        whole *= len(labels)
        whole += label
        size = (int(group.max()) + 1 if len(group) else 0) * len(series) * len(labels)
        at, whole = occurring(whole, size)
        is_provisional = np.zeros(len(at), bool)
        is_provisional[whole[provisional]] = True
        merged = [each.merged(whole, len(at)) for each in columns]
        rest = at // len(labels) if labels else at
        parts = rest // len(series), rest % len(series), at % len(labels)
        return cls(sums, series, labels, *parts, is_provisional, merged)

    @classmethod
    def together(cls, parts: Sequence["MergedStates"]) -> "MergedStates":
        """The states of all cells that are in any part. All number groups and labels alike.

        Raises:
            NeedsWindowsError: a sum may need more than 64 bits.
        """
        if len(parts) == 1:
            return parts[0]
        series, numbers = NumberedSeries.together([each.series for each in parts])
        return cls.of(
            parts[0].sums,
            series,
            parts[0].labels,
            key=(
                np.concatenate([each.group for each in parts]),
                np.concatenate([own[each.place] for own, each in zip(numbers, parts, strict=True)]),
                np.concatenate([each.label for each in parts]),
            ),
            provisional=np.concatenate([each.provisional for each in parts]),
            columns=[StateColumn.joined(each) for each in zip(*(part.columns for part in parts), strict=True)],
        )

    def where(self, rows: Booleans) -> "MergedStates":
        """Some of the points."""
        columns = [each.where(rows) for each in self.columns]
        parts = self.group[rows], self.place[rows], self.label[rows], self.provisional[rows]
        return MergedStates(self.sums, self.series, self.labels, *parts, columns)

    def as_one_series(self, name: Group) -> "MergedStates":
        """The states of all points with the same label, of all series."""
        one = np.zeros_like(self.place)
        return MergedStates.of(
            self.sums,
            NumberedSeries.of(name),
            self.labels,
            key=(one, one, self.label),
            provisional=self.provisional,
            columns=self.columns,
        )

    def points(self) -> dict[Group, dict[int, PointStates]]:
        """The points of one group of stores, as `StateSums` has them."""
        found: dict[Group, dict[int, PointStates]] = {}
        states: Iterable[tuple[Value, ...]] = zip(*(each.listed() for each in self.columns), strict=True)
        rows = zip(self.place.tolist(), self.label.tolist(), self.provisional.tolist(), states, strict=True)
        for place, label, is_provisional, values in rows:
            at = found.setdefault(self.series[place], {})
            at[self.labels[label]] = PointStates(list(values), is_provisional)
        return found
