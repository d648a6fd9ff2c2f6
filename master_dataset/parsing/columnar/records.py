"""Typed records of a batch, and what is derived from them: the columns of payloads."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from master_dataset.parsing.columnar.columns import Ints, LineColumns, Mask, offsets_of
from master_dataset.registry.stores import DEFAULT_TERMS, Terms


class TypedRecords(NamedTuple):
    """The fields of records as columns, of which some cells may not be sure.

    Attributes:
        columns: By field; LineColumns of a list.
        terms: The terms of all stores.
        term: The number of the terms of each record.
    """

    columns: Mapping[str, Any]
    terms: Sequence[Terms]
    term: Ints

    @property
    def number(self) -> int:
        """How many records there are."""
        return len(self.term)

    def lines(self, name: str) -> LineColumns:
        """The column of a list."""
        column: LineColumns = self.columns[name]
        return column

    def numbers(self, name: str, absent: int = 0) -> Ints:
        """The column of whole numbers or instants."""
        numbers: Ints = self.columns[name].fill_null(absent).to_numpy()
        return numbers

    def is_absent(self, name: str) -> Mask:
        """Which records have no such value."""
        mask: Mask = self.columns[name].is_null().to_numpy(zero_copy_only=False)
        return mask

    def is_word(self, name: str, word: str) -> Mask:
        """Which records have this word in a column of texts."""
        mask: Mask = pc.equal(self.columns[name], word).to_numpy(zero_copy_only=False)
        return mask

    def of_terms(self, value: Callable[[Terms], Any]) -> npt.NDArray[Any]:
        """What the terms of each record say."""
        return np.array([value(terms) for terms in self.terms or (DEFAULT_TERMS,)])[self.term]


class Derived(NamedTuple):
    """The payloads of records.

    Attributes:
        columns: Makes the payload columns by name. Not called if only `sure` is needed.
        sure: Which records are sure, and have this payload.
        contents: What the sender said in each record; None: as the columns say it.
    """

    columns: Callable[[], Mapping[str, pa.Array]]
    sure: Mask
    contents: Sequence[Any] | None = None


def lists(offsets: Ints, values: pa.Array, is_null: Mask | None = None) -> pa.ListArray:
    """Return a column of lists, whose values follow one another."""
    mask = None if is_null is None else pa.array(is_null)
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), values, mask=mask)


def flag_lists(flags: Mapping[str, Mask]) -> pa.ListArray:
    """Return the names of the flags that hold for each record, sorted."""
    names = sorted(flags)
    holds = np.stack([flags[name] for name in names], axis=1)
    return lists(offsets_of(holds.sum(axis=1)), pa.array(names, pa.string()).take(pa.array(np.nonzero(holds)[1])))
