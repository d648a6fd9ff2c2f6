"""Recompute jobs, rollbacks and verification built from settings."""

from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING

import structlog

from batch_layer.recompute.job import Attempt, naming_failures
from batch_layer.recompute.planning import Steps
from batch_layer.recompute.rollback import Rollback
from deploy.cassandra import session_of
from deploy.process import LATER, give_way
from deploy.recompute.runner import answering
from serving_layer.admin.publications import RolledBack
from views.control.recompute import Recompute, RecomputeRequest, Recomputes, new_id

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from deploy.settings import Settings


def ask(settings: "Settings", asked: RecomputeRequest, *, why: str, by: str, id_: str | None = None) -> str:
    """Write down what is asked, before anything is done; gives back the id. One of that id stays as it was asked."""
    recompute = Recompute(id_ or new_id(), asked, by, why, datetime.now(UTC), "asked")
    Recomputes(session_of(settings.cassandra_address)).create(recompute)
    return recompute.id


def carry_out(settings: "Settings", id_: str, steps: Steps) -> Recompute:
    """Do what is left of it. Spark starts while a cut is reached: it takes as long."""
    with Attempt(settings, id_, steps) as attempt, naming_failures(id_):
        if not attempt.has_ended:
            attempt.computing.start()
        for step in (attempt.plan, attempt.compute, attempt.publish):
            step()
        return attempt.found


def recompute(settings: "Settings", asked: RecomputeRequest, *, why: str, by: str, steps: Steps) -> Recompute:
    """Both."""
    return carry_out(settings, ask(settings, asked, why=why, by=by), steps)


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


log = structlog.get_logger()


@dataclass(frozen=True)
class RestRollback:
    """RollingBack. Builds no generation of the speed layer: that takes minutes, and a caller would not wait so long."""

    settings: "Settings"

    def run(self, number: int, why: str, by: str, *, dry_run: bool) -> RolledBack:
        """RollbackTooFarError where the command would have to build a generation first."""
        with answering():
            done = Rollback(self.settings, builds=False).run(number, why, by, self, dry_run=dry_run)
        return RolledBack(done.publication, done.restores, done.cut, done.generation, done.partitions, done.dry_run)

    @staticmethod
    def step(done: int, total: int, what: str) -> None:
        """Goes to the log."""
        log.info("rollback.step", done=done, total=total, what=what)
