"""The Arrow tables of a micro-batch: its input, and what the tasks return to the driver.

    input: parsed rows, one per event, and one per partition that says how far it was read
    OUTPUT: how far each partition was read, and the sightings of devices

Sightings come from every delivery that is young enough, duplicates included: a duplicate can only keep its bundle open
for longer, and does so in the batch layer too. So visits need no memory of identities.
"""

from collections.abc import Iterable, Iterator

import pyarrow as pa
import pyarrow.compute as pc

from master_dataset.parsing.rows import EVENT, POSITION_FIELDS
from views.arrow.expressions import Rows, evaluate

POSITION = "position"
"""The kind of a row that says how far a partition was read: up to and including this record."""
_POSITION = ("topic", "partition", "offset")
OUTPUT = pa.schema(
    [
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("received_micros", pa.int64()),
        ("view", pa.string()),
        ("store", pa.string()),
        ("device", pa.string()),
        ("business_day", pa.int64()),
        ("happened_ms", pa.int64()),
        ("is_inside", pa.int64()),
    ]
)
"""A row with a view is a sighting. Without one it is a position, and its columns after the receipt are NULL."""
_SIGHTING = tuple(OUTPUT.names[4:])


def events_and_positions(batch: pa.RecordBatch, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The events of a parsed batch, and a position for each partition, with the columns of `schema`."""
    yield batch.filter(pc.equal(batch["kind"], EVENT)).select(schema.names)
    for partition in pc.unique(batch["partition"]).to_pylist():
        own = batch.filter(pc.equal(batch["partition"], partition))
        last = own.slice(own.num_rows - 1, 1).to_pylist()[0]
        position = {name: last[name] for name, _ in POSITION_FIELDS}
        yield pa.RecordBatch.from_pylist([{**dict.fromkeys(schema.names), **position, "kind": POSITION}], schema=schema)


def of_kind(input_rows: pa.Table, kind: str) -> pa.Table:
    """The rows of that kind."""
    return input_rows.filter(pc.equal(input_rows["kind"], kind))


def position_rows(input_rows: pa.Table) -> Iterator[pa.RecordBatch]:
    """The positions among the input, as OUTPUT."""
    reached = of_kind(input_rows, POSITION)
    return _output(reached, {name: pa.nulls(reached.num_rows, OUTPUT.field(name).type) for name in _SIGHTING})


def sighting_rows(sightings: pa.Table, view: str) -> Iterator[pa.RecordBatch]:
    """Sightings that contribute to a view of visits, as OUTPUT."""
    if not sightings.num_rows:
        return iter(())
    values = {
        "view": pa.repeat(pa.scalar(view), sightings.num_rows),
        "store": sightings["store"],
        "device": sightings["device"],
        "business_day": sightings["business_day"],
        "happened_ms": evaluate("unix_millis(happened_at)", Rows.of(sightings)),
        "is_inside": sightings["is_inside"].cast(pa.int64()),
    }
    return _output(sightings, values)


def last_received(output: pa.Table, topic: str) -> Iterable[tuple[int, int]]:
    """(partition, ms since 1970) when the last record of that topic was received."""
    own = output.filter(pc.and_(pc.is_null(output["view"]), pc.equal(output["topic"], topic)))
    furthest = own.sort_by("offset")
    found = zip(furthest["partition"].to_pylist(), furthest["received_micros"].to_pylist(), strict=True)
    return {partition: received // 1000 for partition, received in found}.items()


def _output(positions: pa.Table, values: dict[str, pa.Array]) -> Iterator[pa.RecordBatch]:
    columns = [
        *(positions[name] for name in _POSITION),
        positions["received_at"].cast(pa.int64()),
        *(values[n] for n in _SIGHTING),
    ]
    return iter(pa.table(columns, names=OUTPUT.names).cast(OUTPUT).to_batches())
