"""What a micro-batch is made of: a row per event, and a row per partition that says how far it was read."""

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from master_dataset.parsing.rows import EVENT, FACT, PLACE
from speed_layer.contributions import CONTRIBUTIONS

POSITION = "position"
"""The kind of a row that has its place only: every record before it, and itself, was read."""
_FACT = dict(FACT)
PLAIN = pa.schema(
    [
        ("kind", pa.string()),
        *PLACE,
        *((name, _FACT[name]) for name in ("store", "happened_at", "day", "identity")),
    ]
)
ARRIVALS = PLAIN.append(pa.field("contributions", CONTRIBUTIONS))
"""An event has everything."""


def events_and_positions(batch: pa.RecordBatch, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The events of a parsed batch, and one row of kind `position` per partition, with the columns of `schema`."""
    yield batch.filter(pc.equal(batch["kind"], EVENT)).select(schema.names)
    for partition in pc.unique(batch["partition"]).to_pylist():
        own = batch.filter(pc.equal(batch["partition"], partition))
        last = own.slice(own.num_rows - 1, 1).to_pylist()[0]
        place = {name: last[name] for name, _ in PLACE}
        yield pa.RecordBatch.from_pylist([{**dict.fromkeys(schema.names), **place, "kind": POSITION}], schema=schema)


def of_kind(arrived: pa.Table, kind: str) -> pa.Table:
    """The rows of that kind."""
    return arrived.filter(pc.equal(arrived["kind"], kind))
