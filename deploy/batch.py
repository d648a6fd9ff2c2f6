"""Batch work built from settings: recompute jobs, rollbacks, ledgers and verification."""

import asyncio
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import cached_property, partial
from typing import TYPE_CHECKING

from batch_layer.context import BatchContext
from batch_layer.failures import translated_failures
from batch_layer.fence import Fence
from batch_layer.ledger.writer import LedgerWriter
from batch_layer.progress import Steps
from batch_layer.rebuild import all_are_few
from batch_layer.recompute.job import RecomputeJob
from batch_layer.recompute.rollback import Rollback
from batch_layer.verify.totals import TotalsQuestion, TotalsSnapshot
from batch_layer.verify.verification import Verification
from deploy.backup.mark import refuse_unfinished_restore
from deploy.cassandra import session_of
from deploy.partitions import partitions_of
from deploy.process import BACKGROUND_NICENESS, lower_priority
from deploy.secrets_key import alert_signatures_of
from deploy.telemetry.datasets import recomputed_datasets
from deploy.telemetry.jobs import lineage_of_job
from master_dataset.cassandra_tables import ArchivePositions
from master_dataset.delta.tables import MasterTables
from master_dataset.errors import GalateaError
from master_dataset.kafka.topics import Topics
from serving_layer.query.catalogue import Catalogue
from serving_layer.query.epoch_answers import EpochAnswers
from serving_layer.query.resolve import MetricRequest
from views import registered_views
from views.alerts.timings import AlertTimings
from views.control.recompute import Recompute, RecomputeRequest, Recomputes, new_id
from views.metrics import registered_metrics

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from deploy.settings import Settings

HEAP_MB = 768
PARTITIONS = 16
VERIFY_HEAP_MB = 1024
VERIFY_PARTITIONS = 8


class LazySpark:
    """The Spark session of a recompute, started when it is first needed. It takes as long as reaching a cut."""

    def __init__(self, settings: "Settings", *, is_long: bool) -> None:
        """`is_long`: a computation of minutes, not of seconds."""
        self._settings, self.is_long = settings, is_long

    def start(self) -> None:
        """Start it in the background."""
        _ = self._session

    def get(self) -> "SparkSession":
        """Wait for the session. It has run a first job, in which its Python workers start."""
        return self._session.result()

    @cached_property
    def _session(self) -> "Future[SparkSession]":
        pool = ThreadPoolExecutor(1, "spark")
        starting = pool.submit(self._start)
        pool.shutdown(wait=False)
        return starting

    def _start(self) -> "SparkSession":
        lower_priority(BACKGROUND_NICENESS)  # of this thread, and so of the Java and the workers that it starts

        from deploy.spark import Work, spark_session  # noqa: PLC0415 - only where something is computed

        work = Work.LONG if self.is_long else Work.SHORT
        partitions = max(PARTITIONS, 2 * self._settings.spark.cores)
        session = spark_session(self._settings, "rebuild", work, memory_mb=HEAP_MB, partitions=partitions)
        session.range(1).mapInArrow(lambda batches: batches, "id long").collect()
        return session


def archive_has_read_all(settings: "Settings") -> None:
    """Wait until the archive has read everything that was acknowledged before the call; see `Fence.wait_for_all`."""
    context = context_of(settings)
    context.fence.wait_for_all(ArchivePositions(context.session).read, "archive", context.cut_timeout)


def context_of(settings: "Settings") -> BatchContext:
    """The deployment as batch work sees it."""
    topics = _topics()
    partitions = partial(partitions_of, settings, Topics(settings.kafka.connection))
    return BatchContext(
        connect=partial(session_of, settings.cassandra.address),
        tables=MasterTables(settings.paths.master_uri),
        fence=Fence(settings.kafka.connection, partitions, topics, settings.layers.epoch, settings.layers.skew),
        definitions=settings.definitions,
        visits=settings.layers.visits,
        oldest=settings.speed.oldest,
        few_events=settings.batch.small_rebuild_events,
        prompt_correction_days=settings.batch.prompt_correction_days,
        cut_timeout=settings.batch.cut_timeout,
        speed_ttl=settings.speed.ttl,
        retention=settings.kafka.retention,
        kafka=settings.kafka.connection,
        partitions=partitions,
        timings=AlertTimings(),
        signatures=partial(alert_signatures_of, settings),
    )


def _context_of_command(settings: "Settings") -> BatchContext:
    """The same for a command: OperatorError while a backup is being restored, because half of it would be missing."""
    context = context_of(settings)
    refuse_unfinished_restore(context.session)
    return context


def _topics() -> list[str]:
    return sorted({view.source.topic for view in registered_views()})


def create_recompute(
    settings: "Settings", request: RecomputeRequest, *, why: str, by: str, id_: str | None = None
) -> str:
    """Write a recompute down before anything is done; returns its id. An existing one of that id stays as it is.

    Raises:
        OperatorError: A backup is being restored.
    """
    session = session_of(settings.cassandra.address)
    refuse_unfinished_restore(session)
    recompute = Recompute(id_ or new_id(), request, by, why, datetime.now(UTC), "asked")
    Recomputes(session).create(recompute)
    return recompute.id


def job_of(settings: "Settings", id_: str, steps: Steps, spark: LazySpark | None = None) -> RecomputeJob:
    """A job for the recompute of that id. UnknownNameError if there is none."""
    context = _context_of_command(settings)
    return RecomputeJob(context, id_, (spark or spark_of(settings, id_)).get, steps)


@contextmanager
def recompute_job(
    settings: "Settings", id_: str, steps: Steps, spark: LazySpark | None = None, step: str = ""
) -> Iterator[RecomputeJob]:
    """Hold the lock of a recompute within the block, and report its lineage. `step`: the only one that is done."""
    name = f"recompute.{step}" if step else "recompute"
    with lineage_of_job(settings, name, group=id_) as lineage, job_of(settings, id_, steps, spark) as job:
        lineage.describe = lambda: recomputed_datasets(settings, job.record)
        yield job


def spark_of(settings: "Settings", id_: str) -> LazySpark:
    """The Spark session for the recompute of that id. UnknownNameError if there is none."""
    request = Recomputes(session_of(settings.cassandra.address)).find(id_).request
    return LazySpark(settings, is_long=request.full)


def run_recompute(settings: "Settings", id_: str, steps: Steps) -> Recompute:
    """Do what is left of a recompute.

    For a full one of many events Spark starts while a cut is reached: both take equally long.
    """
    spark = spark_of(settings, id_)
    with recompute_job(settings, id_, steps, spark) as job, translated_failures(id_):
        if spark.is_long and not job.has_ended and not _is_small(settings):
            spark.start()  # most others are too small to need it
        job.plan()
        job.compute()
        return job.publish()


def _is_small(settings: "Settings") -> bool:
    return all_are_few(MasterTables(settings.paths.master_uri), _topics(), settings.batch.small_rebuild_events)


def recompute(settings: "Settings", request: RecomputeRequest, *, why: str, by: str, steps: Steps) -> Recompute:
    """Create a recompute and run it."""
    return run_recompute(settings, create_recompute(settings, request, why=why, by=by), steps)


def ledgers_of(settings: "Settings") -> LedgerWriter:
    """The ledgers, with a Spark session that is started when events have to be read."""
    return LedgerWriter(_context_of_command(settings), LazySpark(settings, is_long=False).get)


def rollback_of(settings: "Settings", *, builds: bool = True) -> Rollback:
    """Rollbacks. `builds`: whether a generation of the speed layer may be built first, which takes minutes."""
    return Rollback(_context_of_command(settings), builds)


def verification_of(settings: "Settings") -> Verification:
    """Verification, with a Spark session of its own."""

    def spark() -> "SparkSession":
        from deploy.spark import Work, spark_session  # noqa: PLC0415 - the JVM starts with it

        partitions = max(VERIFY_PARTITIONS, 2 * settings.spark.cores)
        return spark_session(settings, "verify", Work.LONG, memory_mb=VERIFY_HEAP_MB, partitions=partitions)

    return Verification(_context_of_command(settings), spark, partial(_answers_as_of, settings))


def _answers_as_of(
    settings: "Settings", snapshot: TotalsSnapshot, questions: Sequence[TotalsQuestion]
) -> Iterator[bytes | GalateaError]:
    """What the serving layer answers to each question, in this process."""
    from deploy.wiring import readers_of  # noqa: PLC0415 - only for commands that answer queries

    catalogue = Catalogue({view.name: view for view in registered_views()}, registered_metrics())
    with asyncio.Runner() as runner:
        found = EpochAnswers.at(readers_of(settings), catalogue, settings.speed.ttl, snapshot.pointer, snapshot.epoch)
        answers = runner.run(found).with_rows_kept()
        for metric, by, start, end, _ in questions:
            request = MetricRequest(metric, (), start, end, grain="day", by=(by,))
            try:
                yield runner.run(answers.ask(request, snapshot.stores))
            except GalateaError as error:
                yield error
