"""New facts to provisional totals: one streaming query for all sources and views.

    each source: Kafka -> parsed rows -> contributions  \
    each source: Kafka -> parsed rows -> contributions   > union -> first delivery wins -> totals per (cell, epoch)

One output row per (view, store, window, dimensions, epoch) that changed in the micro-batch, with its whole total: a
replay writes the same rows again (R7). Everything an operator has to keep is in the checkpoint; it may be deleted.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import reduce
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention
from pyspark.sql.pandas.types import from_arrow_schema

from master_dataset.kafka import Intake, record_stream
from master_dataset.parsing.rows import output_schema, rows
from speed_layer.contributions import POSITION, contributions_sql
from speed_layer.receipts import COLUMNS as RECEIPT_COLUMNS
from speed_layer.receipts import ReceiptWriter
from views.core.aggregates.column import Reducer
from views.core.view import View

if TYPE_CHECKING:
    from master_dataset.registry import CurrencyOf
    from master_dataset.source import Source

ONLY_ARCHIVED = ("key", "value", "headers", "reason", "field", "sentence")
"""Columns of a parsed row that speed has no use for."""


@dataclass(frozen=True)
class Horizons:
    """How far back speed looks: `oldest` is A of R5, `delay` the watermark delay of this generation (R8)."""

    epoch: timedelta
    oldest: timedelta
    delay: timedelta


@dataclass(frozen=True)
class Feed:
    """Where new facts come from. `starting_offsets`: topic to the JSON that Spark's source takes.

    `receipts`: topic to the writer of its records, for the topics whose records are shown as they are.
    """

    bootstrap: str
    starting_offsets: Mapping[str, str]
    per_batch: int
    currencies: "Callable[[], CurrencyOf]"
    receipts: Mapping[str, ReceiptWriter]


def totals(spark: SparkSession, views: Sequence[View], feed: Feed, horizons: Horizons) -> DataFrame:
    """The streaming DataFrame of changed totals: view, store, window, dimensions, epoch, sum_*, min_*, max_*."""
    partitions = _partitions(spark)
    parts = [_contributed(spark, source, views, feed, horizons.oldest) for source in sources_of(views)]
    seconds = int(horizons.delay.total_seconds())
    arrived = reduce(DataFrame.unionByName, parts).withWatermark("received_at", f"{seconds} seconds")
    return _totals(_first_deliveries(_placed(arrived, partitions)), views, horizons.epoch)


def sources_of(views: Sequence[View]) -> "list[Source[Any]]":
    """The sources that these views read, sorted by topic."""
    by_topic = {view.source.topic: view.source for view in views}
    return [by_topic[topic] for topic in sorted(by_topic)]


def _contributed(
    spark: SparkSession, source: "Source[Any]", views: Sequence[View], feed: Feed, oldest: timedelta
) -> DataFrame:
    own = [view for view in views if view.source.topic == source.topic]
    schema = pa.schema([field for field in output_schema(source) if field.name not in ONLY_ARCHIVED])
    tasks = 1 if _partitions(spark) == 1 else spark.sparkContext.defaultParallelism
    intake = Intake(feed.bootstrap, feed.starting_offsets[source.topic], feed.per_batch, tasks)
    records = record_stream(spark, source.topic, intake)
    currencies, receipts = feed.currencies, feed.receipts.get(source.topic)
    unread = unread_columns(source, own) - frozenset(RECEIPT_COLUMNS if receipts else ())

    def parsed(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in rows(source, batches, currencies(), unread=unread):
            if receipts is not None:
                receipts(batch)
            yield from events_and_position(batch, schema)

    place = ("topic", "partition", "offset", "received_at", "identity")
    contributions = F.expr(contributions_sql(own, source.topic, oldest)).alias("contributions")
    return records.mapInArrow(parsed, from_arrow_schema(schema)).select(*place, contributions)


def unread_columns(source: "Source[Any]", views: Sequence[View]) -> frozenset[str]:
    """The payload columns that no expression of these views mentions."""
    said = " ".join(
        sql
        for view in views
        for sql in (
            view.where,
            view.at,
            view.each.of if view.each else "",
            *view.dimensions.values(),
            *(column.of for column in view.columns.values()),
        )
    )
    words = set(re.findall(r"\w+", said))
    return frozenset(name for name in source.columns if name not in words)


def events_and_position(batch: pa.RecordBatch, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The events of a parsed batch, and one row of kind `position` per partition: how far it has been read."""
    yield batch.filter(pc.equal(batch["kind"], "event")).select(schema.names)
    for partition in pc.unique(batch["partition"]).to_pylist():
        own = batch.filter(pc.equal(batch["partition"], partition))
        last = own.slice(own.num_rows - 1, 1).to_pylist()[0]
        reached = {name: last[name] for name in ("topic", "partition", "offset", "received_at")}
        unique = f"{partition}/{last['offset']}"  # passes the dedupe: no event has the kind
        row = {**dict.fromkeys(schema.names), **reached, "kind": POSITION, "identity": f"{POSITION}/{unique}"}
        yield pa.RecordBatch.from_pylist([row], schema=schema)


def _placed(arrived: DataFrame, partitions: int) -> DataFrame:
    """Equal identities side by side. One partition needs no shuffle, neither here nor for the totals."""
    return arrived.coalesce(1) if partitions == 1 else arrived.repartition(partitions, "topic", "identity")


def _partitions(spark: SparkSession) -> int:
    return int(spark.conf.get("spark.sql.shuffle.partitions") or 1)


def _first_deliveries(placed: DataFrame) -> DataFrame:
    """Of each identity the least (received_at, partition, offset), inside one micro-batch too (R7)."""
    identity = ("topic", "identity")
    in_order = placed.sortWithinPartitions("received_at", "partition", "offset")
    return in_order.dropDuplicatesWithinWatermark(list(identity))


def _totals(events: DataFrame, views: Sequence[View], epoch: timedelta) -> DataFrame:
    # Grouped by the window struct itself: grouped by its start, Spark would keep the totals for ever.
    received = F.window("received_at", f"{int(epoch.total_seconds())} seconds").alias("epoch")
    cells = events.select("received_at", F.explode("contributions").alias("cell"))
    keys = [F.col(f"cell.{name}").alias(name) for name in ("view", "store", "window", "dimensions")]
    widths = {
        "sum": max(1, *(width(view, "sum") for view in views)),
        "min": max(0, *(width(view, "min") for view in views)),
        "max": max(2, *(width(view, "max") for view in views)),  # a position has two
    }
    sums = [
        F.expr(f"{reducer}(get(cell.{reducer}s, {place}))").alias(f"{reducer}_{place}")
        for reducer, columns in widths.items()
        for place in range(columns)
    ]
    return cells.groupBy(*keys, received).agg(*sums).withColumn("epoch", F.col("epoch.start"))


def width(view: View, reducer: Reducer) -> int:
    """How many columns of a view this reducer joins."""
    return sum(column.by == reducer for column in view.columns.values())
