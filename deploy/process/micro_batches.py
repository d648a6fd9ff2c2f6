"""How long each micro-batch took, as Spark says, as a metric."""

from prometheus_client import Histogram
from pyspark.sql.streaming.listener import (
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)

SECONDS = Histogram(
    "galatea_micro_batch_seconds", "Duration of a micro-batch, from its trigger to its end.", ("reader",),
    buckets=(0.1, 0.2, 0.3, 0.5, 0.75, 1, 1.5, 2, 3, 5, 10, 30, 60, 300),
)  # fmt: skip


class MicroBatches(StreamingQueryListener):
    """Those of one process. Micro-batches that read nothing are left out."""

    def __init__(self, reader: str) -> None:
        """`reader`: archive or speed."""
        self._seconds = SECONDS.labels(reader)

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802 - Spark's name
        """Nothing to count."""

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802 - Spark's name
        """One micro-batch is done."""
        if event.progress.numInputRows > 0:
            self._seconds.observe(event.progress.batchDuration / 1000)

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802 - Spark's name
        """The process ends with it, and says why."""
