"""One rebuild in a process of its own, as the command makes one: `python -m benchmarks.one_rebuild CUT full|touched`.

Everything is the product's but the fence: at the cut that is named nothing waits for the clock or for the archive.
"""

import json
import os
import sys
import time
from dataclasses import dataclass
from datetime import datetime

from batch_layer.plan import Asked
from batch_layer.rebuild import Progress
from benchmarks.processor import cpu_seconds
from deploy.rebuilding import Rebuilding
from deploy.settings import Settings
from views.core.publication import Pointer


@dataclass(frozen=True)
class Unfenced(Rebuilding):
    """Rebuilds at a cut that is given."""

    cut: datetime

    def _reach(self, base: Pointer, *, wait: bool, progress: Progress) -> datetime:  # noqa: ARG002 - nothing to wait for
        return self.cut


class Steps:
    """When each step began, in seconds since the first call."""

    def __init__(self) -> None:
        """From now on."""
        self._began = time.monotonic()
        self.began: dict[str, float] = {}

    def step(self, done: int, total: int, what: str) -> None:  # noqa: ARG002 - what is done is not asked for
        """Called as it begins."""
        self.began[what] = round(time.monotonic() - self._began, 2)


def main(cut: datetime, *, full: bool) -> None:
    """Rebuild; one JSON object on stdout: seconds from the plan to the publication, and of Spark's start before it."""
    began = time.monotonic()
    rebuilding = Unfenced(Settings(), cut)
    spark = rebuilding.starting_spark(full=full)
    spark.result()
    started, spent, steps = time.monotonic(), cpu_seconds(), Steps()
    plan = rebuilding.plan(Asked(full=full), wait=False, progress=steps)
    steps.step(0, 0, "first deliveries")
    outcome = rebuilding.run(plan, spark.result, why="measured", by="benchmarks", progress=steps)
    found = {
        "days": outcome.days, "blocks": outcome.blocks, "seconds": time.monotonic() - started,
        "cpu_seconds": cpu_seconds() - spent, "start_seconds": started - began, "steps_began": steps.began,
    }  # fmt: skip
    print(json.dumps(found), flush=True)
    os._exit(0)  # as the command: Spark's Java ends with this process


if __name__ == "__main__":
    main(datetime.fromisoformat(sys.argv[1]), full=sys.argv[2] == "full")
