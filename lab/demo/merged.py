"""Every merged cell of a deployment, read through the code that answers readers, a store at a time."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa

from lab.demo.receipt_views import receipt_views
from serving_layer.query.read_snapshot import Basis, BasisReader
from serving_layer.store.merged_cells import MergedCells
from serving_layer.store.readers import Readers
from serving_layer.tables import BatchTables, Bridge, PublishedTables, ReceiptTables, SpeedTables, StoreTables
from views.core.merge import Cell
from views.core.view import View

if TYPE_CHECKING:
    from cassandra.cluster import Session

AT_ONCE = 8
"""So many stores are read side by side: enough to keep Cassandra busy, few enough for little memory."""


@dataclass(frozen=True)
class Shown:
    """What readers would be shown at one moment. `waiting`: events left to the next publication, an upper bound."""

    basis: Basis
    waiting: int


class EveryCell:
    """Reads between two instants, for the stores that are named."""

    def __init__(self, session: "Session", speed_ttl: timedelta, stores: Sequence[str], span: tuple[int, int]) -> None:
        """`span`: the first window and where the last one ends, seconds since 1970."""
        bridge = Bridge(session)
        self._readers = Readers(
            PublishedTables(bridge),
            BatchTables(bridge),
            SpeedTables(bridge),
            StoreTables(bridge),
            ReceiptTables(bridge),
        )
        self._ttl, self.stores, self._span = speed_ttl, stores, span

    def moment(self) -> Shown:
        """What an answer of now rests on. Speed writes rows first and positions after them: ask when it is done."""
        return asyncio.run(self._moment())

    def tables(self, basis: Basis, view: View, read: Callable[[int], None]) -> Iterator[pa.Table]:
        """The cells of a view as columns store, window, dimensions, states; `read` is told how many stores are done."""
        cells = MergedCells(self._readers, self._ttl)
        for start in range(0, len(self.stores), AT_ONCE):
            stores = self.stores[start : start + AT_ONCE]
            yield _table(view, list(zip(stores, asyncio.run(self._cells(cells, basis, view, stores)), strict=True)))
            read(start + len(stores))

    async def _cells(self, cells: MergedCells, basis: Basis, view: View, stores: Sequence[str]) -> list[list[Cell]]:
        return await asyncio.gather(*(cells.read(basis, view, store, *self._span) for store in stores))

    async def _moment(self) -> Shown:
        basis = await BasisReader(self._readers, self._ttl, partial(datetime.now, UTC)).read(partial=False)
        cells, waiting = MergedCells(self._readers, self._ttl), 0
        for store in self.stores:
            waiting += await cells.waiting(basis, receipt_views(), store, *self._span)
        return Shown(basis, waiting)


def _table(view: View, found: Sequence[tuple[str, Sequence[Cell]]]) -> pa.Table:
    cells = [cell for _, of_store in found for cell in of_store]
    columns: dict[str, pa.Array] = {
        "store": pa.array([store for store, of_store in found for _ in of_store], pa.string()),
        "window": pa.array([cell.key.window for cell in cells], pa.int64()),
    }
    for place, name in enumerate(view.dimensions):
        columns[name] = pa.array([cell.key.dimensions[place] for cell in cells], pa.string())
    for place, name in enumerate(view.columns):
        columns[name] = pa.array([cell.merged[place] for cell in cells], pa.int64())
    return pa.table(columns)
