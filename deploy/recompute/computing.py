"""The Spark of a recompute. It takes as long to start as a cut to be reached, so it is asked for before."""

from concurrent.futures import Future, ThreadPoolExecutor
from functools import cached_property
from typing import TYPE_CHECKING

from deploy.priority import LATER, give_way

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from deploy.settings import Settings

HEAP_MB = 768
PARTITIONS = 16


class Computing:
    """One session per process, started when it is first asked for."""

    def __init__(self, settings: "Settings", *, is_long: bool) -> None:
        """`is_long`: a computation of minutes, not of seconds."""
        self._settings, self._is_long = settings, is_long

    def start(self) -> None:
        """Begin, and do not wait for it."""
        _ = self._session

    def spark(self) -> "SparkSession":
        """The session that has run its first job, in which its Python workers start."""
        return self._session.result()

    @cached_property
    def _session(self) -> "Future[SparkSession]":
        pool = ThreadPoolExecutor(1, "spark")
        starting = pool.submit(self._started)
        pool.shutdown(wait=False)
        return starting

    def _started(self) -> "SparkSession":
        give_way(LATER)  # of this thread, and so of the Java and the workers that it starts

        from deploy.spark import Work, spark_session  # noqa: PLC0415 - only where something is computed

        work = Work.LONG if self._is_long else Work.SHORT
        partitions = max(PARTITIONS, 2 * self._settings.spark_cores)
        session = spark_session(self._settings, "rebuild", work, memory_mb=HEAP_MB, partitions=partitions)
        session.range(1).mapInArrow(lambda batches: batches, "id long").collect()
        return session
