"""New facts as one stream of arrivals for all sources and views.

    Kafka, all topics -> parsed rows -> contributions -> all of a store in one task

The stream keeps no state: what one micro-batch has to know of those before it is in Cassandra, under its keys.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention
from pyspark.sql.pandas.types import from_arrow_schema

from master_dataset.kafka.topics import Intake, record_span, record_stream
from master_dataset.visits.visit import VisitRules
from speed_layer.arrow_tables import INPUT_COLUMNS
from speed_layer.contributions import contributions_sql
from speed_layer.parser import Parser, sources_of
from speed_layer.receipts import ReceiptWriter
from views.core.view import View

if TYPE_CHECKING:
    from master_dataset.registry.registry import TermsOf

Ages = tuple[timedelta, VisitRules]
"""A of R5, and when sightings are fresh."""
Span = tuple[Mapping[int, int], Mapping[int, int]]
"""Partition to offset: from these on, and before those."""


@dataclass(frozen=True)
class Feed:
    """Where new facts come from. `starting_offsets`: the JSON that Spark's source takes.

    `offsets_since`: of a topic and a time in ms, partition to the first offset stamped then or later.
    `receipts`: topic to the writer of its records, for the topics whose records are shown as they are.
    """

    bootstrap: str
    starting_offsets: str
    per_batch: int
    terms: "Callable[[], TermsOf]"
    offsets_since: "Callable[[str, int], Mapping[int, int]]"
    receipts: Mapping[str, ReceiptWriter]


def input_stream(spark: SparkSession, views: Sequence[View], feed: Feed, ages: Ages) -> DataFrame:
    """The streaming DataFrame of `ARRIVALS`. All of a store are in one task, of all partitions that it was sent to."""
    topics = [source.topic for source in sources_of(views)]
    tasks = 1 if _tasks(spark) == 1 else spark.sparkContext.defaultParallelism
    intake = Intake(feed.bootstrap, feed.starting_offsets, feed.per_batch, tasks)
    arrived = _arrivals_of(record_stream(spark, topics, intake), views, feed, ages)
    return arrived.coalesce(1) if _tasks(spark) == 1 else arrived.repartition(_tasks(spark), "store")


def past_input(spark: SparkSession, view: View, feed: Feed, ages: Ages, span: Span) -> DataFrame:
    """What one view's topic held between these offsets, as `ARRIVALS`: read again, nothing is written for it."""
    records = record_span(spark, feed.bootstrap, view.source.topic, *span)
    return _arrivals_of(records, [view], replace(feed, receipts={}), ages)


def _arrivals_of(records: DataFrame, views: Sequence[View], feed: Feed, ages: Ages) -> DataFrame:
    parser = Parser.of(views, feed.terms, feed.receipts)
    parsed = records.mapInArrow(parser, from_arrow_schema(parser.schema))
    return parsed.select(*INPUT_COLUMNS.names, F.expr(contributions_sql(views, *ages)).alias("contributions"))


def _tasks(spark: SparkSession) -> int:
    return int(spark.conf.get("spark.sql.shuffle.partitions") or 1)
