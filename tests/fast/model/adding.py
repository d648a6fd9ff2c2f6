"""What a micro-batch adds to the cells of each epoch: by the product's own code, and by plain Python for speed."""

from collections.abc import Iterable, Sequence
from datetime import datetime

import pyarrow as pa

from speed_layer.additions import AdditionKey, Cells, Shapes, additions
from tests.fast.model.facts import TIMINGS
from tests.fast.model.topic import Record
from tests.support.arrivals import arrival, arrived, stated
from views.core.cells import CellKey, States

Contribution = tuple[str, CellKey, States]
Given = tuple[Record, datetime, Sequence[Contribution]]
"""An event, its epoch, and what it contributes to each shape."""
Added = list[tuple[AdditionKey, Cells]]


def added(given: Iterable[Given], shapes: Shapes) -> Added:
    """`additions` for few events: Arrow takes milliseconds to begin."""
    sums: dict[AdditionKey, dict[CellKey, States]] = {}
    for record, epoch, cells in given:
        assert record.fact is not None
        for name, key, states in cells:
            own = sums.setdefault(AdditionKey(name, record.fact.store, epoch), {})
            own[key] = _merged(shapes, name, own[key], states) if key in own else states
    ordered = sorted(sums.items(), key=lambda each: (list(shapes).index(each[0].shape), each[0]))
    return [(key, sorted(cells.items())) for key, cells in ordered]


def added_by_arrow(given: Iterable[Given], shapes: Shapes) -> Added:
    """The product's own."""
    rows = [
        arrival(
            record.fact.identity,
            record.offset,
            record.received_at,
            [(name, key.window, list(key.dimensions), list(states)) for name, key, states in cells],
            store=record.fact.store,
            partition=record.partition,
            age=record.received_at - record.fact.happened_at,
        )
        for record, _, cells in given
        if record.fact is not None
    ]
    return list(additions(pa.Table.from_batches([arrived(rows)]), stated, shapes, TIMINGS.epoch)) if rows else []


def _merged(shapes: Shapes, name: str, left: States, right: States) -> States:
    return tuple(column.merge(a, b) for column, a, b in zip(shapes[name].columns.values(), left, right, strict=True))
