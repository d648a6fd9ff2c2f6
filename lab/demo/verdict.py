"""The end of the demo: every merged cell is compared with the oracle, and every record is accounted for.

Compared are all cells of all views over receipts of all stores, read through the code of the serving layer once both
layers have read everything. Only events since the cut that are too old for the speed layer are left out on both sides;
`waiting_for_batch` must count at least these, and at most these and their repeats.
"""

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa

from lab.demo.oracle import DeliveryCounts, Oracle, ViewComparison, receipt_views
from lab.demo.top_products import NO_PRODUCTS, TopProducts
from master_dataset.delta.tables import DEAD_LETTERS, MasterTables
from master_dataset.storage import open_table
from serving_layer.store.cells import MergedCells
from serving_layer.store.readers import Readers
from serving_layer.store.snapshot import ReadSnapshot, SnapshotReader
from serving_layer.tables import AsyncSession, BatchTables, PublishedTables, ReceiptTables, SpeedTables, StoreTables
from views.core.local_time import Span
from views.core.merge import Cell
from views.core.view import View

if TYPE_CHECKING:
    from cassandra.cluster import Session

    from deploy.settings import Settings

AT_ONCE = 32
"""Stores that are read concurrently: enough to keep Cassandra busy. Four weeks of their cells take little memory."""


@dataclass(frozen=True)
class MergedSnapshot:
    """The read snapshot of a moment. `waiting`: events that wait for the next publication, an upper bound."""

    basis: ReadSnapshot
    waiting: int


class MergedCellReader:
    """Reads every merged cell of some stores, through the code that serves readers."""

    def __init__(self, session: "Session", speed_ttl: timedelta, stores: Sequence[str], span: tuple[int, int]) -> None:
        """`span`: the first window and where the last one ends, seconds since 1970."""
        bridge = AsyncSession(session)
        self._readers = Readers(
            PublishedTables(bridge),
            BatchTables(bridge),
            SpeedTables(bridge),
            StoreTables(bridge),
            ReceiptTables(bridge),
        )
        self._ttl, self.stores, self._span = speed_ttl, stores, span

    def moment(self) -> MergedSnapshot:
        """Return the current read snapshot. The speed layer writes rows before positions: call it once it is done."""
        return asyncio.run(self._moment())

    def tables(self, basis: ReadSnapshot, view: View, read: Callable[[int], None]) -> Iterator[pa.Table]:
        """Yield the cells of a view: columns store, window, dimensions, states. `read` gets the stores done."""
        cells = MergedCells(self._readers, self._ttl)
        for start in range(0, len(self.stores), AT_ONCE):
            stores = self.stores[start : start + AT_ONCE]
            found = asyncio.run(cells.read(basis, view, self._spans(stores)))
            yield _table(view, [(store, found[store][0]) for store in stores])
            read(start + len(stores))

    def _spans(self, stores: Sequence[str]) -> Mapping[str, Sequence[Span]]:
        return {store: [Span(*self._span)] for store in stores}

    async def _moment(self) -> MergedSnapshot:
        basis = await SnapshotReader(self._readers, self._ttl, partial(datetime.now, UTC)).read(partial=False)
        waiting = await MergedCells(self._readers, self._ttl).waiting(basis, receipt_views(), self._spans(self.stores))
        return MergedSnapshot(basis, sum(each.number for each in waiting.values()))


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


Step = Callable[[int, int, str], None]


@dataclass(frozen=True)
class DemoResult:
    """The result of the demo. `sent`: records that the broker acknowledged. `products`: the best of each department."""

    differences: Sequence[ViewComparison]
    sent: int
    deliveries: DeliveryCounts
    dead_letters: int
    waiting: int
    products: TopProducts = NO_PRODUCTS

    @property
    def cells(self) -> int:
        """Number of compared cells."""
        return sum(each.cells for each in self.differences)

    @property
    def differing(self) -> int:
        """Number of differing cells."""
        return sum(each.differing for each in self.differences)

    @property
    def examples(self) -> list[str]:
        """The first differing cells."""
        return [example for each in self.differences for example in each.examples] + list(self.products.examples)

    @property
    def is_conserved(self) -> bool:
        """Sent = events + duplicates + dead letters, of which a conflicting duplicate is one."""
        found = self.deliveries
        return self.sent == found.events + found.duplicates + found.conflicts + self.dead_letters

    @property
    def is_waiting_covered(self) -> bool:
        """Whether `waiting_for_batch` covers what is left out; it is an upper bound that includes repeats."""
        return self.deliveries.old <= self.waiting <= self.deliveries.old_deliveries

    @property
    def is_right(self) -> bool:
        """Whether the demo may exit 0."""
        is_equal = bool(self.cells) and not self.differing and not self.products.differing
        return is_equal and self.is_conserved and self.is_waiting_covered


@dataclass(frozen=True)
class CellComparison:
    """Compares the merged cells with the oracle."""

    settings: "Settings"
    oracle: Oracle
    shown: MergedCellReader

    def run(self, sent: int, step: Step) -> DemoResult:
        """Compare everything. Both layers must have read all records, and nothing may be sent meanwhile."""
        tables, views = MasterTables(self.settings.paths.master_uri), receipt_views()
        stores = len(self.shown.stores)
        total = (len(views) + 1) * stores
        step(0, total, "recomputing from raw bytes")
        moment = self.shown.moment()
        topic = views[0].source.topic
        self.oracle.recompute(self.oracle.master(open_table(tables.path(topic))), moment.basis.pointer.cut)
        differences = []
        for nth, view in enumerate(views, 1):
            tell = partial(_tell, step, nth * stores, total, f"reading {view.name}")
            self.oracle.show(view, self.shown.tables(moment.basis, view, tell))
            differences.append(self.oracle.compare(view))
        dead_letters = open_table(tables.path(DEAD_LETTERS)).count()
        return DemoResult(differences, sent, self.oracle.deliveries(), dead_letters, moment.waiting)


def _tell(step: Step, before: int, total: int, what: str, done: int) -> None:
    step(before + done, total, what)
