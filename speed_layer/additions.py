"""What a micro-batch adds to the cells of each epoch: its contributions, added up in Arrow. Pure: no I/O, no clock.

Batch adds up the rows of whole days in the same way (`batch_layer.blocks`).
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import groupby
from operator import itemgetter
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from views.core.aggregates import ARROW_FUNCTION, LISTED, Value
from views.core.cells import WAITING, CellKey, Shape, States
from views.core.cut import UNIX_EPOCH
from views.core.sketch import sketch_of
from views.core.view import View

EVENTS_AT_ONCE = 5_000
"""Each has about twelve contributions, of a kilobyte of memory each."""
_MICROSECOND = timedelta(microseconds=1)

Shapes = Mapping[str, Shape]
"""By name: the views, and the waiting events."""
Cells = Sequence[tuple[CellKey, States]]
"""Each cell once."""


class AdditionKey(NamedTuple):
    """The cells that are added to: of a view (or of waiting events) and a store, for events received in an epoch."""

    shape: str
    store: str
    epoch: datetime


def shapes_of(views: Iterable[View]) -> Shapes:
    """Everything that a single event can contribute to: not the views of visits."""
    return {view.name: view for view in views if not view.counts_visits} | {WAITING.name: WAITING}


def additions(events: pa.Table, shapes: Shapes, epoch: timedelta) -> Iterator[tuple[AdditionKey, Cells]]:
    """What these events add, by key; in the same order whatever the order of the events."""
    for some in _portions(events):
        yield from _of_some(some, shapes, epoch)


def _portions(events: pa.Table) -> Iterator[pa.Table]:
    """Whole stores, as many at once as keep the memory of a worker bounded."""
    ordered = events.sort_by("store")
    start = end = 0
    for store in pc.value_counts(ordered["store"]).to_pylist():
        end += store["counts"]
        if end - start >= EVENTS_AT_ONCE:
            yield ordered.slice(start, end - start)
            start = end
    if end > start:
        yield ordered.slice(start)


def _of_some(events: pa.Table, shapes: Shapes, epoch: timedelta) -> Iterator[tuple[AdditionKey, Cells]]:
    listed = events["contributions"].combine_chunks()
    parents = pc.list_parent_indices(listed)
    contributions = pa.Table.from_struct_array(pc.list_flatten(listed))
    contributions = contributions.append_column("store", events["store"].take(parents))
    contributions = contributions.append_column("epoch", _epochs(events["received_at"], epoch).take(parents))
    for name, shape in shapes.items():
        of_shape = contributions.filter(pc.equal(contributions["view"], name))
        if of_shape.num_rows:
            yield from _added(of_shape, shape)


def _added(contributions: pa.Table, shape: Shape) -> Iterator[tuple[AdditionKey, Cells]]:
    dimensions = [f"d{place}" for place, _ in enumerate(shape.dimensions)]
    states = [(f"s{place}", ARROW_FUNCTION[column.by]) for place, column in enumerate(shape.columns.values())]
    keys = ["store", "epoch", "window", *dimensions]
    columns = [contributions[key] for key in keys[:3]]
    columns += [pc.list_element(contributions["dimensions"], place) for place, _ in enumerate(dimensions)]
    columns += [pc.list_element(contributions["values"], place) for place, _ in enumerate(states)]
    rows = pa.table(columns, names=[*keys, *(name for name, _ in states)])
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
