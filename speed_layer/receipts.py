"""The receipts themselves: the table `receipt_blocks`, or `raw_pos_transactions` in the layout of former releases.

A receipt is shown for some days after it happened. One that is older on arrival is in the master dataset only.

Receipts are written while the stream is parsed, without state. The first delivery wins: readers of blocks choose it. In
`raw_pos_transactions`, the write timestamp of a row is the negated receipt time: neither a later delivery of the same
identity nor a replay overwrites it, in whatever order they are written. "First" means received first here: if a clock
steps back between two deliveries, the one shown may not be the one that counts (ADR 0016).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from operator import attrgetter
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from master_dataset.parsing.rows import EVENT
from master_dataset.receipt_blocks import pack
from speed_layer.cassandra_batches import Insert, Wait, begin_writes, nothing_begun

if TYPE_CHECKING:
    from collections.abc import Callable

    from cassandra.cluster import Session

_READ = pa.schema(
    [
        ("day", pa.date32()),
        ("store", pa.string()),
        ("happened_at", pa.int64()),
        ("till", pa.string()),
        ("transaction_id", pa.string()),
        ("received_at", pa.int64()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("value", pa.binary()),
    ]
)
"""Instants in microseconds since 1970: creating a datetime for each would take most of the time."""
_INSERT = (
    "INSERT INTO raw_pos_transactions "
    "(day, operation_id, happened_at, vendor_fiscal_module, transaction_id, received_at, value) "
    "VALUES (?, ?, ?, ?, ?, ?, ?) USING TIMESTAMP ? AND TTL ?"
)


class _Receipt(NamedTuple):
    """The values of `_INSERT`. Times in ms since 1970, as Cassandra stores them."""

    day: date
    store: str
    happened_ms: int
    till: str
    transaction_id: str
    received_ms: int
    value: str
    negated_micros: int
    left_seconds: int


_PARTITION = attrgetter("day", "store")
_INSERT_BLOCK = "INSERT INTO receipt_blocks (day, store, hour, digest, block) VALUES (?, ?, ?, ?, ?) USING TTL ?"
_MOST_BYTES = 256 * 1024
"""Of the receipts in a block, uncompressed. A larger receipt has a block of its own."""
_PACKED = ("happened_ms", "till", "transaction_id", "received_ms", "partition", "offset", "value")
"""The columns of `SentReceipt`."""
_MICROS, _HOUR_MICROS, _HOURS = 1_000_000, 3_600_000_000, 24


class _Block(NamedTuple):
    """The values of `_INSERT_BLOCK`."""

    day: date
    store: str
    hour: int
    digest: bytes
    block: bytes
    left_seconds: int


@dataclass(frozen=True)
class ReceiptBlockWriter:
    """Runs in Spark's workers. `ttl_seconds`: how long after it happened a receipt is shown.

    A block is kept as long as the one of its receipts that is shown longest.
    """

    connect: "Callable[[], Session]"
    ttl_seconds: int
    columns: ClassVar[tuple[str, ...]] = tuple(_READ.names)

    def __call__(self, parsed: pa.RecordBatch) -> Wait:
        """Begin to write the events among parsed records."""
        events = parsed.filter(pc.equal(parsed["kind"], EVENT)).select(self.columns).cast(_READ)
        age = pc.divide(pc.max_element_wise(pc.subtract(events["received_at"], events["happened_at"]), 0), _MICROS)
        left = pc.subtract(self.ttl_seconds, age)
        events = events.append_column("left", left).append_column("at", pc.divide(events["happened_at"], _HOUR_MICROS))
        events = events.filter(pc.greater(left, 0))
        if not events.num_rows:
            return nothing_begun
        session = self.connect()
        insert = Insert(session.prepare(_INSERT_BLOCK), _PARTITION, lambda row: len(row.block))
        return begin_writes(session, insert, self._blocks(events))

    def _blocks(self, events: pa.RecordBatch) -> Iterator[_Block]:
        """Blocks in the order of their partitions. Receipts within one are as they came."""
        keys = [("store", "ascending"), ("at", "ascending")]
        events = events.take(pc.sort_indices(events, sort_keys=keys))
        slices = list(_slices(events))
        stores, hours = events["store"].to_pylist(), events["at"].to_pylist()
        days, left = events["day"].to_pylist(), events["left"].to_pylist()
        events = events.set_column(0, "happened_ms", pc.divide(events["happened_at"], 1000))
        events = events.set_column(1, "received_ms", pc.divide(events["received_at"], 1000))
        columns = [events[name].to_pylist() for name in _PACKED]
        for start, end in slices:
            packed = pack([column[start:end] for column in columns])
            yield _Block(days[start], stores[start], hours[start] % _HOURS, *packed, max(left[start:end]))


def _slices(events: pa.RecordBatch) -> Iterator[tuple[int, int]]:
    """Where blocks begin and end: receipts of one store and hour, of at most `_MOST_BYTES`."""
    stores = events["store"].dictionary_encode().indices.to_numpy()
    hours = events["at"].to_numpy()
    changes = np.flatnonzero((stores[1:] != stores[:-1]) | (hours[1:] != hours[:-1])) + 1
    ends = np.cumsum(pc.binary_length(events["value"]).to_numpy(), dtype=np.int64)
    start = 0
    for until in (*changes.tolist(), len(hours)):
        while start < until:
            before = int(ends[start - 1]) if start else 0
            end = int(np.searchsorted(ends, before + _MOST_BYTES, side="right"))
            end = min(max(end, start + 1), until)
            yield start, end
            start = end


@dataclass(frozen=True)
class ReceiptWriter:
    """Writes a row for each receipt, as former releases do. Otherwise like `ReceiptBlockWriter`."""

    connect: "Callable[[], Session]"
    ttl_seconds: int
    columns: ClassVar[tuple[str, ...]] = tuple(_READ.names)

    def __call__(self, parsed: pa.RecordBatch) -> Wait:
        """Begin to write the events among parsed records."""
        events = parsed.filter(pc.equal(parsed["kind"], EVENT)).select(self.columns)
        rows = [row for row in self._rows(events) if row.left_seconds > 0]
        if not rows:
            return nothing_begun
        session = self.connect()
        insert = Insert(session.prepare(_INSERT), _PARTITION, lambda row: len(row.value.encode()))
        return begin_writes(session, insert, sorted(rows, key=_PARTITION))

    def _rows(self, events: pa.RecordBatch) -> Iterator[_Receipt]:
        read = events.cast(_READ).to_pydict().values()
        for day, store, happened, till, transaction, received, _, _, value in zip(*read, strict=True):
            left = self.ttl_seconds - max(0, received - happened) // 1_000_000
            value_text = value.decode()
            yield _Receipt(
                day, store, happened // 1000, till, transaction, received // 1000, value_text, -received, left
            )
