"""New facts as one stream of arrivals for all sources and views.

    each source: Kafka -> parsed rows -> contributions  \
    each source: Kafka -> parsed rows -> contributions   > union -> all of a store in one task

The stream keeps no state: what one micro-batch has to know of those before it is in Cassandra, under its keys.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import reduce
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention
from pyspark.sql.pandas.types import from_arrow_schema

from master_dataset.kafka import Intake, record_span, record_stream
from master_dataset.parsing.rows import output_schema, rows
from master_dataset.visits.visit import VisitRules
from speed_layer.arrivals import PLAIN, events_and_positions
from speed_layer.contributions import contributions_sql
from speed_layer.receipts import COLUMNS as RECEIPT_COLUMNS
from speed_layer.receipts import ReceiptWriter
from views.core.view import View

if TYPE_CHECKING:
    from master_dataset.registry import TermsOf
    from master_dataset.source import Source

OF_SIGHTINGS = frozenset({"business_day", "device", "is_inside"})
"""What views of visits read of a sighting."""
Ages = tuple[timedelta, VisitRules]
"""A of R5, and when sightings are fresh."""
Span = tuple[Mapping[int, int], Mapping[int, int]]
"""Partition to offset: from these on, and before those."""
ONLY_ARCHIVED = ("key", "value", "headers", "reason", "field", "sentence")
"""Columns of a parsed row that speed has no use for."""


@dataclass(frozen=True)
class Feed:
    """Where new facts come from. `starting_offsets`: topic to the JSON that Spark's source takes.

    `offsets_since`: of a topic and a time in ms, partition to the first offset stamped then or later.
    `receipts`: topic to the writer of its records, for the topics whose records are shown as they are.
    """

    bootstrap: str
    starting_offsets: Mapping[str, str]
    per_batch: int
    terms: "Callable[[], TermsOf]"
    offsets_since: "Callable[[str, int], Mapping[int, int]]"
    receipts: Mapping[str, ReceiptWriter]


def arrivals(spark: SparkSession, views: Sequence[View], feed: Feed, ages: Ages) -> DataFrame:
    """The streaming DataFrame of `ARRIVALS`. All of a store are in one task, of all partitions that it was sent to."""
    arrived = reduce(DataFrame.unionByName, [_of(spark, each, views, feed, ages) for each in sources_of(views)])
    tasks = _tasks(spark)
    return arrived.coalesce(1) if tasks == 1 else arrived.repartition(tasks, "store")


def sources_of(views: Sequence[View]) -> "list[Source[Any]]":
    """The sources that these views read, sorted by topic."""
    by_topic = {view.source.topic: view.source for view in views}
    return [by_topic[topic] for topic in sorted(by_topic)]


def past_arrivals(spark: SparkSession, view: View, feed: Feed, ages: Ages, span: Span) -> DataFrame:
    """What one view's topic held between these offsets, as `ARRIVALS`: read again, nothing is written for it."""
    topic = view.source.topic
    records = record_span(spark, feed.bootstrap, topic, *span)
    return _arrivals_of(records, view.source, [view], replace(feed, receipts={}), ages)


def _of(spark: SparkSession, source: "Source[Any]", views: Sequence[View], feed: Feed, ages: Ages) -> DataFrame:
    own = [view for view in views if view.source.topic == source.topic]
    tasks = 1 if _tasks(spark) == 1 else spark.sparkContext.defaultParallelism
    intake = Intake(feed.bootstrap, feed.starting_offsets[source.topic], feed.per_batch, tasks)
    return _arrivals_of(record_stream(spark, source.topic, intake), source, own, feed, ages)


def _arrivals_of(records: DataFrame, source: "Source[Any]", own: Sequence[View], feed: Feed, ages: Ages) -> DataFrame:
    schema = pa.schema([field for field in output_schema(source) if field.name not in ONLY_ARCHIVED])
    terms, receipts = feed.terms, feed.receipts.get(source.topic)
    unread = unread_columns(source, own) - frozenset(RECEIPT_COLUMNS if receipts else ())

    def parsed(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in rows(source, batches, terms(), unread=unread):
            if receipts is not None:
                receipts(batch)
            yield from events_and_positions(batch, schema)

    contributions = F.expr(contributions_sql(own, source.topic, *ages)).alias("contributions")
    return records.mapInArrow(parsed, from_arrow_schema(schema)).select(*PLAIN.names, contributions)


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
    words |= OF_SIGHTINGS if any(view.counts_visits for view in views) else frozenset()
    return frozenset(name for name in source.columns if name not in words)


def _tasks(spark: SparkSession) -> int:
    return int(spark.conf.get("spark.sql.shuffle.partitions") or 1)
