"""Arrivals of the speed layer, as its stream hands them to be counted."""

from datetime import datetime, timedelta
from typing import TypedDict

import pyarrow as pa
import pyarrow.compute as pc

from master_dataset.parsing.parse import identity_hash
from master_dataset.parsing.rows import EVENT, FACT, POSITION_FIELDS
from speed_layer.arrow_tables import POSITION
from speed_layer.contributions import Contributed, Contributions
from views.arrow.contributions import EVENT_ROW
from views.core.aggregates import Value

Given = tuple[str, int, list[str | None], list[Value]]
"""What an event contributes: view, window, dimensions, values."""


CONTRIBUTIONS = pa.list_(
    pa.struct(
        [
            ("view", pa.string()),
            ("window", pa.int64()),
            ("dimensions", pa.list_(pa.string())),
            ("values", pa.list_(pa.int64())),
        ]
    )
)
_FACT = dict(FACT)
_COUNTED = [(name, _FACT[name]) for name in ("store", "happened_at", "day", "identity", "identity_hash")]
ARRIVALS = pa.schema([("kind", pa.string()), *POSITION_FIELDS, *_COUNTED, ("contributions", CONTRIBUTIONS)])
"""What counting needs of a parsed row, and what it contributes."""


class Stated(Contributions):
    """Contributions that the arrivals state, instead of those of their payload."""

    def __call__(self, events: pa.Table) -> Contributed:
        """As stated."""
        return stated(events)


def stated(events: pa.Table) -> Contributed:
    """What the arrivals state that they contribute."""
    listed = events["contributions"].combine_chunks()
    every = pa.Table.from_struct_array(pc.list_flatten(listed))
    every = every.append_column(EVENT_ROW, pc.list_parent_indices(listed).cast(pa.int64()))
    found = {}
    for name in pc.unique(every["view"]).to_pylist():
        own = every.filter(pc.equal(every["view"], name))
        columns = {key: own[key] for key in (EVENT_ROW, "window")}
        for prefix, key in (("d", "dimensions"), ("s", "values")):
            width = len(own[key][0])
            columns |= {f"{prefix}{at}": pc.list_element(own[key], at) for at in range(width)}
        found[name] = pa.table(columns)
    return found


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
    identity_hash: int
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
        "identity_hash": identity_hash("pos_transactions", identity),
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
    return pa.RecordBatch.from_pylist(rows, schema=ARRIVALS)
