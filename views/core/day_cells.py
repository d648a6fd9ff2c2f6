"""Day cells: what the cells of a block add up to, over each part of its UTC day that lies in one business day.

A run keeps them beside its blocks, those of all stores of a view and UTC day together, so that a query about days of
many stores reads a few rows per day and not every quarter hour of every store. A part says which windows it is of. So
a reader can see whether all of them belong to one point of an answer, and nothing depends on what the registry
said of a store's time zone when the part was written.
"""

from dataclasses import dataclass
from datetime import date, datetime, time
from functools import lru_cache
from typing import NamedTuple, Self

import msgspec

from views.core.aggregates import Reducer
from views.core.cut import UNIX_EPOCH, seconds
from views.core.local_time import ONE_DAY, STEP, BusinessDays
from views.core.view import View, flags_counted

STORE, START, END = "store", "start", "end"
"""Columns: the id of the store, and the windows, in seconds since 1970; `END` is exclusive."""
RECEIPTS = "receipts"
"""Column of a view that counts flags: how many receipts there are in the UTC day until the end of each of its windows,
of those of the part. Opening hours may be registered later, and then say in which windows the store was closed."""
DAY_SECONDS = 86_400
DAY_WINDOWS = DAY_SECONDS // STEP


def dimension_column(place: int) -> str:
    """The column of a dimension, by its place in the view."""
    return f"d{place}"


def state_column(place: int) -> str:
    """The column of a state, by its place in the view."""
    return f"s{place}"


@dataclass(frozen=True)
class DayShape:
    """What the day cells of a view are columns of; picklable.

    Attributes:
        dimensions: how many there are.
        reducers: of the states, in order.
        receipts: the place of the state that `RECEIPTS` is taken from; None if the view counts no flags.
    """

    dimensions: int
    reducers: tuple[Reducer, ...]
    receipts: int | None

    @classmethod
    def of(cls, view: View) -> Self:
        """The shape of a view's day cells."""
        columns = list(view.columns)
        counts = flags_counted(view) and RECEIPTS in columns
        reducers = tuple(each.by for each in view.columns.values())
        return cls(len(view.dimensions), reducers, columns.index(RECEIPTS) if counts else None)


class DayParts(NamedTuple):
    """Which day cells of a view and UTC day a run has written.

    Attributes:
        parts: the names of all rows that hold them.
        without: the ids of stores that have a block, and no day cells.
    """

    parts: tuple[str, ...] = ()
    without: tuple[str, ...] = ()

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Decode what `to_json` returned."""
        parts, without = msgspec.json.decode(text, type=tuple[tuple[str, ...], tuple[str, ...]])
        return cls(parts, without)

    def to_json(self) -> str:
        """Encode it for `run_days`."""
        return msgspec.json.encode(self).decode()


@lru_cache(maxsize=4096)
def day_cuts(days: BusinessDays, day: date) -> tuple[int, ...]:
    """Where the parts of a UTC day start, in seconds since 1970: at its midnight, and where business days begin in it.

    Args:
        days: the business days of a store.
        day: the UTC day.
    """
    first = seconds(datetime.combine(day, time(0), UNIX_EPOCH.tzinfo))
    found = [first]
    own = days.day_of(first) + ONE_DAY
    while (start := days.start(own)) < first + DAY_SECONDS:
        if start > found[-1]:
            found.append(start)
        own += ONE_DAY
    return tuple(found)
