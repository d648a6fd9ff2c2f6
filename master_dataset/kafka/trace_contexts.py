"""Which traces the records of a micro-batch belong to, collected in Spark's workers while they read the records."""

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.accumulators import AccumulatorParam

from master_dataset.tracing import MOST_LINKS, TRACEPARENT, is_on, is_sampled

if TYPE_CHECKING:
    from pyspark.accumulators import Accumulator
    from pyspark.sql import SparkSession

TraceContexts = frozenset[bytes]
"""Values of the header `traceparent` of sampled traces, at most MOST_LINKS."""


def trace_contexts(spark: "SparkSession") -> "Accumulator[TraceContexts] | None":
    """Return the accumulator for the traces of a stream; None if this process has no tracer, so that nothing looks."""
    return spark.sparkContext.accumulator(frozenset(), TraceContextsParam()) if is_on() else None


def trace_contexts_of(batch: pa.RecordBatch) -> TraceContexts:
    """Return the sampled traces of unparsed records, with the columns of `record_stream`."""
    headers = batch.column("headers").flatten()
    if not len(headers):
        return frozenset()
    values = headers.field("value").filter(pc.equal(headers.field("key"), TRACEPARENT))
    return _bounded(frozenset(each for each in pc.unique(values).to_pylist() if each and is_sampled(each)))


def _bounded(found: TraceContexts) -> TraceContexts:
    return found if len(found) <= MOST_LINKS else frozenset(sorted(found)[:MOST_LINKS])


class TraceContextsParam(AccumulatorParam[TraceContexts]):
    """Collects the traces of the tasks of a micro-batch; a task that ran twice adds nothing."""

    def zero(self, value: TraceContexts) -> TraceContexts:  # noqa: ARG002 - Spark's signature
        """No traces."""
        return frozenset()

    def addInPlace(self, value1: TraceContexts, value2: TraceContexts) -> TraceContexts:  # noqa: N802 - Spark's name
        """Combine both."""
        return _bounded(value1 | value2)
