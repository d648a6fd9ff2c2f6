"""The speed layer's rows: what one micro-batch adds to the cells of an epoch, overwritten by key, never incremented.

A replay of the micro-batch writes the same rows again (R7), and nothing is read to write one. The write timestamp is
the start of the epoch: no clock, and sorted by receipt, as time-window compaction needs it.

Counts one micro-batch: first deliveries, what they add, the rows; then says how far it has read.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, timedelta
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from master_dataset.failpoints import Failpoint, failpoint
from master_dataset.parsing.rows import EVENT
from master_dataset.visits.visit import VisitRules
from speed_layer.additions import AdditionKey, Cells, Shapes, additions
from speed_layer.arrow_tables import of_kind, position_rows, sighting_rows
from speed_layer.cassandra_batches import Insert, write_all
from speed_layer.first_deliveries import FirstDeliveries
from views.control.generation import Generation
from views.core.cells import write_block
from views.core.cut import UNIX_EPOCH

if TYPE_CHECKING:
    from cassandra.cluster import Session

_INSERT = (
    "INSERT INTO speed_cells (view_name, store, received_day, generation, epoch, micro_batch, part, block) "
    "VALUES (?, ?, ?, ?, ?, ?, ?, ?) USING TIMESTAMP ? AND TTL ?"
)
CELLS_AT_MOST = 1_000
"""Of one row, some 50 kB: Cassandra refuses writes of many megabytes, also where every dimension is a long text."""
_PARTITION, _BLOCK = itemgetter(0, 1, 2), 7
"""Among the values of `_INSERT`."""
_MICROSECOND = timedelta(microseconds=1)


class SpeedRows:
    """The rows of one generation."""

    def __init__(self, session: "Session", generation: int, ttl: timedelta, shapes: Shapes) -> None:
        """`ttl`: how long rows live. `shapes`: of everything that has rows."""
        self._session, self._generation, self._shapes = session, generation, shapes
        self._ttl_seconds = int(ttl.total_seconds())

    def write(self, micro_batch: int, additions: Iterable[tuple[AdditionKey, Cells]]) -> None:
        """Write what the micro-batch of that number adds; when this returns, every row is acknowledged."""
        rows = (row for key, cells in additions for row in self._rows(micro_batch, key, cells))
        insert = Insert(self._session.prepare(_INSERT), _PARTITION, lambda row: len(row[_BLOCK].encode()))
        write_all(self._session, insert, rows, lambda: failpoint(Failpoint.SPEED_ROWS))

    def _rows(self, micro_batch: int, key: AdditionKey, cells: Cells) -> Iterator[tuple[Any, ...]]:
        written_at = (key.epoch - UNIX_EPOCH) // _MICROSECOND
        place = (key.shape, key.store, key.epoch.astimezone(UTC).date(), self._generation, key.epoch, micro_batch)
        for part, start in enumerate(range(0, len(cells), CELLS_AT_MOST)):
            block = write_block(self._shapes[key.shape], cells[start : start + CELLS_AT_MOST])
            yield (*place, part, block, written_at, self._ttl_seconds)


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
            yield from sighting_rows(events, self.heard_for)
        yield from position_rows(arrived)

    def _count(self, events: pa.Table) -> None:
        session, own, until = self.connect(), self.generation, self.horizons
        # A row that is served is at most `ttl` old, and what it repeats came at most `remembered` before it.
        firsts = FirstDeliveries(session, own.number, until.oldest, until.ttl + until.remembered)
        counting = firsts.among(events)
        failpoint(Failpoint.SPEED_REMEMBERED)
        added = additions(counting, self.shapes, until.epoch)
        # Earlier epochs are inside the cut that this generation began at.
        shown = ((key, cells) for key, cells in added if key.epoch >= own.emit_from)
        SpeedRows(session, own.number, until.ttl, self.shapes).write(self.number, shown)
