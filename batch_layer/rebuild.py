"""Facts to corrected cells to one publication: what a rebuild does, in the order in which it does it.

plan      the published row, the tables' versions, the cut, the days touched since            (no Spark)
compute   first deliveries of those days -> cells of every view -> blocks under this run's name
publish   one compare-and-set of the pointer; readers see all views old or all views new
"""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Protocol

import orjson
import structlog
from pyspark.sql import DataFrame, SparkSession

from batch_layer.archived import archived
from batch_layer.conflicts import keep_conflicts
from batch_layer.deliveries import deliveries
from batch_layer.plan import Plan
from batch_layer.publish import publish
from batch_layer.run import Run, read_manifest
from master_dataset.crash_points import CrashPoint, passing
from master_dataset.tables import MasterTables
from views.core.pointer_row import PointerRow, Publication

if TYPE_CHECKING:
    from collections.abc import Callable

    from cassandra.cluster import Session

    from master_dataset.source import Source

log = structlog.get_logger()


class Progress(Protocol):
    """Told how far a rebuild is; the edges draw it."""

    def step(self, done: int, total: int, what: str) -> None:
        """`done` of `total` (view, day) partitions are rebuilt; `what` is being worked on."""


@dataclass(frozen=True)
class Outcome:
    """What a rebuild did: blocks (view, store, day) written, and the kinds of later deliveries it found."""

    publication: int
    cut: datetime
    days: int
    blocks: int
    repeats: int
    conflicts: int
    miskeyed: int


class Rebuild:
    """Rebuilds the views of one deployment."""

    def __init__(
        self, spark: "Callable[[], SparkSession]", connect: "Callable[[], Session]", tables: MasterTables
    ) -> None:
        """`spark` is called only when there is something to compute; `connect` is also called in Spark's workers."""
        self._spark, self._connect, self._tables = spark, connect, tables
        self._pointer = PointerRow(connect())

    def run(self, plan: Plan, name: str, why: str, by: str, progress: Progress) -> Outcome:
        """Compute what the plan names and publish it. PublicationMoved if somebody else published in between."""
        run = Run(self._connect, name)
        counted = self._compute(plan, run, progress) if plan.days else {}
        manifest = dict(read_manifest(self._connect(), plan.base.manifest))
        manifest |= {(view.name, day): name for view, days in plan.work for day in days}
        run.write_manifest(manifest)
        passing(CrashPoint.REBUILD_MANIFEST)
        publication = Publication(
            number=plan.base.publication + 1, cut=plan.cut, manifest=name, generation=plan.generation,
            published_at=datetime.now(UTC), published_by=by, why=why, definitions=plan.definitions,
            master_versions=plan.master_versions,
            stats=orjson.dumps({**counted, "alarms": plan.alarms, "read_at": plan.read_at}).decode(),
        )  # fmt: skip
        publish(self._pointer, plan.base, publication)
        passing(CrashPoint.REBUILD_PUBLISHED)
        log.info("rebuild.published", publication=publication.number, cut=str(plan.cut), **counted)
        found = {key: counted.get(key, 0) for key in ("blocks", "repeats", "conflicts", "miskeyed")}
        return Outcome(publication.number, plan.cut, len(plan.days), **found)

    def _compute(self, plan: Plan, run: Run, progress: Progress) -> dict[str, int]:
        counted = dict.fromkeys(("blocks", "repeats", "conflicts", "miskeyed"), 0)
        total = sum(len(days) for _, days in plan.work)
        done = 0
        for source in plan.sources:
            events = self._archived(plan, source)
            found = deliveries(events)
            repeats = found.repeats.where(found.repeats.received_at < plan.cut)
            for key, number in keep_conflicts(self._tables, source, events, repeats).items():
                counted[key] += number
            for view, days in plan.work:
                if view.source.topic != source.topic or not days:
                    continue
                progress.step(done, total, view.name)
                of_days = found.first.where(found.first.day.isin(sorted(days)))
                counted["blocks"] += run.write(view, of_days, plan.cut, days)
                passing(CrashPoint.REBUILD_VIEW)
                done += len(days)
        progress.step(total, total, "publish")
        return counted

    def _archived(self, plan: Plan, source: "Source[Any]") -> DataFrame:
        days = {day for view, days in plan.work if view.source.topic == source.topic for day in days}
        return archived(self._spark(), source, plan.masters[source.topic], days)
