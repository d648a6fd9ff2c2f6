"""A rebuild from settings: fence, planner, Spark and Cassandra wired together."""

import uuid
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING

from batch_layer.fence import Fence
from batch_layer.asked import Asked
from batch_layer.plan import Plan, Planner
from batch_layer.rebuild import Outcome, Progress, Rebuild
from batch_layer.touched import Master
from deploy.cassandra import session_of
from master_dataset.archive_positions import ArchivePositions
from master_dataset.errors import CutNotReached, DefinitionNotCovered, NothingPublished
from master_dataset.tables import MasterTables
from speed_layer.generation import Generations
from views import current_definitions, registered_views, view_named
from views.core.pointer_row import PointerRow
from views.core.publication import Pointer

if TYPE_CHECKING:
    from cassandra.cluster import Session
    from pyspark.sql import SparkSession

    from deploy.settings import Settings

HEAP_MB = 768
PARTITIONS = 16


def rebuild(  # noqa: PLR0913 - four of them by name
    settings: "Settings", asked: Asked, *, wait: bool, why: str, by: str, progress: Progress
) -> Outcome:
    """Recompute what is asked and publish it. `wait`: at a cut that covers everything received before this call."""
    rebuilding = Rebuilding(settings)
    spark = rebuilding.starting_spark(full=asked.full)
    plan = rebuilding.plan(asked, wait=wait, progress=progress)
    if rebuilding.is_published(plan):
        return Outcome(plan.base.publication, plan.cut, 0, 0, 0, 0, 0)
    return rebuilding.run(plan, spark.result, why=why, by=by, progress=progress)


@dataclass(frozen=True)
class Rebuilding:
    """One deployment's rebuilds. `settings` says where everything is."""

    settings: "Settings"

    @property
    def _session(self) -> "Session":
        return session_of(self.settings.cassandra_address)

    def plan(self, asked: Asked, *, wait: bool, progress: Progress) -> Plan:
        """Reach a cut and say what would be recomputed. Changes nothing but for the markers."""
        for name in asked.views:
            view_named(name)
        pointer = PointerRow(self._session)
        base = pointer.read()
        published = pointer.publication(base.publication)
        current = current_definitions(self.settings.epoch_seconds)
        if asked.is_partial:
            refuse_partial(base, current)
        generation = generation_to_publish(Generations(self._session), base, current)
        cut = base.cut if asked.is_partial and base.publication else self._reach(base, wait=wait, progress=progress)
        tables = MasterTables(self.settings.master_uri)
        topics = {view.source.topic for view in registered_views()}
        read_at = datetime.now(UTC)
        masters = {topic: Master.newest(tables.path(topic)) for topic in sorted(topics)}
        versions: Mapping[str, int] = published.master_versions if published else {}
        planner = Planner(registered_views(), masters, base, versions, self.settings.epoch)
        return replace(planner.plan(asked, cut, generation, current), read_at=read_at)

    @staticmethod
    def is_published(plan: Plan) -> bool:
        """Whether the published row already says all that the plan would."""
        return bool(plan.base.publication) and not plan.days and plan.cut == plan.base.cut

    def run(self, plan: Plan, spark: "Callable[[], SparkSession]", *, why: str, by: str, progress: Progress) -> Outcome:
        """Compute the plan and publish it. CutNotReached if its generation of the speed layer has to read on first."""
        connect = partial(session_of, self.settings.cassandra_address)
        hand_over(Generations(self._session), plan.base, plan.generation)
        rebuild = Rebuild(spark, connect, MasterTables(self.settings.master_uri))
        return rebuild.run(plan, f"run-{uuid.uuid4()}", why, by, progress)

    def fence(self) -> Fence:
        """The fence of this deployment."""
        topics = sorted({view.source.topic for view in registered_views()})
        return Fence(self.settings.kafka_bootstrap, topics, self.settings.epoch, self.settings.skew)

    def starting_spark(self, *, full: bool) -> "Future[SparkSession]":
        """Ask for it before `plan`: Spark takes as long to start as a cut to be reached."""
        pool = ThreadPoolExecutor(1, "spark")
        starting = pool.submit(self._spark, full=full)
        pool.shutdown(wait=False)
        return starting

    def _spark(self, *, full: bool) -> "SparkSession":
        """A session that has run its first job, in which its Python workers start."""
        from deploy.spark import Work, spark_session  # noqa: PLC0415 - only where something is computed

        work = Work.LONG if full else Work.SHORT
        partitions = max(PARTITIONS, 2 * self.settings.spark_cores)
        session = spark_session(self.settings, "rebuild", work, memory_mb=HEAP_MB, partitions=partitions)
        session.range(1).mapInArrow(lambda batches: batches, "id long").collect()
        return session

    def _reach(self, base: Pointer, *, wait: bool, progress: Progress) -> datetime:
        fence = self.fence()
        cut = max(fence.next_cut() if wait else fence.newest_cut(), base.cut)  # clocks may step back
        progress.step(0, 0, f"cut at {cut:%H:%M:%S} UTC")
        marked = fence.mark(cut)
        fence.wait(marked, ArchivePositions(self._session).read, "archive", self.settings.cut_timeout)
        return cut


def generation_to_publish(generations: Generations, base: Pointer, current: Mapping[str, str]) -> int:
    """The generation to publish with: of the same definitions, and as far as the one of now (R12). 0: none yet.

    Changes nothing: see `hand_over`.
    """
    if not base.generation or dict(base.definitions) == dict(current):
        return base.generation
    newest = generations.find(generations.greatest())
    if newest is not None and dict(newest.definitions) == dict(current):
        if generations.is_as_far(newest, base.generation):
            return newest.number
        raise _not_caught_up(newest.number)
    message = "the definitions of the views differ from the published ones and no speed layer runs with them"
    raise DefinitionNotCovered(message, do="galatea down, galatea up --detach, then: galatea rebuild")


def hand_over(generations: Generations, base: Pointer, to: int) -> None:
    """Before a publication points at another generation: let the one of now write nothing more.

    CutNotReached if that may have written what `to` has not read yet; it is replaced all the same.
    """
    generation = generations.find(to)
    if generation is not None and to != base.generation and not generations.has_caught_up(generation, base.generation):
        raise _not_caught_up(to)


def _not_caught_up(number: int) -> CutNotReached:
    message = f"generation {number} of the speed layer has the new definitions but has not caught up"
    return CutNotReached(message, do="galatea status; wait a little, then: galatea rebuild")


def refuse_partial(base: Pointer, current: Mapping[str, str]) -> None:
    """A part keeps the published cut, so everything else has to be published already, with the same definitions."""
    if not base.publication:
        raise NothingPublished("nothing is published yet, so a part cannot be recomputed alone", do="galatea rebuild")
    if dict(base.definitions) != dict(current):
        message = "the definitions of the views differ from the published ones, so a part cannot be recomputed alone"
        raise DefinitionNotCovered(message, do="galatea rebuild")
