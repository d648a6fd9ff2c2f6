"""What a micro-batch is made of: a row per event, and a row per partition that says how far it was read.

What a micro-batch gives back to its driver: how far it has read, and what it heard of devices.

Visits are made of every fresh delivery, repeats included, so that speed needs no memory of identities for them: a
repeat can only hold its bundle open, in batch alike.
"""

from collections.abc import Iterable, Iterator

import pyarrow as pa
import pyarrow.compute as pc

from master_dataset.parsing.rows import EVENT, FACT, PLACE
from speed_layer.contributions import CONTRIBUTIONS

POSITION = "position"
"""The kind of a row that has its place only: every record before it, and itself, was read."""
_FACT = dict(FACT)
INPUT_COLUMNS = pa.schema(
    [
        ("kind", pa.string()),
        *PLACE,
        *((name, _FACT[name]) for name in ("store", "happened_at", "day", "identity")),
    ]
)
INPUT = INPUT_COLUMNS.append(pa.field("contributions", CONTRIBUTIONS))
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


_PLACE = ("topic", "partition", "offset")
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
"""A position has its place and receipt only; the view that a sighting is for makes it one."""


def position_rows(arrived: pa.Table) -> Iterator[pa.RecordBatch]:
    """How far each partition was read."""
    reached = of_kind(arrived, POSITION)
    return _given_back(reached, {name: pa.nulls(reached.num_rows, OUTPUT.field(name).type) for name in _SEEN})


def sighting_rows(events: pa.Table, view: str) -> Iterator[pa.RecordBatch]:
    """What events contribute to a view of visits, as `contributions_sql` says it."""
    listed = events["contributions"].combine_chunks()
    given = pc.list_flatten(listed)
    own = pc.equal(given.field("view"), view)
    places = events.select([*_PLACE, "received_at", "store"]).take(pc.list_parent_indices(listed)).filter(own)
    given = given.filter(own)
    if not len(given):
        return iter(())
    happened, inside = (pc.list_element(given.field("values"), place) for place in range(2))
    seen = {
        "view": given.field("view"),
        "store": places["store"],
        "device": pc.list_element(given.field("dimensions"), 0),
        "business_day": given.field("window"),
        "happened_ms": happened,
        "is_inside": inside,
    }
    return _given_back(places, seen)


def last_received(given_back: pa.Table, topic: str) -> Iterable[tuple[int, int]]:
    """(partition, milliseconds since 1970) at which the last record of that topic was received."""
    own = given_back.filter(pc.and_(pc.is_null(given_back["view"]), pc.equal(given_back["topic"], topic)))
    furthest = own.sort_by("offset")
    found = zip(furthest["partition"].to_pylist(), furthest["received_micros"].to_pylist(), strict=True)
    return {partition: received // 1000 for partition, received in found}.items()


_SEEN = tuple(OUTPUT.names[4:])


def _given_back(places: pa.Table, seen: dict[str, pa.Array]) -> Iterator[pa.RecordBatch]:
    columns = [*(places[name] for name in _PLACE), places["received_at"].cast(pa.int64()), *(seen[n] for n in _SEEN)]
    return iter(pa.table(columns, names=OUTPUT.names).cast(OUTPUT).to_batches())
