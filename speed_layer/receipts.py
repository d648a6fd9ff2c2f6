"""The receipts themselves, newest first: the table `raw_pos_transactions`.

A receipt is shown for some days after it happened. One that is older on arrival is in the master dataset only.

Receipts are written while the stream is parsed, without state. The first delivery wins, because a row's write timestamp
is the negated receipt time: neither a later delivery of the same identity nor a replay overwrites it, in whatever order
they are written. "First" means received first here: if a clock steps back between two deliveries, the one shown may not
be the one that counts (ADR 0016).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from operator import attrgetter
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from master_dataset.parsing.rows import EVENT
from speed_layer.cassandra_batches import Insert, write_all

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


@dataclass(frozen=True)
class ReceiptWriter:
    """Runs in Spark's workers. `ttl_seconds`: how long after it happened a receipt is shown."""

    connect: "Callable[[], Session]"
    ttl_seconds: int
    columns: ClassVar[tuple[str, ...]] = tuple(_READ.names)

    def __call__(self, parsed: pa.RecordBatch) -> None:
        """Write the events among parsed records. Returns when every row is acknowledged."""
        events = parsed.filter(pc.equal(parsed["kind"], EVENT)).select(self.columns)
        rows = [row for row in self._rows(events) if row.left_seconds > 0]
        if rows:
            session = self.connect()
            insert = Insert(session.prepare(_INSERT), _PARTITION, lambda row: len(row.value.encode()))
            write_all(session, insert, sorted(rows, key=_PARTITION))

    def _rows(self, events: pa.RecordBatch) -> Iterator[_Receipt]:
        read = events.cast(_READ).to_pydict().values()
        for day, store, happened, till, transaction, received, value in zip(*read, strict=True):
            left = self.ttl_seconds - max(0, received - happened) // 1_000_000
            value_text = value.decode()
            yield _Receipt(
                day, store, happened // 1000, till, transaction, received // 1000, value_text, -received, left
            )
