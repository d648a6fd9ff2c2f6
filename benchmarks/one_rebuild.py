"""One rebuild in a new process, like that of the command: `python -m benchmarks.one_rebuild CUT full|touched ASKED`.

All code is the product's, except the fence: at the given cut, nothing waits for the clock or for the archive.
"""

import json
import os
import sys
import time
from dataclasses import dataclass
from datetime import datetime

from batch_layer.plan import RecomputePlanner
from batch_layer.progress import Steps as Shown
from batch_layer.recompute.job import RecomputeJob
from benchmarks.processor import Meter
from deploy.batch import context_of, create_recompute, spark_of
from deploy.settings import Settings
from views.control.publication import Pointer, PointerRow
from views.control.recompute import RecomputeRequest, Report


@dataclass(frozen=True)
class Unfenced(RecomputePlanner):
    """Rebuilds at a cut that is given."""

    cut: datetime

    def _reach(self, base: Pointer, steps: Shown, *, wait: bool) -> datetime:  # noqa: ARG002 - nothing to wait for
        return self.cut


class Steps:
    """When each step first began."""

    def __init__(self) -> None:
        """None yet."""
        self._began: dict[str, float] = {}

    def step(self, done: int, total: int, what: str) -> None:  # noqa: ARG002 - progress is not shown
        """Called as it begins and as it goes on, then with how fast behind its name."""
        self._began.setdefault(what.partition("   ")[0], time.monotonic())

    def since(self, started: float) -> dict[str, float]:
        """Each in seconds since that reading of the clock."""
        return {what: round(at - started, 2) for what, at in self._began.items()}


def main(cut: datetime, asked_at: datetime, *, full: bool) -> None:
    """Rebuild; one JSON object on stdout: seconds from the plan to the end, and of the start before it.

    Spark is started only for a full rebuild, and before the plan. `until_published`: from `asked_at`, when this process
    was started, to the publication, without what follows it: the audit of alerts.
    """
    began = time.monotonic()
    settings = Settings()
    id_ = create_recompute(settings, RecomputeRequest(full=full), why="measured", by="benchmarks")
    steps, context, spark = Steps(), context_of(settings), spark_of(settings, id_)
    with RecomputeJob(context, id_, spark.get, steps, Unfenced(context, cut)) as job:
        if full:
            spark.get()
        started = time.monotonic()
        with Meter() as meter:
            for step in (job.plan, job.compute, job.publish):
                step()
        report = job.record.report or Report()
        published = PointerRow(context.session).publication(report.publication or 0)
    found = {
        "days": report.days,
        "blocks": report.blocks,
        "seconds": time.monotonic() - started,
        "until_published": (published.published_at - asked_at).total_seconds() if published else None,
        "cpu_seconds": meter.seconds,
        "start_seconds": started - began,
        "steps_began": steps.since(started),
    }
    print(json.dumps(found), flush=True)
    os._exit(0)  # as the command: Spark's Java ends with this process


if __name__ == "__main__":
    main(datetime.fromisoformat(sys.argv[1]), datetime.fromisoformat(sys.argv[3]), full=sys.argv[2] == "full")
