"""The merged answer against a full recompute, cell by cell, at an epoch that both layers have closed.

    merged(E)     published blocks (+) speed rows with cut <= epoch < E
    recompute(E)  all first deliveries received before E, without those that wait for batch

Both sides are compared where the recompute is: each Spark worker reads the published blocks of its stores and days.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import date, datetime
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import orjson
import pyarrow as pa
from cassandra.concurrent import execute_concurrent_with_args
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention

from batch_layer.blocks import blocks_used
from batch_layer.deliveries import deliveries
from batch_layer.run import read_manifest
from deploy.cassandra import session_of
from deploy.rebuilding import Rebuilding
from deploy.spark import Work, spark_session
from master_dataset.archive_positions import ArchivePositions
from master_dataset.errors import DefinitionNotCovered
from master_dataset.tables import MasterTables
from serving_layer.merge import Addition, merge_cells
from speed_layer.generation import Generations
from views.core.cells import CellKey, read_block
from views.core.cut import instant, month_of, utc
from views.core.pointer_row import PointerRow
from views.core.publication import Pointer
from views.core.shape import WAITING, number_of
from views.core.view import View
from views.registry import current_definitions, registered_views

if TYPE_CHECKING:
    from cassandra.cluster import Session

    from deploy.settings import Settings

Place = tuple[str, str, date]
"""(view, store, UTC day of the window)."""

HEAP_MB = 1024
_COMPARED = pa.schema(
    [
        ("store", pa.string()),
        ("day", pa.date32()),
        ("cells", pa.int64()),
        ("differing", pa.int64()),
        ("example", pa.string()),
    ]
)
_SELECT_BLOCK = "SELECT block FROM batch_cells WHERE view_name = ? AND store = ? AND month = ? AND run = ? AND day = ?"


class Verdict(NamedTuple):
    """`cells` compared, how many differ, a few of them in words, and what was left to batch."""

    epoch: datetime
    cells: int
    differing: int
    examples: list[str]
    waiting_for_batch: int


@dataclass(frozen=True)
class Comparer:
    """Runs in Spark's workers: compares recomputed blocks with the merged cells of the same store and day."""

    connect: "Callable[[], Session]"
    view: View
    runs: Mapping[date, str]
    speed: Mapping[Place, list[Addition]]
    cut: datetime

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """One row per store and day: cells of either side, how many differ, one of them."""
        session = self.connect()
        for batch in batches:
            rows = batch.to_pylist()
            keys = [
                (self.view.name, r["store"], month_of(r["day"]), self.runs.get(r["day"], ""), r["day"]) for r in rows
            ]
            found = execute_concurrent_with_args(session, session.prepare(_SELECT_BLOCK), keys, concurrency=32)
            results = [self._compare(row, result.one()) for row, (_, result) in zip(rows, found, strict=True)]
            yield pa.RecordBatch.from_pylist(results, schema=_COMPARED)

    def _compare(self, row: Mapping[str, Any], published: Any) -> dict[str, Any]:  # noqa: ANN401 - a driver's row
        batch = read_block(self.view, published.block) if published else iter(())
        speed = self.speed.get((self.view.name, row["store"], row["day"]), [])
        merged = {cell.key: cell.merged for cell in merge_cells(self.view, batch, speed, self.cut)}
        recomputed = dict(read_block(self.view, row["block"]))
        keys = merged.keys() | recomputed.keys()
        wrong = [key for key in keys if merged.get(key) != recomputed.get(key)]
        place = f"{self.view.name} store {row['store']}"
        example = _example(place, wrong[0], merged.get(wrong[0]), recomputed.get(wrong[0])) if wrong else None
        counted = {"cells": len(keys), "differing": len(wrong), "example": example}
        return {"store": row["store"], "day": row["day"], **counted}


class Verification:
    """Verifies one deployment."""

    def __init__(self, settings: "Settings") -> None:
        """Everything is found through the settings."""
        self._settings = settings
        self._connect = partial(session_of, settings.cassandra_address)
        self._session = self._connect()

    def run(self, progress: Callable[[int, int, str], None]) -> Verdict:
        """Close an epoch in both layers, then compare every view. DefinitionNotCovered if a view has changed."""
        fence, generations = Rebuilding(self._settings).fence(), Generations(self._session)
        pointer = PointerRow(self._session).read()
        if pointer.generation and dict(pointer.definitions) != current_definitions(self._settings.epoch_seconds):
            message = "the definitions of the views differ from the published ones, so their cells cannot be compared"
            raise DefinitionNotCovered(message, do="galatea down, galatea up --detach, then: galatea rebuild")
        epoch = max(fence.newest_cut(), pointer.cut)
        marked = fence.mark(epoch)
        timeout = self._settings.cut_timeout
        fence.wait(marked, ArchivePositions(self._session).read, "archive", timeout)
        fence.wait(marked, lambda: generations.positions(generations.pointer().generation), "speed", timeout)
        # The cut and its cells stay as they were read; a generation may have taken over since: its rows are the same.
        pointer = replace(pointer, generation=generations.pointer().generation)
        speed, waiting = self._speed_rows(pointer, epoch)
        manifest = read_manifest(self._session, pointer.manifest)
        cells = differing = 0
        examples: list[str] = []
        views = registered_views()
        for place, view in enumerate(views):
            progress(place, len(views), view.name)
            runs = {day: run for (name, day), run in manifest.items() if name == view.name}
            for found in self._compared(view, runs, speed, pointer, epoch):
                cells, differing = cells + found["cells"], differing + found["differing"]
                examples += [found["example"]] if found["example"] else []
        progress(len(views), len(views), "compared")
        return Verdict(epoch, cells, differing, examples[:10], waiting)

    def _compared(
        self,
        view: View,
        runs: Mapping[date, str],
        speed: Mapping[Place, list[Addition]],
        pointer: Pointer,
        epoch: datetime,
    ) -> Iterator[Mapping[str, Any]]:
        own = {place: rows for place, rows in speed.items() if place[0] == view.name}
        comparer = Comparer(self._connect, view, runs, own, pointer.cut)
        compared = blocks_used(view, self._counted(view, pointer, epoch), epoch, comparer, _COMPARED)
        left = {(store, day) for day, run in runs.items() for store in self._stores(run, view, day)}
        left |= {(store, day) for _, store, day in own}
        for row in compared.toLocalIterator(prefetchPartitions=True):
            left.discard((row.store, row.day))
            yield row.asDict()
        for store, day in sorted(left):  # shown, but a recompute knows nothing of it
            yield {"cells": 1, "differing": 1, "example": f"{view.name} store {store} {day}: shown, not recomputed"}

    def _counted(self, view: View, pointer: Pointer, epoch: datetime) -> DataFrame:
        spark = spark_session(self._settings, "verify", Work.LONG, memory_mb=HEAP_MB, partitions=8)
        path = MasterTables(self._settings.master_uri).path(view.source.topic)
        first = deliveries(spark.read.format("delta").load(path)).first
        oldest = int(self._settings.oldest.total_seconds() * 1_000_000)
        age = F.unix_micros("received_at") - F.unix_micros("happened_at")
        waits = (F.col("received_at") >= F.lit(pointer.cut)) & (age > oldest)
        return first.where(~waits).where(F.col("received_at") < F.lit(epoch))

    def _speed_rows(self, pointer: Pointer, epoch: datetime) -> tuple[dict[Place, list[Addition]], int]:
        """The rows of this generation with cut <= epoch < E, and the number of waiting events among them."""
        views = {view.name: view for view in registered_views()}
        found: dict[Place, list[Addition]] = {}
        waiting = 0
        for row in self._session.execute("SELECT * FROM speed_cells"):
            if row.generation != pointer.generation or not pointer.cut <= utc(row.epoch) < epoch:
                continue
            if row.view_name == WAITING.name:
                waiting += sum(number_of(states) for _, states in read_block(WAITING, row.block))
                continue
            for key, states in read_block(views[row.view_name], row.block):
                place = (row.view_name, row.store, instant(key.window).date())
                found.setdefault(place, []).append(Addition(key, utc(row.epoch), states))
        return found, waiting

    def _stores(self, run: str, view: View, day: date) -> list[str]:
        query = self._session.prepare("SELECT stores FROM run_days WHERE run = ? AND view_name = ? AND day = ?")
        row = self._session.execute(query, (run, view.name, day)).one()
        return orjson.loads(row.stores) if row else []


def _example(place: str, key: CellKey, merged: object, recomputed: object) -> str:
    return f"{place} {instant(key.window):%Y-%m-%dT%H:%MZ} {key.dimensions}: merged {merged}, recomputed {recomputed}"
