"""One process's work at a recompute: plan, compute, publish. Each step may be repeated, and takes up what is there."""

from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cached_property, partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import orjson
import structlog

from batch_layer.maintenance.reachable import RESUMABLE
from batch_layer.publish import publish
from batch_layer.rebuild import Rebuild, added_up
from batch_layer.recompute.kept_plan import kept, read_plan
from batch_layer.recompute.partitions import listed
from batch_layer.recompute.plan import Plan
from batch_layer.recompute.recompute import Recompute, Recomputes, State, run_named
from batch_layer.recompute.running import Running
from batch_layer.run import Run, read_manifest
from deploy.cassandra import FAILURES, session_of
from deploy.definitions import definitions
from deploy.recompute.alert_keeper import AlertKeeper
from deploy.recompute.computing import Computing
from deploy.recompute.covering import hand_over
from deploy.recompute.ledgers import LedgerKeeper
from deploy.recompute.planning import Planning, Steps, is_published
from deploy.recompute.progress import RecordedProgress
from master_dataset.delta.tables import MasterTables
from master_dataset.errors import GalateaError, RequestError
from master_dataset.failpoints import CrashPoint, passing
from speed_layer.generation import Generations
from views import registered_views
from views.control.pointer_row import PointerRow, Publication

if TYPE_CHECKING:
    from cassandra.cluster import Session

    from deploy.settings import Settings

ENDED = ("published", "previewed", "unchanged")
log = structlog.get_logger()


class Attempt:
    """Holds the recompute from entering to leaving. What fails is written down before it is raised."""

    def __init__(self, settings: "Settings", id_: str, steps: Steps, planning: Planning | None = None) -> None:
        """`steps` draws how far it is. UnknownName if nobody has asked for such a recompute."""
        self._settings, self._id, self._steps = settings, id_, steps
        self._planning = planning or Planning(settings)
        self._recomputes = Recomputes(self._session)
        self.found = self._recomputes.find(id_)
        self._running = Running(self._session, id_)
        self._progress = RecordedProgress(steps, self._keep_progress)

    @property
    def _session(self) -> "Session":
        return session_of(self._settings.cassandra_address)

    @cached_property
    def computing(self) -> Computing:
        """The Spark of this process."""
        return Computing(self._settings, is_long=self.found.asked.full)

    @property
    def has_ended(self) -> bool:
        """Whether nothing is left to do."""
        return self.found.state in ENDED

    def __enter__(self) -> Self:
        """RecomputeRunning if another process works on it."""
        self._running.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Say why it failed, and let others have it."""
        try:
            if error is not None and not self.has_ended and self._running.renews():
                self._fail(error)
            self._running.__exit__(kind, error, trace)
        except FAILURES as also:  # the row expires by itself
            log.warning("recompute.not_written_down", recompute=self._id, error=type(also).__name__)

    def _fail(self, error: BaseException) -> None:
        if isinstance(error, GalateaError):
            problem = {"code": error.code, "message": error.message, "do": error.do}
        else:
            do = f"see the log; then: galatea rebuild --id {self._id}"
            problem = {"code": "interrupted", "message": repr(error)[:500], "do": do}
        self._update("failed", problem=problem)

    def plan(self) -> Recompute:
        """Choose the cut and the work, unless that is done and still holds: then an interrupted run goes on."""
        if self.has_ended or self._plan_holds():
            return self.found
        self._update("planning", problem=None)
        number = (self.found.plan or {}).get("number", 0) + 1
        self._keep({"number": number})  # nobody goes on with the one before, whatever comes of this one
        self._recomputes.forget_portions(self._id)
        plan = self._planning.plan(self.found.asked, self._steps)
        is_preview = self.found.asked.mode == "preview"
        report = self._told(plan) | (listed(plan) if is_preview else {})
        if is_published(plan) and not is_preview:
            ended = self._update("unchanged", report=report)
            self._keeper.catch_up(self._steps)
            return ended
        self._keep({"number": number, **kept(plan, run_named(self._id, number))})
        return self._update("planned", report=report)

    def compute(self) -> Recompute:
        """Write every cell of the plan, the manifest that names them, and the ledger of what they would change."""
        if self.has_ended:
            return self.found
        plan, run = self._planned()
        if self._is_computed(run):
            return self.found
        tables, publishes = MasterTables(self._settings.master_uri), self.found.asked.mode == "publish"
        if publishes:
            self._running.claim(plan)
            hand_over(Generations(self._session), plan.base, plan.generation)
        self._update("computing", problem=None)
        connect = partial(session_of, self._settings.cassandra_address)
        rebuild = Rebuild(self.computing.spark, connect, tables, self._settings.visits, keeps_conflicts=publishes)
        done = {number: counted for number, counted in self.found.portions.items() if counted.get("run") == run}
        for number, counted in rebuild.compute(plan, run, done, self._progress):
            done[number] = {**counted, "run": run}
            self._recomputes.keep_portion(self._id, number, done[number])
        manifest = read_manifest(self._session, plan.base.manifest)
        manifest |= {(view.name, day): run for view, days in plan.work for day in days}
        Run(connect, run).write_manifest(manifest)
        passing(CrashPoint.REBUILD_MANIFEST)
        corrections = self._keeper.of_run(plan, run, self._steps)
        passing(CrashPoint.REBUILD_LEDGER)
        return self._update(
            "computed", report=self._report() | added_up(done) | {"corrections": corrections, "run": run}
        )

    def publish(self) -> Recompute:
        """Switch readers to the cells, or end the preview. At most one publication, however often it is tried.

        Then correct alerts, also where that was all that was left to do.
        """
        if not self.has_ended:
            self._switch()
        if self.found.asked.mode == "publish":
            AlertKeeper(self._settings).catch_up(self._steps)
        return self.found

    def _switch(self) -> None:
        plan, run = self._planned()
        if not self._is_computed(run):
            message = f"recompute `{self._id}` is not computed yet"
            raise RequestError(message, do=f"galatea recompute compute {self._id}")
        if self.found.asked.mode == "preview":
            self._end_preview(run, plan.base.publication)
            return
        report = self._report()
        self._renew()
        publication = self._publication(plan, run, report)
        publish(PointerRow(self._session), plan.base, publication)
        passing(CrashPoint.REBUILD_PUBLISHED)
        log.info("rebuild.published", publication=publication.number, cut=str(plan.cut), recompute=self._id)
        self._update("published", publication=publication.number, report=report | {"publication": publication.number})
        if report["corrections"] is not None:  # else speed is behind, or Kafka is away, as was seen just now
            self._keeper.catch_up(self._steps)

    @property
    def _keeper(self) -> LedgerKeeper:
        return LedgerKeeper(self._settings, self.computing.spark)

    def _end_preview(self, run: str, base: int) -> None:
        totals = self._report().get("corrections")
        if totals is not None:
            self._keeper.table.close(self._id, run, base, totals)
        self._update("previewed")

    def _publication(self, plan: Plan, run: str, report: Mapping[str, Any]) -> Publication:
        counted = {name: report[name] for name in ("blocks", "repeats", "conflicts", "miskeyed", "views", "days")}
        counted |= {
            "alarms": list(plan.alarms),
            "read_at": plan.read_at,
            "recompute": self._id,
            "read_versions": {topic: master.version for topic, master in plan.masters.items()},
            "partitions": sum(len(days) for _, days in plan.work),
            "base_generation": plan.base.generation,
            "seconds": round((datetime.now(UTC) - self.found.asked_at).total_seconds(), 1),
        }
        return Publication(
            number=plan.base.publication + 1,
            cut=plan.cut,
            manifest=run,
            generation=plan.generation,
            published_at=datetime.now(UTC),
            published_by=self.found.asked_by,
            why=self.found.why,
            definitions=plan.definitions,
            master_versions=plan.master_versions,
            stats=orjson.dumps(counted).decode(),
        )

    def _planned(self) -> tuple[Plan, str]:
        if self.found.plan is None or not self._is_resumable():
            if self.found.plan:  # what is said of this attempt must not make an old plan look young
                self._keep({"number": self.found.plan["number"]})
            message = f"recompute `{self._id}` is not planned, or that is too long ago, or views were changed since"
            raise RequestError(message, do=f"galatea rebuild --id {self._id}")
        return read_plan(self.found.plan, registered_views()), self.found.plan["run"]

    def _plan_holds(self) -> bool:
        """Whether nobody has published since it was made, or it is this very run that was published."""
        if self.found.plan is None or not self._is_resumable():
            return False
        pointer, base = PointerRow(self._session), self.found.plan["base"]["publication"]
        if pointer.read().publication == base:
            return True
        published = pointer.publication(base + 1)
        return published is not None and published.manifest == self.found.plan["run"]

    def _is_resumable(self) -> bool:
        """Whether there is a plan of the same definitions, and no collector may have taken its cells."""
        told = (self.found.plan or {}).get("definitions")
        is_young = datetime.now(UTC) - (self.found.updated_at or self.found.asked_at) <= RESUMABLE
        return is_young and told == definitions(self._settings)

    def _renew(self) -> None:
        if not self._running.renews():
            raise self._running.lost()

    def _is_computed(self, run: str) -> bool:
        """Whether all cells of this run are written: the state alone may tell of another plan's."""
        return self.found.state == "computed" and self._report().get("run") == run

    def _report(self) -> dict[str, Any]:
        return dict(self.found.report or {})

    @staticmethod
    def _told(plan: Plan) -> dict[str, Any]:
        return {
            "base": plan.base.publication,
            "cut": plan.cut,
            "days": len(plan.days),
            "alarms": list(plan.alarms),
            "why": dict(plan.whys),
            "corrections": None,
        }

    def _keep_progress(self, told: dict[str, Any]) -> None:
        self._recomputes.update(self._id, "computing", progress=told)

    def _keep(self, plan: Mapping[str, Any]) -> None:
        """Go on with this plan. RecomputeRunning if another process has planned it meanwhile."""
        if not self._recomputes.plan(self.found, plan):
            raise self._running.lost()
        self.found = self._recomputes.find(self._id)

    def _update(self, state: State, **values: Any) -> Recompute:  # noqa: ANN401 - JSON, by column
        """Say how it is. RecomputeRunning if another process has taken it over meanwhile."""
        self._renew()
        self._recomputes.update(self._id, state, **values)
        self.found = self._recomputes.find(self._id)
        return self.found
