"""The receipts themselves, newest first, as they come: what `raw_pos_transactions` shows.

A receipt is shown for a number of days after it happened; one that is older on arrival is in the master dataset only.

They are written while the stream is parsed and hold no state: the first delivery wins because a row is written with the
negated receipt time as its timestamp, so neither a later delivery of the same identity nor a replay overwrites it, in
whatever order they are written.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
from cassandra.concurrent import execute_concurrent_with_args

from master_dataset.parsing.rows import EVENT

if TYPE_CHECKING:
    from collections.abc import Callable

    from cassandra.cluster import Session

COLUMNS = ("day", "store", "happened_at", "till", "transaction_id", "received_at", "value")
"""What is read of a parsed record."""

_IN_FLIGHT = 64
_INSERT = (
    "INSERT INTO raw_pos_transactions "
    "(day, operation_id, happened_at, vendor_fiscal_module, transaction_id, received_at, value) "
    "VALUES (?, ?, ?, ?, ?, ?, ?) USING TIMESTAMP ? AND TTL ?"
)


@dataclass(frozen=True)
class ReceiptWriter:
    """Runs in Spark's workers. `ttl_seconds`: how long after it happened a receipt is shown."""

    connect: "Callable[[], Session]"
    ttl_seconds: int

    def __call__(self, parsed: pa.RecordBatch) -> None:
        """Write the events among these parsed records; when it returns, every one is acknowledged."""
        events = parsed.filter(pc.equal(parsed["kind"], EVENT)).select(COLUMNS)
        values = [values for values in map(self._values, events.to_pylist()) if values[-1] > 0]
        if values:
            session = self.connect()
            insert = session.prepare(_INSERT)
            execute_concurrent_with_args(session, insert, values, concurrency=_IN_FLIGHT, raise_on_first_error=True)

    def _values(self, row: dict[str, Any]) -> tuple[Any, ...]:
        received_micros = int(row["received_at"].timestamp() * 1_000_000)
        age_seconds = int((row["received_at"] - row["happened_at"]).total_seconds())
        left_seconds = min(self.ttl_seconds, self.ttl_seconds - age_seconds)
        key = (row["day"], row["store"], row["happened_at"], row["till"], row["transaction_id"])
        return (*key, row["received_at"], row["value"].decode(), -received_micros, left_seconds)
