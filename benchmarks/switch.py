"""How long all readers take to be switched between two publications of ten million cells each, forth and back.

Forth is `publish`, as the end of a rebuild does it; back is the whole of `galatea rollback`. Each is timed until a
fresh read of the pointer, which every answer begins with, shows it. Beside them a bare lightweight transaction on one
row: a compare-and-set cannot be had for less.
"""

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from statistics import median
from typing import TYPE_CHECKING

from batch_layer.publish import publish
from benchmarks import local
from benchmarks.large_run import LargeRun
from benchmarks.measured import Measured
from benchmarks.one_rebuild import Steps
from deploy.definitions import definitions
from deploy.recompute.rollback import Rollback
from speed_layer.generation import Generation, Generations
from views.control.pointer_row import PointerRow, Publication

if TYPE_CHECKING:
    from cassandra.cluster import Session

    from deploy.settings import Settings

FULL = 10_000_000
RUNS = ("bench-one", "bench-other")
ROUNDS = 100
LIMIT_SECONDS = 1.0
TABLE = "CREATE TABLE IF NOT EXISTS bench_switch (id text PRIMARY KEY, value int)"


def switch(size: int) -> Iterator[Measured]:
    """`size` cells in each of the two. The three kinds of switches take turns."""
    with local.own_home() as settings, local.running(settings, "cassandra"):
        runs = [LargeRun.of(size, name) for name in RUNS]
        began = time.monotonic()
        for run in runs:
            run.write(local.connecting(settings))
        details = {
            "cells_in_each": runs[0].cells,
            "entries_of_a_manifest": len(runs[0].manifest),
            "written_in_seconds": round(time.monotonic() - began, 1),
            "rounds": ROUNDS,
        }
        bare, switching = _Bare(local.cassandra(settings)), _Switching(settings)
        turns = [(bare.switch(), switching.forth(), switching.back()) for _ in range(ROUNDS)]
    simple, *ours = map(list, zip(*turns, strict=True))
    for name, taken in zip(("switch", "rollback"), ours, strict=True):
        both = (median(taken), median(simple))
        yield Measured(f"{name}, median", *both, "s", "bare transaction", better="low", details=details)
        slowest = {"slowest_beside": max(simple)}
        limit = (max(taken), LIMIT_SECONDS)
        yield Measured(f"{name}, slowest", *limit, "s", "limit", better="low", limit=1.0, details=slowest)


@dataclass
class _Bare:
    """One row that is changed if it is as it was seen."""

    session: "Session"
    value: int = 0

    def __post_init__(self) -> None:
        self.session.execute(TABLE)
        self.session.execute("INSERT INTO bench_switch (id, value) VALUES ('one', 0)")

    def switch(self) -> float:
        update = self.session.prepare("UPDATE bench_switch SET value = ? WHERE id = 'one' IF value = ?")
        began = time.monotonic()
        if not self.session.execute(update, (self.value + 1, self.value)).one().applied:
            raise RuntimeError("somebody else changed the row")
        self.value += 1
        return time.monotonic() - began


@dataclass
class _Switching:
    """Both runs were published once; from then on readers are sent from one to the other and back."""

    settings: "Settings"
    pointer: PointerRow = field(init=False)
    began: datetime = field(default_factory=lambda: datetime.now(UTC).replace(microsecond=0))

    def __post_init__(self) -> None:
        session = local.cassandra(self.settings)
        self.pointer = PointerRow(session)
        covering = Generation(1, self.began - timedelta(days=1), self._definitions(), {})
        Generations(session).begin(covering, self.began)
        self.forth()

    def forth(self) -> float:
        """Publish the run that is not shown."""
        seen = self.pointer.read()
        place = 1 - RUNS.index(seen.manifest) if seen.manifest else 0
        cut = self.began - timedelta(hours=place + 1)
        new = Publication(
            seen.publication + 1, cut, RUNS[place], 1, datetime.now(UTC), "benchmarks", "measured", self._definitions()
        )
        began = time.monotonic()
        publish(self.pointer, seen, new)
        return self._shown(began, RUNS[place])

    def back(self) -> float:
        """Restore the publication before."""
        seen = self.pointer.read()
        began = time.monotonic()
        Rollback(self.settings, builds=False).run(seen.publication - 1, "measured", "benchmarks", Steps())
        return self._shown(began, RUNS[1 - RUNS.index(seen.manifest)])

    def _shown(self, began: float, run: str) -> float:
        while self.pointer.read().manifest != run:
            pass
        return time.monotonic() - began

    def _definitions(self) -> Mapping[str, str]:
        return definitions(self.settings)
