"""A recompute, carried out by one process: plan, compute, publish.

Each step can be repeated. It reads the record first and continues where an earlier attempt ended, in this process or
another: a plan that still holds is kept, finished portions are not computed again, a publication happens at most once.

    plan      reach a cut, choose the work, keep it under a new run name                      planning -> planned
    compute   write the cells, the manifest that names them, the ledger of what they change  computing -> computed
    publish   switch readers to the manifest, or end the preview                              -> published, previewed

The record is written under a lock. A process that has lost the lock changes nothing more; one that fails writes why
into the record before the exception is raised.
"""

from datetime import UTC, datetime
from types import TracebackType
from typing import TYPE_CHECKING, Self

import msgspec
import structlog

from batch_layer.alerts.auditor import AlertAuditor
from batch_layer.context import BatchContext
from batch_layer.ledger.writer import LedgerWriter
from batch_layer.plan import PREVIEWED_AT_MOST, Plan, RecomputePlanner, previewed_partitions
from batch_layer.progress import RecordedProgress, Steps
from batch_layer.publish import hand_over, publish
from batch_layer.rebuild import Rebuild, is_small
from batch_layer.recompute.lock import RecomputeLock
from batch_layer.run import Run, read_manifest
from master_dataset.cassandra_tables import CASSANDRA_UNAVAILABLE
from master_dataset.errors import GalateaError, RecomputeNotSmallError, RequestError
from master_dataset.failpoints import Failpoint, failpoint
from views import registered_views
from views.control.generation import Generations
from views.control.publication import PointerRow, Publication, RunStats
from views.control.recompute import (
    DONE,
    RESUMABLE,
    PlanNumber,
    PortionCounts,
    Problem,
    Progress,
    Recompute,
    Recomputes,
    Report,
    State,
    StoredPlan,
    run_named,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

log = structlog.get_logger()


class RecomputeJob:
    """Holds the lock of a recompute while the `with` block runs.

    Attributes:
        record: The recompute as stored, read again after every change.
    """

    def __init__(
        self,
        context: BatchContext,
        id_: str,
        spark: "Callable[[], SparkSession]",
        steps: Steps,
        planner: RecomputePlanner | None = None,
    ) -> None:
        """Read the record of the recompute.

        Args:
            context: The deployment.
            id_: The id of the recompute.
            spark: Returns the session; called only when something has to be computed.
            steps: Shows the progress.
            planner: Another planner, for measurements.

        Raises:
            UnknownNameError: There is no such recompute.
        """
        self._context, self._id, self._spark, self._steps = context, id_, spark, steps
        self._planner = planner or RecomputePlanner(context)
        self._recomputes = Recomputes(context.session)
        self.record = self._recomputes.find(id_)
        self._lock = RecomputeLock(context.session, id_)
        self._ledgers = LedgerWriter(context, spark)
        self._alerts = AlertAuditor(context)

    @property
    def has_ended(self) -> bool:
        """Whether nothing is left to do."""
        return self.record.state in DONE

    def __enter__(self) -> Self:
        """RecomputeRunningError if another process works on it."""
        self._lock.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Record why it failed, and release the lock."""
        try:
            if error is not None and not self.has_ended and self._lock.renew():
                self._update("failed", problem=self._problem(error))
            self._lock.__exit__(kind, error, trace)
        except CASSANDRA_UNAVAILABLE as also:  # the lock expires by itself
            log.warning("recompute.failure_not_recorded", recompute=self._id, error=type(also).__name__)

    def plan(self) -> Recompute:
        """Choose the cut and the work, unless the plan of an earlier attempt still holds."""
        if self.has_ended or self._plan_holds():
            return self.record
        self._update("planning", problem=None)
        number = (self.record.plan.number if self.record.plan else 0) + 1
        self._keep_plan(PlanNumber(number))  # the previous plan is abandoned, whatever happens to this one
        self._recomputes.forget_portions(self._id)
        plan = self._planner.plan(self.record.request, self._steps)
        if self.record.is_prompt_correction:
            self._refuse_large(plan)
        report = self._planned_report(plan)
        if plan.is_published and not self._is_preview:
            ended = self._update("unchanged", report=report)
            self._ledgers.catch_up(self._steps)
            return ended
        self._keep_plan(plan.stored(number, run_named(self._id, number)))
        return self._update("planned", report=report)

    def compute(self) -> Recompute:
        """Write every cell of the plan, the manifest that names them, and the ledger of what they would change.

        Raises:
            RequestError: It is not planned, or the plan does not hold any more.
            RecomputeRunningError: Another recompute that came first works on the same days of a view.
            CutNotReachedError: The generation to publish with has not caught up.
        """
        if self.has_ended:
            return self.record
        plan, run = self._current_plan()
        if self._is_computed(run):
            return self.record
        if not self._is_preview:
            self._lock.claim(plan)
            hand_over(Generations(self._context.session), plan.base, plan.generation)
        self._update("computing", problem=None)
        counts = self._compute_cells(plan, run)
        manifest = read_manifest(self._context.session, plan.base.manifest)
        manifest |= {(view.name, day): run for view, days in plan.work for day in days}
        Run(self._context.connect, run).write_manifest(manifest)
        failpoint(Failpoint.REBUILD_MANIFEST)
        corrections = self._ledgers.of_run(plan, run, self._steps)
        failpoint(Failpoint.REBUILD_LEDGER)
        report = msgspec.structs.replace(
            self._report,
            blocks=counts.blocks,
            repeats=counts.repeats,
            conflicts=counts.conflicts,
            miskeyed=counts.miskeyed,
            views=counts.views,
            corrections=corrections,
            run=run,
        )
        return self._update("computed", report=report)

    def publish(self) -> Recompute:
        """Switch readers to the cells, or end the preview; then correct alerts, also if only that was left to do.

        Raises:
            RequestError: It is not computed.
            PublicationMovedError: Another publication came first; the recompute has to be planned again.
        """
        if not self.has_ended:
            plan, run = self._current_plan()
            if not self._is_computed(run):
                message = f"recompute `{self._id}` is not computed yet"
                raise RequestError(message, do=f"galatea recompute compute {self._id}")
            if self._is_preview:
                self._end_preview(run, plan.base.publication)
            else:
                self._switch(plan, run)
        if not self._is_preview:
            self._alerts.catch_up(self._steps)
        return self.record

    @property
    def _is_preview(self) -> bool:
        return self.record.request.mode == "preview"

    @property
    def _report(self) -> Report:
        return self.record.report or Report()

    def _refuse_large(self, plan: Plan) -> None:
        """Raise RecomputeNotSmallError if more was archived since it was started than late events may start."""
        few, days = self._context.few_events, self._context.prompt_correction_days
        if not is_small(plan, few, days):
            message = f"late events would recompute {len(plan.days)} days now, which is no small rebuild any more"
            raise RecomputeNotSmallError(message, do="galatea rebuild, or wait for the scheduled one")

    def _planned_report(self, plan: Plan) -> Report:
        report = Report(
            base=plan.base.publication,
            cut=plan.cut,
            days=len(plan.days),
            alarms=list(plan.alarms),
            why=dict(plan.whys),
            corrections=None,
        )
        if not self._is_preview:
            return report
        partitions = previewed_partitions(plan)
        return msgspec.structs.replace(
            report, partitions=partitions[:PREVIEWED_AT_MOST], partitions_total=len(partitions)
        )

    def _compute_cells(self, plan: Plan, run: str) -> PortionCounts:
        """Compute the portions that are not finished, recording each of them; returns the sum of all."""
        context = self._context
        progress = RecordedProgress(self._steps, self._record_progress)
        rebuild = Rebuild(
            self._spark,
            context.connect,
            context.tables,
            context.visits,
            context.partitions().moves,
            few_events=context.few_events,
            keeps_conflicts=not self._is_preview,
        )
        done = {number: counts for number, counts in self.record.portions.items() if counts.run == run}
        for number, counts in rebuild.compute(plan, run, frozenset(done), progress):
            done[number] = counts
            self._recomputes.keep_portion(self._id, number, counts)
        return sum(done.values(), start=PortionCounts())

    def _switch(self, plan: Plan, run: str) -> None:
        report = self._report
        self._renew()
        publication = self._publication(plan, run, report)
        publish(PointerRow(self._context.session), plan.base, publication)
        failpoint(Failpoint.REBUILD_PUBLISHED)
        log.info("rebuild.published", publication=publication.number, cut=str(plan.cut), recompute=self._id)
        report = msgspec.structs.replace(report, publication=publication.number)
        self._update("published", publication=publication.number, report=report)
        if report.corrections:  # otherwise speed is behind, or Kafka is unavailable
            self._ledgers.catch_up(self._steps)

    def _end_preview(self, run: str, base: int) -> None:
        totals = self._report.corrections
        if totals:
            self._ledgers.table.close(self._id, run, base, totals)
        self._update("previewed")

    def _publication(self, plan: Plan, run: str, report: Report) -> Publication:
        stats = RunStats(
            blocks=report.blocks,
            repeats=report.repeats,
            conflicts=report.conflicts,
            miskeyed=report.miskeyed,
            views=report.views,
            days=report.days,
            alarms=list(plan.alarms),
            read_at=plan.read_at,
            recompute=self._id,
            read_versions={topic: master.version for topic, master in plan.masters.items()},
            partitions=sum(len(days) for _, days in plan.work),
            base_generation=plan.base.generation,
            seconds=round((datetime.now(UTC) - self.record.requested_at).total_seconds(), 1),
        )
        return Publication(
            number=plan.base.publication + 1,
            cut=plan.cut,
            manifest=run,
            generation=plan.generation,
            published_at=datetime.now(UTC),
            published_by=self.record.requested_by,
            why=self.record.why,
            definitions=plan.definitions,
            master_versions=plan.master_versions,
            stats=stats,
        )

    def _current_plan(self) -> tuple[Plan, str]:
        """The plan and its run. RequestError, and the plan is discarded, if it cannot be resumed."""
        stored = self._stored_plan
        if stored is None or not self._is_resumable(stored):
            if self.record.plan:  # recording the failure must not make an old plan look young
                self._keep_plan(PlanNumber(self.record.plan.number))
            message = (
                f"recompute `{self._id}` has no plan, or an outdated one, or views have changed since it was planned"
            )
            raise RequestError(message, do=f"galatea rebuild --id {self._id}")
        return Plan.restored(stored, registered_views()), stored.run

    @property
    def _stored_plan(self) -> StoredPlan | None:
        return self.record.plan if isinstance(self.record.plan, StoredPlan) else None

    def _plan_holds(self) -> bool:
        """Whether nothing but its own run was published since it was made."""
        stored = self._stored_plan
        if stored is None or not self._is_resumable(stored):
            return False
        pointer, base = PointerRow(self._context.session), stored.base.publication
        if pointer.read().publication == base:
            return True
        published = pointer.publication(base + 1)
        return published is not None and published.manifest == stored.run

    def _is_resumable(self, stored: StoredPlan) -> bool:
        """Whether definitions are the same, and no garbage collection can have deleted its cells."""
        is_young = datetime.now(UTC) - (self.record.updated_at or self.record.requested_at) <= RESUMABLE
        return is_young and stored.definitions == self._context.definitions

    def _is_computed(self, run: str) -> bool:
        """Whether all cells of this run are written. The state may belong to another plan."""
        return self.record.state == "computed" and self._report.run == run

    def _problem(self, error: BaseException) -> Problem:
        if isinstance(error, GalateaError):
            return Problem.of(error)
        return Problem("interrupted", repr(error)[:500], f"see the log; then: galatea rebuild --id {self._id}")

    def _record_progress(self, progress: Progress) -> None:
        self._recomputes.update(self._id, "computing", progress=progress)

    def _renew(self) -> None:
        if not self._lock.renew():
            raise self._lock.lost()

    def _keep_plan(self, plan: PlanNumber) -> None:
        """Continue with this plan. RecomputeRunningError if another process has planned it in the meantime."""
        if not self._recomputes.plan(self.record, plan):
            raise self._lock.lost()
        self.record = self._recomputes.find(self._id)

    def _update(self, state: State, **values: Progress | Problem | Report | int | None) -> Recompute:
        """Write the state and these columns. RecomputeRunningError if another process has taken over."""
        self._renew()
        self._recomputes.update(self._id, state, **values)
        self.record = self._recomputes.find(self._id)
        return self.record
