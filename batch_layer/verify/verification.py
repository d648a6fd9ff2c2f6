"""Verifies the merged answer against a full recompute, cell by cell, at an epoch that both layers have closed.

    merged(E)     published blocks (+) speed rows with cut <= epoch < E
    recompute(E)  all first deliveries received before E, without those that wait for batch

Both are compared where the recompute is: each Spark worker reads the published blocks and the speed rows of its stores
and days. The driver sees (store, day) pairs and counts, but no cells. Workers also add up the recomputed cells per
group and business day, and these are compared with what the serving layer answers as of E.
"""

import random
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import date, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

import orjson
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention
from pyspark.sql.pandas.types import from_arrow_schema

from batch_layer.archived import archived, report_unreadable_files
from batch_layer.blocks import Extent, StoreDay, blocks_used
from batch_layer.context import BatchContext
from batch_layer.deliveries import deliveries
from batch_layer.master import Master
from batch_layer.run import read_blocks, read_manifest
from batch_layer.speed_span import PARTITIONS_SQL, STORE_DAYS, SpeedPartition, SpeedSpan, StoreDayFinder
from batch_layer.verify.totals import (
    Answers,
    ComparedTotals,
    TotalsComparison,
    TotalsRule,
    TotalsSnapshot,
    compared_metrics,
)
from batch_layer.visits import CountedRows
from master_dataset.cassandra_tables import ArchivePositions
from master_dataset.errors import DefinitionNotCoveredError
from master_dataset.registry.registry import Registry
from views.control.generation import Generations
from views.control.publication import Pointer
from views.core.cells import Addition, CellKey, States, read_block
from views.core.cut import instant, month_of
from views.core.merge import merge_cells
from views.core.view import View
from views.metrics import registered_metrics
from views.registry import registered_views

if TYPE_CHECKING:
    from cassandra.cluster import Session
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class Sample:
    """A random sample of at most `number` days. The same `seed` draws the same days from the same set."""

    number: int
    seed: int

    def draw(self, days: Collection[date]) -> list[date]:
        """The sample, in order."""
        known = sorted(days)
        return sorted(random.Random(self.seed).sample(known, min(self.number, len(known))))  # noqa: S311 - no secret


COMPARED = pa.schema(
    [
        ("store", pa.string()),
        ("day", pa.date32()),
        ("cells", pa.int64()),
        ("differing", pa.int64()),
        ("example", pa.string()),
        ("totals", pa.string()),
    ]
)
"""A row per store and day: cells on either side, how many differ, one of them as text; what the recomputed cells of
the batch add up to stands in its first row."""


@dataclass(frozen=True)
class CellComparer:
    """Takes recomputed blocks, returns `COMPARED`.

    `runs`: whose batch cells are published for a day. `received`: on which days speed received the rows of a
    store and day; the rows themselves are read by the worker that compares it. `totals`: adds up recomputed cells.
    """

    connect: "Callable[[], Session]"
    view: View
    runs: Mapping[date, str]
    speed: SpeedSpan
    received: Mapping[StoreDay, Sequence[date]]
    totals: TotalsRule

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Compare batch by batch."""
        session = self.connect()
        for batch in batches:
            rows = batch.to_pylist()
            keys = [
                (self.view.name, r["store"], month_of(r["day"]), self.runs.get(r["day"], ""), r["day"]) for r in rows
            ]
            found = read_blocks(session, keys)
            speed = self._speed_rows([(row["store"], row["day"]) for row in rows])
            recomputed = [(row["store"], row["day"], dict(read_block(self.view, row["block"]))) for row in rows]
            results = [
                self._compare(store, day, cells, block, speed)
                for (store, day, cells), block in zip(recomputed, found, strict=True)
            ]
            if results:
                results[0]["totals"] = self.totals.add_up(recomputed)
            yield pa.RecordBatch.from_pylist(results, schema=COMPARED)

    def _speed_rows(self, compared: Sequence[StoreDay]) -> Mapping[StoreDay, list[Addition]]:
        rows = [(each, received) for each in compared for received in self.received.get(each, ())]
        partitions = [SpeedPartition(self.view.name, store, received) for (store, _), received in rows]
        found: dict[StoreDay, list[Addition]] = {}
        for (store_day, _), additions in zip(rows, self.speed.read(self.view, partitions), strict=True):
            own = found.setdefault(store_day, [])
            own += (each for each in additions if instant(each.key.window).date() == store_day[1])
        return found

    def _compare(
        self,
        store: str,
        day: date,
        recomputed: Mapping[CellKey, States],
        published: str | None,
        speed: Mapping[StoreDay, list[Addition]],
    ) -> dict[str, Any]:
        batch = read_block(self.view, published) if published else iter(())
        fresh = speed.get((store, day), [])
        merged = {cell.key: cell.merged for cell in merge_cells(self.view, batch, fresh, self.speed.since)}
        keys = merged.keys() | recomputed.keys()
        wrong = [key for key in keys if merged.get(key) != recomputed.get(key)]
        where = f"{self.view.name} store {store}"
        example = _example(where, wrong[0], merged.get(wrong[0]), recomputed.get(wrong[0])) if wrong else None
        return {"store": store, "day": day, "cells": len(keys), "differing": len(wrong), "example": example}


def _example(where: str, key: CellKey, merged: object, recomputed: object) -> str:
    return f"{where} {instant(key.window):%Y-%m-%dT%H:%MZ} {key.dimensions}: merged {merged}, recomputed {recomputed}"


class Verdict(NamedTuple):
    """What was compared, and what differs.

    Attributes:
        epoch: until when events were received that count.
        cells: how many cells were compared.
        differing: how many of them differ.
        examples: a few differences of cells and totals in words.
        waiting_for_batch: how many events were left to batch, over all days.
        days: those that were drawn; None if all were compared.
        totals: how many values of totals and groups were compared, each of a metric and business day; None if nothing
            is published yet, so that answers are `loading`.
        totals_differing: how many of them differ; None if nothing is published yet.
        totals_masked: how many more were not compared, because answers mask them: sensors worked for less than half of
            the time.
    """

    epoch: datetime
    cells: int
    differing: int
    examples: list[str]
    waiting_for_batch: int
    days: list[date] | None = None
    totals: int | None = 0
    totals_differing: int | None = 0
    totals_masked: int = 0

    @property
    def has_differences(self) -> bool:
        """Whether anything differs."""
        return bool(self.differing or self.totals_differing)


class Verification:
    """Verifies one deployment."""

    def __init__(self, context: BatchContext, spark: "Callable[[], SparkSession]", answers: Answers) -> None:
        """Connect.

        Args:
            context: The deployment.
            spark: Called when both layers have closed the epoch.
            answers: Asks the serving layer for totals as of that epoch.
        """
        self._context, self._spark, self._session = context, spark, context.session
        self._answers = answers

    def run(self, progress: Callable[[int, int, str], None], sample: Sample | None = None) -> Verdict:
        """Close an epoch in both layers, then compare every view.

        Args:
            progress: Called with how much is done, of how much, and what is being compared.
            sample: Compares only the days that it draws from those that are shown or should be; None: all days.

        Raises:
            DefinitionNotCoveredError: A view was changed and is not published yet.
            MasterFileLostError: Archived events cannot be read.
            CutNotReachedError: A layer does not read up to the epoch in time.
        """
        with report_unreadable_files(self._context.tables), ExitStack() as ended:
            return self._verdict(progress, sample, ended)

    def _verdict(self, progress: Callable[[int, int, str], None], sample: Sample | None, ended: ExitStack) -> Verdict:
        epoch, pointer = self.closed()
        spark = self._spark()
        speed = SpeedSpan(self._context.connect, pointer.generation, pointer.cut, epoch)
        received, waiting = _received(spark, speed)
        manifest = read_manifest(self._session, pointer.manifest)
        sources = {view.source.topic: view.source for view in registered_views()}
        masters = {topic: Master.newest(self._context.tables.path(topic)) for topic in sources}
        shown = {day for _, day in manifest} | {day for own in received.values() for _, day in own}
        of_masters = (each.days_shown(pointer.cut, self._context.oldest) for each in masters.values())
        days = _drawn(sample, shown, of_masters)
        reads = {topic: _read_for(topic, days) for topic in masters}
        counted = {
            topic: self._counted(archived(spark, sources[topic], master, reads[topic]), speed, ended)
            for topic, master in masters.items()
            if master.days()
        }
        cells = differing = 0
        compared: list[ComparedTotals] = []
        examples: list[str] = []
        views, snapshot = registered_views(), TotalsSnapshot(pointer, epoch, Registry(self._session).stores())
        for done, view in enumerate(views):
            progress(done, len(views), view.name)
            runs = {day: run for (name, day), run in manifest.items() if name == view.name and _is_in(days, day)}
            by_speed = {key: own for key, own in received.get(view.name, {}).items() if _is_in(days, key[1])}
            metrics = [metric for metric in compared_metrics(registered_metrics().values()) if metric.view == view.name]
            rule = TotalsRule.of(view, metrics, snapshot.stores, by_part=days is not None)
            comparer = CellComparer(self._context.connect, view, runs, speed, by_speed, rule)
            comparison = TotalsComparison(rule, metrics)
            rows = counted.get(view.source.topic)
            for found in self._compared(rows.of(view, days or ()) if rows else None, comparer, days):
                cells, differing = cells + found["cells"], differing + found["differing"]
                examples += [found["example"]] if found["example"] else []
                comparison.add(found["day"], found["totals"])
            if (added := comparison.run(self._answers, snapshot)) is not None:
                compared.append(added)
        progress(len(views), len(views), "compared")
        totals = ComparedTotals.of_all(compared)
        verdict = Verdict(epoch, cells, differing, (examples + totals.examples)[:10], waiting, days, None, None)
        if not compared:  # nothing is published
            return verdict
        return verdict._replace(totals=totals.totals, totals_differing=totals.differing, totals_masked=totals.masked)

    def closed(self) -> tuple[datetime, Pointer]:
        """An epoch that both layers have closed, on the current publication. Starts again if somebody publishes.

        A generation that has taken over in the meantime has the rows of the one before: it starts at this cut or
        earlier.
        """
        fence, generations = self._context.fence, Generations(self._session)
        while True:
            pointer = generations.pointer()
            if pointer.generation and dict(pointer.definitions) != dict(self._context.definitions):
                message = "the definitions of the views differ from the published ones, so cells cannot be compared"
                raise DefinitionNotCoveredError(message, do="galatea down, galatea up --detach, then: galatea rebuild")
            epoch = max(fence.newest_cut(), pointer.cut)
            marked = fence.mark(epoch)
            timeout = self._context.cut_timeout
            fence.wait(marked, ArchivePositions(self._session).read, "archive", timeout)
            fence.wait(marked, lambda: generations.positions(generations.pointer().generation), "speed", timeout)
            now = generations.pointer()
            if now.publication == pointer.publication:
                return epoch, now

    def _compared(
        self, counted: DataFrame | None, comparer: CellComparer, days: Sequence[date] | None
    ) -> Iterator[Mapping[str, Any]]:
        view = comparer.view
        extent = Extent(comparer.speed.until, days or ())
        compared = None if counted is None else blocks_used(view, counted, extent, comparer, COMPARED)
        left = {(store, day) for day, run in comparer.runs.items() for store in self._stores(run, view, day)}
        left |= set(comparer.received)
        for row in compared.toLocalIterator(prefetchPartitions=True) if compared is not None else ():
            left.discard((row.store, row.day))
            yield row.asDict()
        for store, day in sorted(left):  # shown, but not recomputed
            example = f"{view.name} store {store} {day}: shown, not recomputed"
            yield {"day": day, "cells": 1, "differing": 1, "example": example, "totals": None}

    def _counted(self, events: DataFrame, speed: SpeedSpan, ended: ExitStack) -> CountedRows:
        """What both layers together should show for these events."""
        found = deliveries(events)
        ended.callback(found.release)
        first = found.first
        oldest = int(self._context.oldest.total_seconds() * 1_000_000)
        age = F.unix_micros("received_at") - F.unix_micros("happened_at")
        waits = (F.col("received_at") >= F.lit(speed.since)) & (age > oldest)
        counted = first.where(~waits).where(F.col("received_at") < F.lit(speed.until))
        return CountedRows(events, counted, self._context.visits, speed.since)

    def _stores(self, run: str, view: View, day: date) -> list[str]:
        query = self._session.prepare("SELECT stores FROM run_days WHERE run = ? AND view_name = ? AND day = ?")
        row = self._session.execute(query, (run, view.name, day)).one()
        return orjson.loads(row.stores) if row else []


def _drawn(sample: Sample | None, shown: set[date], of_masters: Iterable[set[date]]) -> list[date] | None:
    """The sample's days, of those that are shown or should be; None: every day is compared."""
    return None if sample is None else sample.draw(shown.union(*of_masters))


def _read_for(topic: str, days: Sequence[date] | None) -> Sequence[date]:
    """Of which days events of a topic are read to recompute these days of every view; empty: of all."""
    if days is None:
        return ()
    return sorted({each for view in registered_views() if view.source.topic == topic for each in view.days_read(days)})


def _is_in(days: Sequence[date] | None, day: date) -> bool:
    return days is None or day in days


def _received(spark: "SparkSession", speed: SpeedSpan) -> tuple[dict[str, dict[StoreDay, list[date]]], int]:
    """By view the stores and days that speed has rows of, and how many events wait for batch."""
    found: dict[str, dict[StoreDay, list[date]]] = {}
    waiting = 0
    partitions = spark.createDataFrame(speed.partitions(), PARTITIONS_SQL)
    for row in partitions.mapInArrow(StoreDayFinder(speed), from_arrow_schema(STORE_DAYS)).toLocalIterator():
        waiting += row.waiting or 0
        if row.day is not None:
            found.setdefault(row.view, {}).setdefault((row.store, row.day), []).append(row.received_day)
    return found, waiting
