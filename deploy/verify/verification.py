"""The merged answer against a full recompute, cell by cell, at an epoch that both layers have closed.

    merged(E)     published blocks (+) speed rows with cut <= epoch < E
    recompute(E)  all first deliveries received before E, without those that wait for batch

Both sides are compared where the recompute is: each Spark worker reads the published blocks and the speed rows of its
stores and days. The driver knows places and counts, and no cell.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from datetime import date, datetime
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import orjson
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention
from pyspark.sql.pandas.types import from_arrow_schema

from batch_layer.archived import archived
from batch_layer.blocks import Extent, blocks_used
from batch_layer.deliveries import deliveries
from batch_layer.reading import naming_lost_files
from batch_layer.recompute.touched import Master
from batch_layer.run import read_manifest
from batch_layer.speed_span import PARTITIONS_SQL, PLACES, PlaceFinder, SpeedSpan
from batch_layer.verify.comparer import COMPARED, Comparer, Place
from batch_layer.verify.sample import Sample
from batch_layer.visits import CountedRows
from deploy.cassandra import session_of
from deploy.definitions import definitions
from deploy.recompute.planning import fence_of
from deploy.spark import Work, spark_session
from master_dataset.archive.positions import ArchivePositions
from master_dataset.delta.tables import MasterTables
from master_dataset.errors import DefinitionNotCovered
from speed_layer.generation import Generations
from views.control.publication import Pointer
from views.core.view import View
from views.registry import registered_views

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from deploy.settings import Settings

HEAP_MB = 1024
PARTITIONS = 8


class Verdict(NamedTuple):
    """`cells` compared, how many differ, a few of them in words, and what was left to batch.

    `days`: those that were drawn, None if all were compared. What waits is counted over all.
    """

    epoch: datetime
    cells: int
    differing: int
    examples: list[str]
    waiting_for_batch: int
    days: list[date] | None = None


class Verification:
    """Verifies one deployment."""

    def __init__(self, settings: "Settings") -> None:
        """Everything is found through the settings."""
        self._settings = settings
        self._tables = MasterTables(settings.master_uri)
        self._connect = partial(session_of, settings.cassandra_address)
        self._session = self._connect()

    def run(self, progress: Callable[[int, int, str], None], sample: Sample | None = None) -> Verdict:
        """Close an epoch in both layers, then compare every view. DefinitionNotCovered if a view has changed.

        Of a sample only the days that it draws of those with events and those that are published. MasterFileLost if
        events cannot be read.
        """
        with naming_lost_files(self._tables), ExitStack() as ended:
            return self._verdict(progress, sample, ended)

    def _verdict(self, progress: Callable[[int, int, str], None], sample: Sample | None, ended: ExitStack) -> Verdict:
        epoch, pointer = self._closed()
        spark = self._spark()
        speed = SpeedSpan(self._connect, pointer.generation, pointer.cut, epoch)
        received, waiting = _received(spark, speed)
        manifest = read_manifest(self._session, pointer.manifest)
        sources = {view.source.topic: view.source for view in registered_views()}
        masters = {topic: Master.newest(self._tables.path(topic)) for topic in sources}
        days = _drawn(sample, {day for _, day in manifest}, masters.values())
        reads = {topic: _read_for(topic, days) for topic in masters}
        counted = {
            topic: self._counted(archived(spark, sources[topic], master, reads[topic]), speed, ended)
            for topic, master in masters.items()
            if master.days()
        }
        cells = differing = 0
        examples: list[str] = []
        views = registered_views()
        for place, view in enumerate(views):
            progress(place, len(views), view.name)
            runs = {day: run for (name, day), run in manifest.items() if name == view.name and _is_in(days, day)}
            shown = {key: own for key, own in received.get(view.name, {}).items() if _is_in(days, key[1])}
            comparer = Comparer(self._connect, view, runs, speed, shown)
            rows = counted.get(view.source.topic)
            for found in self._compared(rows.of(view, days or ()) if rows else None, comparer, days):
                cells, differing = cells + found["cells"], differing + found["differing"]
                examples += [found["example"]] if found["example"] else []
        progress(len(views), len(views), "compared")
        return Verdict(epoch, cells, differing, examples[:10], waiting, days)

    def _closed(self) -> tuple[datetime, Pointer]:
        """An epoch that both layers have closed, on what is published. Begins anew if somebody publishes meanwhile.

        A generation that has taken over meanwhile has the rows of the one before: it began at this cut or earlier.
        """
        fence, generations = fence_of(self._settings), Generations(self._session)
        while True:
            pointer = generations.pointer()
            if pointer.generation and dict(pointer.definitions) != definitions(self._settings):
                message = "the definitions of the views differ from the published ones, so cells cannot be compared"
                raise DefinitionNotCovered(message, do="galatea down, galatea up --detach, then: galatea rebuild")
            epoch = max(fence.newest_cut(), pointer.cut)
            marked = fence.mark(epoch)
            timeout = self._settings.cut_timeout
            fence.wait(marked, ArchivePositions(self._session).read, "archive", timeout)
            fence.wait(marked, lambda: generations.positions(generations.pointer().generation), "speed", timeout)
            now = generations.pointer()
            if now.publication == pointer.publication:
                return epoch, now

    def _spark(self) -> "SparkSession":
        partitions = max(PARTITIONS, 2 * self._settings.spark_cores)
        return spark_session(self._settings, "verify", Work.LONG, memory_mb=HEAP_MB, partitions=partitions)

    def _compared(
        self, counted: DataFrame | None, comparer: Comparer, days: Sequence[date] | None
    ) -> Iterator[Mapping[str, Any]]:
        view = comparer.view
        extent = Extent(comparer.speed.until, days or ())
        compared = None if counted is None else blocks_used(view, counted, extent, comparer, COMPARED)
        left = {(store, day) for day, run in comparer.runs.items() for store in self._stores(run, view, day)}
        left |= set(comparer.received)
        for row in compared.toLocalIterator(prefetchPartitions=True) if compared is not None else ():
            left.discard((row.store, row.day))
            yield row.asDict()
        for store, day in sorted(left):  # shown, but a recompute knows nothing of it
            yield {"cells": 1, "differing": 1, "example": f"{view.name} store {store} {day}: shown, not recomputed"}

    def _counted(self, events: DataFrame, speed: SpeedSpan, ended: ExitStack) -> CountedRows:
        """What both layers together have to show of these events."""
        found = deliveries(events)
        ended.callback(found.release)
        first = found.first
        oldest = int(self._settings.oldest.total_seconds() * 1_000_000)
        age = F.unix_micros("received_at") - F.unix_micros("happened_at")
        waits = (F.col("received_at") >= F.lit(speed.since)) & (age > oldest)
        counted = first.where(~waits).where(F.col("received_at") < F.lit(speed.until))
        return CountedRows(events, counted, self._settings.visits, speed.since)

    def _stores(self, run: str, view: View, day: date) -> list[str]:
        query = self._session.prepare("SELECT stores FROM run_days WHERE run = ? AND view_name = ? AND day = ?")
        row = self._session.execute(query, (run, view.name, day)).one()
        return orjson.loads(row.stores) if row else []


def _drawn(sample: Sample | None, published: set[date], masters: Iterable[Master]) -> list[date] | None:
    """The sample's days of those with events or shown cells; None: every day is looked at."""
    return None if sample is None else sample.draw(published.union(*(each.days() for each in masters)))


def _read_for(topic: str, days: Sequence[date] | None) -> Sequence[date]:
    """Of which days events of a topic are read to recompute these days of every view; empty: of all."""
    if days is None:
        return ()
    return sorted({each for view in registered_views() if view.source.topic == topic for each in view.days_read(days)})


def _is_in(days: Sequence[date] | None, day: date) -> bool:
    return days is None or day in days


def _received(spark: "SparkSession", speed: SpeedSpan) -> tuple[dict[str, dict[Place, list[date]]], int]:
    """By view the places that speed shows, and how many events wait for batch."""
    found: dict[str, dict[Place, list[date]]] = {}
    waiting = 0
    partitions = spark.createDataFrame(speed.partitions(), PARTITIONS_SQL)
    for row in partitions.mapInArrow(PlaceFinder(speed), from_arrow_schema(PLACES)).toLocalIterator():
        waiting += row.waiting or 0
        if row.day is not None:
            found.setdefault(row.view, {}).setdefault((row.store, row.day), []).append(row.received_day)
    return found, waiting
