"""How long all readers take to see another one of two publications with ten million cells each, back and forth.

Forth is `publish`, as at the end of a rebuild; back is the whole of `galatea rollback`. Each is timed until a fresh
read of the pointer, with which every answer begins, shows it. The baseline is a bare lightweight transaction on one
row: no compare-and-set costs less. The cells are written as by Spark workers, but computed from nothing.
"""

import random
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from functools import partial
from statistics import median
from typing import TYPE_CHECKING, Self

import pyarrow as pa

from batch_layer.blocks import made_schema
from batch_layer.publish import publish
from batch_layer.run import BlockWriter, Manifest, Run
from benchmarks import local
from benchmarks.one_rebuild import Steps
from benchmarks.report import Measured
from deploy.batch import rollback_of
from views import registered_views, view_named
from views.control.generation import Generation, Generations
from views.control.publication import PointerRow, Publication
from views.core import View
from views.core.cells import CellKey, write_block

if TYPE_CHECKING:
    from cassandra.cluster import Session

    from deploy.settings import Settings

DAYS = 365
WINDOWS, SKUS = 50, 20
CELLS_OF_A_BLOCK = WINDOWS * SKUS
FIRST_DAY = date(2026, 1, 1)
VIEW = "sales_by_sku"
"""Nearly all cells are its."""


@dataclass(frozen=True)
class LargeRun:
    """`blocks`: of each day, the same one for every store."""

    name: str
    stores: int
    blocks: Mapping[date, str]

    @classmethod
    def of(cls, cells: int, name: str) -> Self:
        """At least so many cells, on all days of a year if there are enough of them."""
        rng = random.Random(13)  # noqa: S311 - no secret
        count = max(1, cells // CELLS_OF_A_BLOCK)
        days = [FIRST_DAY + timedelta(days=number) for number in range(min(DAYS, count))]
        return cls(name, -(-count // len(days)), {day: _block(rng, view_named(VIEW), day) for day in days})

    @property
    def cells(self) -> int:
        """How many it has."""
        return self.stores * len(self.blocks) * CELLS_OF_A_BLOCK

    @property
    def manifest(self) -> Manifest:
        """Of every view, as a real one names them."""
        return {(view.name, day): self.name for view in registered_views() for day in self.blocks}

    def write(self, connect: "Callable[[], Session]") -> None:
        """All blocks, the days of a store in a row, then the manifest."""
        table = partial(pa.Table.from_pylist, schema=made_schema(view_named(VIEW)))
        for store in range(1, self.stores + 1):
            rows = table([{"store": str(store), "day": day, "block": block} for day, block in self.blocks.items()])
            deque(BlockWriter(connect, VIEW, self.name)(iter(rows.to_batches())), maxlen=0)
        Run(connect, self.name).write_manifest(self.manifest)


def _block(rng: random.Random, view: View, day: date) -> str:
    opens = int(datetime(day.year, day.month, day.day, 7, tzinfo=UTC).timestamp())
    places = [(opens + 900 * window, str(8_580_000 + sku)) for window in range(WINDOWS) for sku in range(SKUS)]
    cells = [
        (CellKey(window, ("EUR", sku)), tuple(rng.randint(0, 50_000) for _ in view.columns)) for window, sku in places
    ]
    return write_block(view, cells)


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
        rollback_of(self.settings, builds=False).run(seen.publication - 1, "measured", "benchmarks", Steps())
        return self._shown(began, RUNS[1 - RUNS.index(seen.manifest)])

    def _shown(self, began: float, run: str) -> float:
        while self.pointer.read().manifest != run:
            pass
        return time.monotonic() - began

    def _definitions(self) -> Mapping[str, str]:
        return self.settings.definitions
