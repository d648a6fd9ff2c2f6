"""Arrivals of the speed layer, as its stream hands them to be counted."""

from datetime import datetime, timedelta
from typing import TypedDict

import pyarrow as pa

from master_dataset.parsing.rows import EVENT
from speed_layer.arrow_tables import INPUT, POSITION
from views.core.aggregates import Value

Given = tuple[str, int, list[str | None], list[Value]]
"""What an event contributes: view, window, dimensions, values."""


class Arrival(TypedDict, total=False):
    """A row of `ARRIVALS`; a position has no fact."""

    kind: str
    topic: str
    partition: int
    offset: int
    received_at: datetime
    store: str
    happened_at: datetime
    day: object
    identity: str
    contributions: list[dict[str, object]]


def arrival(  # noqa: PLR0913 - what differs between two deliveries
    identity: str,
    offset: int,
    received_at: datetime,
    given: list[Given],
    *,
    store: str = "1",
    partition: int = 0,
    age: timedelta = timedelta(seconds=1),
) -> Arrival:
    """An event that was so old when it was received."""
    happened_at = received_at - age
    return {
        "kind": EVENT,
        "topic": "pos_transactions",
        "partition": partition,
        "offset": offset,
        "received_at": received_at,
        "store": store,
        "happened_at": happened_at,
        "day": happened_at.date(),
        "identity": identity,
        "contributions": [dict(zip(("view", "window", "dimensions", "values"), each, strict=True)) for each in given],
    }


def position(partition: int, offset: int, received_at: datetime) -> Arrival:
    """How far a partition was read."""
    return {
        "kind": POSITION,
        "topic": "pos_transactions",
        "partition": partition,
        "offset": offset,
        "received_at": received_at,
    }


def arrived(rows: list[Arrival]) -> pa.RecordBatch:
    """The rows as Spark hands them over."""
    return pa.RecordBatch.from_pylist(rows, schema=INPUT)
