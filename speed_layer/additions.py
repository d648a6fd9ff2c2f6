"""What a micro-batch adds to the cells of each epoch: its contributions, added up in Arrow. Pure: no I/O, no clock.

Batch adds up the rows of whole days in the same way (`batch_layer.blocks`).
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import groupby
from operator import itemgetter
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from speed_layer.contributions import Contributed
from views.arrow.contributions import EVENT_ROW, whole_stores
from views.core.aggregates import ARROW_FUNCTION, LISTED, Value
from views.core.cells import WINDOW_KEY, CellKey, Shape, States
from views.core.cut import UNIX_EPOCH
from views.core.sketch import sketch_of

_MICROSECOND = timedelta(microseconds=1)

Shapes = Mapping[str, Shape]
"""By name: the views, and the waiting events."""
Cells = Sequence[tuple[CellKey, States]]
"""Each cell once."""
Contribute = Callable[[pa.Table], Contributed]
"""Gives what events contribute to each shape."""


class AdditionKey(NamedTuple):
    """The cells that are added to: of a view (or of waiting events) and a store, for events received in an epoch."""

    shape: str
    store: str
    epoch: datetime


Added = tuple[AdditionKey, Cells]


def additions(events: pa.Table, contribute: Contribute, shapes: Shapes, epoch: timedelta) -> Iterator[Added]:
    """What these events add, by key; in the same order whatever the order of the events."""
    for some in whole_stores(events):
        contributed = contribute(some)
        of = {"store": some["store"], "epoch": _epochs(some["received_at"], epoch)}
        for name, shape in shapes.items():
            if name in contributed and contributed[name].num_rows:
                own = contributed[name]
                yield from _added(own, {key: column.take(own[EVENT_ROW]) for key, column in of.items()}, shape)


def _added(contributed: pa.Table, of: Mapping[str, pa.ChunkedArray], shape: Shape) -> Iterator[Added]:
    """`of`: the store and epoch of each contribution."""
    states = [(f"s{place}", ARROW_FUNCTION[column.by]) for place, column in enumerate(shape.columns.values())]
    keys = ["store", "epoch", WINDOW_KEY, *(f"d{place}" for place, _ in enumerate(shape.dimensions))]
    rows = pa.table({**of, **{name: contributed[name] for name in contributed.column_names if name != EVENT_ROW}})
    cells = rows.group_by(keys, use_threads=False).aggregate(states).sort_by([(key, "ascending") for key in keys])
    stores, epochs, windows, *texts = (cells[key].to_pylist() for key in keys)
    values = zip(*(_values(cells[f"{name}_{by}"], by) for name, by in states), strict=True)
    of_dimensions: Iterable[tuple[str | None, ...]] = zip(*texts, strict=True) if texts else ((),) * len(windows)
    found = zip(zip(stores, epochs, strict=True), map(CellKey, windows, of_dimensions), values, strict=True)
    for (store, epoch), own in groupby(found, key=itemgetter(0)):
        key = AdditionKey(shape.name, store, UNIX_EPOCH + epoch * _MICROSECOND)
        yield key, [(cell, added) for _, cell, added in own]


def _values(states: pa.ChunkedArray, by: str) -> Sequence[Value]:
    listed: list[Any] = states.to_pylist()
    return [sketch_of(hashes) for hashes in listed] if by == LISTED else listed


def _epochs(received_at: pa.ChunkedArray, length: timedelta) -> pa.ChunkedArray:
    """The start of the epoch in microseconds since 1970: `epoch_of` for a whole column."""
    micros = received_at.cast(pa.int64())
    size = length // _MICROSECOND
    return pc.multiply(pc.divide(micros, size), size)
