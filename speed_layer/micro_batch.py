"""Counts one micro-batch: first deliveries, what they add, the rows; then says how far it has read."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

import pyarrow as pa

from master_dataset.failpoints import CrashPoint, passing
from master_dataset.parsing.rows import EVENT
from master_dataset.visits.visit import VisitRules
from speed_layer.additions import Shapes, additions
from speed_layer.arrivals import of_kind
from speed_layer.first_deliveries import FirstDeliveries
from speed_layer.generation import Generation
from speed_layer.rows import SpeedRows
from speed_layer.sightings import positions, sightings

if TYPE_CHECKING:
    from cassandra.cluster import Session


@dataclass(frozen=True, kw_only=True)
class Horizons:
    """`epoch`: length of a receipt epoch. `oldest`: A of R5, `remembered`: D. `ttl`: how long rows live.

    `visits`: when sightings make a visit. `skew`: by how much stamps may step back.
    """

    epoch: timedelta
    oldest: timedelta
    visits: VisitRules
    skew: timedelta
    remembered: timedelta
    ttl: timedelta


@dataclass(frozen=True)
class MicroBatch:
    """Runs in Spark's workers, in one task for all arrivals of a store: a cell and an identity have one writer."""

    connect: "Callable[[], Session]"
    shapes: Shapes
    horizons: Horizons
    generation: Generation
    number: int
    heard_for: str | None = None
    """The view of visits, if there is one: what contributes to it is given back."""

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Write what the arrivals add; give back `GIVEN_BACK`, for when every task has done so."""
        parts = list(batches)
        if not parts:
            return
        arrived = pa.Table.from_batches(parts)
        events = of_kind(arrived, EVENT)
        if events.num_rows:
            self._count(events)
        if self.heard_for and events.num_rows:
            yield from sightings(events, self.heard_for)
        yield from positions(arrived)

    def _count(self, events: pa.Table) -> None:
        session, own, until = self.connect(), self.generation, self.horizons
        # A row that is served is at most `ttl` old, and what it repeats came at most `remembered` before it.
        firsts = FirstDeliveries(session, own.number, until.oldest, until.ttl + until.remembered)
        counting = firsts.among(events)
        passing(CrashPoint.SPEED_REMEMBERED)
        added = additions(counting, self.shapes, until.epoch)
        # Earlier epochs are inside the cut that this generation began at.
        shown = ((key, cells) for key, cells in added if key.epoch >= own.emit_from)
        SpeedRows(session, own.number, until.ttl, self.shapes).write(self.number, shown)
