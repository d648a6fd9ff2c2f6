"""New events of all sources as one stream.

    Kafka, all topics -> parsed rows -> all rows of a store in one task, which counts them

A small micro-batch is parsed and counted by one task. A large one is shared by as many as the setting allows: each
parses some of the records, and packs its rows for the tasks that count them, so that Spark shuffles a few values of
bytes instead of every column of every row.

The stream has no state: what a micro-batch has to know of earlier ones is in Cassandra, by key.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from master_dataset.errors import MicroBatchTooLargeError
from master_dataset.kafka.connection import KafkaConnection
from master_dataset.kafka.growth import Partitions
from master_dataset.kafka.topics import Intake, record_span, record_stream
from master_dataset.parsing.arrow import released
from master_dataset.visits.visit import VisitRules
from speed_layer.arrow_tables import OUTPUT
from speed_layer.parser import Parser, RecordWriter, sources_of
from views.control.speed_layout import SpeedLayout
from views.core.view import View

if TYPE_CHECKING:
    from pyspark.accumulators import Accumulator

    from master_dataset.kafka.trace_contexts import TraceContexts
    from master_dataset.registry.terms_history import TermsUntil

Ages = tuple[timedelta, VisitRules]
"""The greatest age of events that count (A of R5), and the rules of visits."""
Count = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]
"""Takes parsed rows, returns `OUTPUT`. Runs in Spark's workers."""
ALONE = 5_000
"""Records of a micro-batch up to which one task counts them: half a second's, at 10,000 a second."""
_PACKED = pa.schema([("task", pa.int32()), ("rows", pa.binary())])
"""Parsed rows for a task: its number, and the rows as a stream of Arrow IPC."""
PACKED_BYTES = 4 * 2**20
"""Of a value, on average: Java holds some of them at a time."""
LEAST_PARSED_BYTES = 64 * 2**20
"""Of parsed events that a task may pass on, however many tasks there are: usual micro-batches need less."""
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
    terms: "Callable[[], TermsUntil]"
    offsets_since: "Callable[[str, int], Mapping[int, int]]"
    writers: Mapping[str, Sequence[RecordWriter]]
    traces: "Accumulator[TraceContexts] | None" = None

    def parser(self, views: Sequence[View]) -> Parser:
        """The parser of its records for these views."""
        return Parser.of(views, self.terms, self.writers, self.traces)


def input_stream(spark: SparkSession, views: Sequence[View], feed: Feed) -> DataFrame:
    """The streaming DataFrame of records."""
    topics = [source.topic for source in sources_of(views)]
    tasks = 1 if tasks_of(spark) == 1 else spark.sparkContext.defaultParallelism
    intake = Intake(feed.kafka, feed.partitions, feed.readable, feed.starting_offsets, feed.per_batch, tasks)
    return record_stream(spark, topics, intake)


@dataclass(frozen=True)
class Shares:
    """How a micro-batch is shared. No answer depends on it.

    Attributes:
        tasks: How many count it.
        layout: Says which stores one task counts.
        most_bytes: Of the parsed events of the micro-batch, because one task may have to count all of them.
    """

    tasks: int
    layout: SpeedLayout
    most_bytes: int


def counted(records: DataFrame, parser: Parser, count: Count, shares: Shares) -> pa.Table:
    """Parse and count the records of a micro-batch in Spark's workers, all of a store in one task. Returns `OUTPUT`.

    One task does both at once: a record goes to Python once, and nothing but `OUTPUT` comes back.

    Args:
        records: The micro-batch.
        parser: Parses them.
        count: Counts them.
        shares: How they are shared.

    Raises:
        PythonException: A worker raised MicroBatchTooLargeError. Nothing is counted then, because all records are
            parsed before any task counts.
    """
    output, tasks, most = from_arrow_schema(OUTPUT), shares.tasks, shares.most_bytes
    if tasks == 1:
        whole = records.coalesce(1)
        return whole.mapInArrow(lambda batches: released(count(bounded(parser(batches), most))), output).toArrow()
    task_of = partial(shares.layout.task, tasks=tasks)
    packs = from_arrow_schema(_PACKED)
    each = max(most // records.sparkSession.sparkContext.defaultParallelism, LEAST_PARSED_BYTES)
    parsed = records.mapInArrow(lambda batches: released(packed(bounded(parser(batches), each), task_of)), packs)
    shared = parsed.repartitionById(tasks, "task")
    return shared.mapInArrow(lambda batches: released(count(unpacked(batches))), output).toArrow()


def bounded(parsed: Iterable[pa.RecordBatch], most: int) -> Iterator[pa.RecordBatch]:
    """The same rows. MicroBatchTooLargeError if they have more than `most` bytes together."""
    size = 0
    for rows in parsed:
        size += rows.nbytes
        if size > most:
            message = f"the events of a micro-batch need more than {most >> 20:,} MB of memory"
            raise MicroBatchTooLargeError(message, do="no action needed: they are read again in smaller micro-batches")
        yield rows


def packed(parsed: Iterable[pa.RecordBatch], task_of: Callable[[str], int]) -> Iterator[pa.RecordBatch]:
    """The rows of each task, packed. `task_of`: the task of a store; rows without a store are for the first."""
    for rows in parsed:
        stores = rows["store"].dictionary_encode()
        of_store = pa.array(map(task_of, stores.dictionary.to_pylist()), pa.int32())
        of_row = pc.fill_null(of_store.take(stores.indices), 0)
        for task in sorted(pc.unique(of_row).to_pylist()):
            own = rows.filter(pc.equal(of_row, task))
            together = max(1, own.num_rows * PACKED_BYTES // max(1, own.nbytes))
            for start in range(0, own.num_rows, together):
                sink = pa.BufferOutputStream()
                with pa.ipc.new_stream(sink, own.schema) as stream:
                    stream.write_batch(own.slice(start, together))
                row = {"task": task, "rows": sink.getvalue().to_pybytes()}
                yield pa.RecordBatch.from_pylist([row], schema=_PACKED)


def unpacked(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The rows that `packed` has packed."""
    for batch in batches:
        for rows in batch["rows"]:
            yield from pa.ipc.open_stream(rows.as_buffer())


def past_records(spark: SparkSession, view: View, feed: Feed, span: Span) -> tuple[DataFrame, Parser]:
    """The records of a view's topic between two offsets, and a parser of them without side effects."""
    records = record_span(spark, feed.kafka, feed.partitions, view.source.topic, span)
    return records, Parser.of([view], feed.terms, {})


def tasks_of(spark: SparkSession) -> int:
    """How many tasks count a micro-batch at most."""
    wanted = int(spark.conf.get("spark.sql.shuffle.partitions") or 1)
    return min(wanted, spark.sparkContext.defaultParallelism)
