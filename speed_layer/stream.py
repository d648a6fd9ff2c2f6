"""New events of all sources as one stream.

    Kafka, all topics -> parsed rows -> contributions -> all rows of a store in one task

The stream has no state: what a micro-batch has to know of earlier ones is in Cassandra, by key.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention
from pyspark.sql.pandas.types import from_arrow_schema

from master_dataset.kafka.connection import KafkaConnection
from master_dataset.kafka.growth import Partitions
from master_dataset.kafka.topics import Intake, record_span, record_stream
from master_dataset.visits.visit import VisitRules
from speed_layer.arrow_tables import INPUT_COLUMNS
from speed_layer.contributions import contributions_sql
from speed_layer.parser import Parser, RecordWriter, sources_of
from views.core.view import View

if TYPE_CHECKING:
    from pyspark.accumulators import Accumulator

    from master_dataset.kafka.trace_contexts import TraceContexts
    from master_dataset.registry.registry import TermsOf

Ages = tuple[timedelta, VisitRules]
"""The greatest age of events that count (A of R5), and the rules of visits."""
Span = tuple[Mapping[int, int], Mapping[int, int]]
"""Partition to its first offset, and to the offset after the last."""


@dataclass(frozen=True)
class Feed:
    """Where new events come from.

    Attributes:
        kafka: The cluster.
        partitions: Those of the topics.
        readable: How many of them are read, the first ones.
        starting_offsets: The JSON that Spark's Kafka source takes.
        per_batch: The maximum number of records per micro-batch.
        terms: Creates the look-up of stores in a worker.
        offsets_since: Topic and time (ms) to the first offset, by partition, with that timestamp or a later one.
        writers: Topic to what writes its records while they are parsed, such as receipts that are shown unchanged.
        traces: Collects the traces of the records; None: nobody asks for them.
    """

    kafka: KafkaConnection
    partitions: Partitions
    readable: int
    starting_offsets: str
    per_batch: int
    terms: "Callable[[], TermsOf]"
    offsets_since: "Callable[[str, int], Mapping[int, int]]"
    writers: Mapping[str, Sequence[RecordWriter]]
    traces: "Accumulator[TraceContexts] | None" = None


def input_stream(spark: SparkSession, views: Sequence[View], feed: Feed, ages: Ages) -> DataFrame:
    """The streaming DataFrame of INPUT. All rows of a store are in one task, whatever partition they came from."""
    topics = [source.topic for source in sources_of(views)]
    tasks = 1 if _tasks(spark) == 1 else spark.sparkContext.defaultParallelism
    intake = Intake(feed.kafka, feed.partitions, feed.readable, feed.starting_offsets, feed.per_batch, tasks)
    input_rows = _arrivals_of(record_stream(spark, topics, intake), views, feed, ages)
    return input_rows.coalesce(1) if _tasks(spark) == 1 else input_rows.repartition(_tasks(spark), "store")


def past_input(spark: SparkSession, view: View, feed: Feed, ages: Ages, span: Span) -> DataFrame:
    """The events of a view's topic between two offsets, as INPUT, without side effects."""
    records = record_span(spark, feed.kafka, feed.partitions, view.source.topic, span)
    return _arrivals_of(records, [view], replace(feed, writers={}, traces=None), ages)


def _arrivals_of(records: DataFrame, views: Sequence[View], feed: Feed, ages: Ages) -> DataFrame:
    parser = Parser.of(views, feed.terms, feed.writers, feed.traces)
    parsed = records.mapInArrow(parser, from_arrow_schema(parser.schema))
    return parsed.select(*INPUT_COLUMNS.names, F.expr(contributions_sql(views, *ages)).alias("contributions"))


def _tasks(spark: SparkSession) -> int:
    return int(spark.conf.get("spark.sql.shuffle.partitions") or 1)
