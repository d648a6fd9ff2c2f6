"""The speed layer's rows: what one micro-batch adds to the cells of an epoch, overwritten by key, never incremented.

A replay of the micro-batch writes the same rows again (R7), and nothing is read to write one. The write timestamp is
the start of the epoch: no clock, and sorted by receipt, as time-window compaction needs it.
"""

from collections.abc import Iterable, Iterator
from datetime import UTC, timedelta
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from master_dataset.failpoints import CrashPoint, passing
from speed_layer.additions import AdditionKey, Cells, Shapes
from speed_layer.slices import Insert, write
from views.core.cells import write_block
from views.core.cut import BEGINNING

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
        write(self._session, insert, rows, lambda: passing(CrashPoint.SPEED_ROWS))

    def _rows(self, micro_batch: int, key: AdditionKey, cells: Cells) -> Iterator[tuple[Any, ...]]:
        written_at = (key.epoch - BEGINNING) // _MICROSECOND
        place = (key.shape, key.store, key.epoch.astimezone(UTC).date(), self._generation, key.epoch, micro_batch)
        for part, start in enumerate(range(0, len(cells), CELLS_AT_MOST)):
            block = write_block(self._shapes[key.shape], cells[start : start + CELLS_AT_MOST])
            yield (*place, part, block, written_at, self._ttl_seconds)
