"""Counts one micro-batch in a Spark worker, and returns to the driver how far it was read.

    parsed rows -> events -> FirstDeliveries -> contributions -> additions -> SpeedRows -> StoreProgress
                  -> sightings and positions, as OUTPUT, for the driver

A speed row is what one micro-batch adds to the cells of an epoch: overwritten by key, never incremented. A replay of
the micro-batch writes the same rows again (R7), and no row is read to write one. The write timestamp is the start of
the epoch: no clock, and in the order of receipt, as time-window compaction needs it.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import chain, islice
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from master_dataset.cassandra_tables import LATE_EVENTS, AlarmTable
from master_dataset.failpoints import Failpoint, failpoint
from master_dataset.parsing.rows import EVENT
from master_dataset.visits.visit import VisitRules
from speed_layer.additions import Added, AdditionKey, Cells, Shapes, additions
from speed_layer.arrow_tables import of_kind, position_rows, sighting_rows
from speed_layer.cassandra_batches import Insert, Wait, nothing_begun, write_all
from speed_layer.contributions import Contributions
from speed_layer.first_deliveries import FirstDeliveries
from speed_layer.new_identities import FilterFiles
from speed_layer.store_progress import StoreProgress
from views.control.generation import Generation
from views.control.speed_layout import SpeedLayout
from views.core.cells import WAITING, write_block
from views.core.cut import UNIX_EPOCH

if TYPE_CHECKING:
    from cassandra.cluster import Session

_COLUMNS = ("view_name", "store", "received_day", "generation", "epoch", "micro_batch", "part", "block")
MAX_CELLS = 1_000
"""Maximum number of cells per row, about 50 kB: Cassandra rejects writes of megabytes, and dimensions may be long."""
_BLOCK = _COLUMNS.index("block")
ROWS_SORTED = 50_000
"""How many rows are put in order together, about 25 MB: contributions come view by view, partitions store by store."""
_MICROSECOND = timedelta(microseconds=1)


class SpeedRows:
    """Writes the rows of one generation."""

    def __init__(
        self, session: "Session", generation: int, layout: SpeedLayout, ttl: timedelta, shapes: Shapes
    ) -> None:
        """`ttl`: how long rows are kept. `shapes`: of everything that has rows."""
        self._session, self._generation, self._layout, self._shapes = session, generation, layout, shapes
        self._ttl_seconds = int(ttl.total_seconds())

    def write(
        self, micro_batch: int, additions: Iterable[tuple[AdditionKey, Cells]], before: Wait = nothing_begun
    ) -> None:
        """Write what a micro-batch adds. Returns when every row is acknowledged.

        `before` is called when the first rows are computed, before any of them is sent.
        """
        rows = (row for key, cells in additions for row in self._rows(micro_batch, key, cells))
        names = ", ".join(_COLUMNS)
        statement = self._session.prepare(
            f"INSERT INTO {self._layout.cells} ({names}) VALUES (?, ?, ?, ?, ?, ?, ?, ?) USING TIMESTAMP ? AND TTL ?"  # noqa: S608 - our own names
        )
        partition = itemgetter(*(_COLUMNS.index(name) for name in self._layout.cells_key))
        insert = Insert(statement, partition, lambda row: len(row[_BLOCK].encode()))
        portions = iter(lambda: sorted(islice(rows, ROWS_SORTED), key=partition), [])
        first = next(portions, [])
        before()
        for some in chain([first], portions):
            write_all(self._session, insert, some, lambda: failpoint(Failpoint.SPEED_ROWS))

    def _rows(self, micro_batch: int, key: AdditionKey, cells: Cells) -> Iterator[tuple[Any, ...]]:
        written_at = (key.epoch - UNIX_EPOCH) // _MICROSECOND
        primary = (key.shape, key.store, key.epoch.astimezone(UTC).date(), self._generation, key.epoch, micro_batch)
        for part, start in enumerate(range(0, len(cells), MAX_CELLS)):
            block = write_block(self._shapes[key.shape], cells[start : start + MAX_CELLS])
            yield (*primary, part, block, written_at, self._ttl_seconds)


@dataclass(frozen=True, kw_only=True)
class SpeedTimings:
    """The times of the speed layer.

    Attributes:
        epoch: Length of a receipt epoch.
        oldest: The greatest age on arrival of events that count (A of R5).
        visits: When sightings make a visit.
        skew: How far timestamps may step back.
        remembered: How long identities are remembered (D of R5).
        ttl: How long rows are kept.
    """

    epoch: timedelta
    oldest: timedelta
    visits: VisitRules
    skew: timedelta
    remembered: timedelta
    ttl: timedelta


@dataclass(frozen=True)
class MicroBatch:
    """Runs in one task for all events of a store, so that each cell and each identity has a single writer."""

    connect: "Callable[[], Session]"
    contributions: Contributions
    timings: SpeedTimings
    generation: Generation
    number: int
    filters: FilterFiles | None = None

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Write what the events add. The output comes last: when the driver has it, every row is written."""
        parts = list(batches)
        if not parts:
            return
        input_rows = pa.Table.from_batches(parts)
        events = of_kind(input_rows, EVENT)
        if events.num_rows:
            self._count(events)
            of_visits = [view for view in self.contributions.views if view.counts_visits]
            for view in of_visits[:1]:  # all of them share the sightings
                yield from sighting_rows(self.contributions.sightings(events, view), view.name)
        yield from position_rows(input_rows)

    def _count(self, events: pa.Table) -> None:
        session, own, timings = self.connect(), self.generation, self.timings
        # A row is served for at most `ttl`, and a duplicate arrives at most `remembered` after the first delivery.
        kept = timings.ttl + timings.remembered
        firsts = FirstDeliveries(session, own, timings.oldest, kept, self.filters)
        first, are_remembered = firsts.filter_first(events)

        def remember() -> None:
            are_remembered()
            failpoint(Failpoint.SPEED_REMEMBERED)

        shapes = self.contributions.shapes
        late = set[datetime]()
        added = additions(first, self.contributions, shapes, timings.epoch)
        rows = SpeedRows(session, own.number, own.layout, timings.ttl, shapes)
        rows.write(self.number, self._served(added, late), before=remember)
        StoreProgress(session, own.number, timings.ttl).counted(self.number, events)
        if late:
            notice_late_events(session, late)

    def _served(self, added: Iterable[Added], late: set[datetime]) -> Iterator[Added]:
        """What is served of `added`: earlier epochs are within the cut at which this generation started.

        `late` gets the epochs in which events wait for batch.
        """
        for key, cells in added:
            if key.epoch >= self.generation.emit_from:
                if key.shape == WAITING.name:
                    late.add(key.epoch)
                yield key, cells


def notice_late_events(session: "Session", epochs: Iterable[datetime]) -> None:
    """Note the epochs in which events wait for batch, once their rows are written: see `batch_layer.prompt_correction`.

    A replay of the micro-batch notes the same.
    """
    alarms = AlarmTable(session)
    for epoch in sorted(epochs):
        alarms.notice(LATE_EVENTS, epoch, "speed", "events wait for the next publication")


@dataclass(frozen=True)
class Rehearsal:
    """Computes what a micro-batch contributes, and writes nothing: so that what it needs is loaded and compiled."""

    contributions: Contributions

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The positions of the rows."""
        for batch in batches:
            rows = pa.Table.from_batches([batch])
            self.contributions(of_kind(rows, EVENT))
            yield from position_rows(rows)
