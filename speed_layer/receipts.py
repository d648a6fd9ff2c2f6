"""The receipts themselves, newest first, as they come: what `raw_pos_transactions` shows.

A receipt is shown for a number of days after it happened; one that is older on arrival is in the master dataset only.

Stateless: the first delivery wins because a row is written with the negated receipt time as its timestamp, so a later
delivery of the same identity never overwrites an earlier one, in whatever order they are written.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
from cassandra.concurrent import execute_concurrent_with_args
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.streaming.query import StreamingQuery

from master_dataset.kafka import record_stream
from master_dataset.parsing.rows import output_schema, rows
from master_dataset.sources.pos_transactions import POS_TRANSACTIONS

if TYPE_CHECKING:
    from cassandra.cluster import Session
    from pyspark.sql import SparkSession

    from speed_layer.query import Feed

_COLUMNS = ("kind", "day", "store", "happened_at", "till", "transaction_id", "received_at", "value")
_COUNT = pa.schema([("written", pa.int64())])
_IN_FLIGHT = 64
_INSERT = (
    "INSERT INTO raw_pos_transactions "
    "(day, operation_id, happened_at, vendor_fiscal_module, transaction_id, received_at, value) "
    "VALUES (?, ?, ?, ?, ?, ?, ?) USING TIMESTAMP ? AND TTL ?"
)


@dataclass(frozen=True)
class ReceiptWriter:
    """Runs in Spark's workers."""

    connect: "Callable[[], Session]"
    ttl_seconds: int

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Write the receipts of one partition; give back how many."""
        session = self.connect()
        insert = session.prepare(_INSERT)
        for batch in batches:
            values = [values for values in map(self._values, batch.to_pylist()) if values[-1] > 0]
            execute_concurrent_with_args(session, insert, values, concurrency=_IN_FLIGHT, raise_on_first_error=True)
            yield pa.RecordBatch.from_pylist([{"written": len(values)}], schema=_COUNT)

    def _values(self, row: dict[str, Any]) -> tuple[Any, ...]:
        received_micros = int(row["received_at"].timestamp() * 1_000_000)
        age_seconds = int((row["received_at"] - row["happened_at"]).total_seconds())
        left_seconds = min(self.ttl_seconds, self.ttl_seconds - age_seconds)
        key = (row["day"], row["store"], row["happened_at"], row["till"], row["transaction_id"])
        return (*key, row["received_at"], row["value"].decode(), -received_micros, left_seconds)


def start(
    spark: "SparkSession", feed: "Feed", writer: ReceiptWriter, checkpoint: str, seconds: float
) -> StreamingQuery:
    """Start (or go on) writing receipts, a micro-batch every `seconds`."""
    topic = POS_TRANSACTIONS.topic
    schema = pa.schema([output_schema(POS_TRANSACTIONS).field(name) for name in _COLUMNS])
    currencies, unread = feed.currencies, frozenset(POS_TRANSACTIONS.columns) - set(_COLUMNS)

    def parsed(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in rows(POS_TRANSACTIONS, batches, currencies(), unread=unread):
            yield batch.filter(pc.equal(batch["kind"], "event")).select(schema.names)

    records = record_stream(spark, topic, feed.bootstrap, feed.starting_offsets[topic], feed.per_batch)

    def write(batch: DataFrame, _number: int) -> None:
        batch.mapInArrow(writer, from_arrow_schema(_COUNT)).collect()

    return (
        records.mapInArrow(parsed, from_arrow_schema(schema))
        .writeStream.queryName("raw_pos_transactions")
        .option("checkpointLocation", checkpoint)
        .trigger(processingTime=f"{seconds} seconds")
        .foreachBatch(write)
        .start()
    )
