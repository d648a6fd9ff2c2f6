"""Every merged cell of a deployment, read through the code that answers readers, some stores at a time."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from datetime import timedelta
from functools import cache, lru_cache
from multiprocessing import get_context
from typing import Self

import pyarrow as pa

from deploy.cassandra import Address, session_of
from deploy.garbage import look_seldom
from serving_layer.basis import Basis, BasisReader
from serving_layer.merge import Cell
from serving_layer.merged_cells import MergedCells
from serving_layer.readers import Readers
from serving_layer.tables import BatchTables, Bridge, PublishedTables, ReceiptTables, SpeedTables, StoreTables
from views.core.view import View
from views.registry import registered_views, view_named

PROCESSES = 2
AT_ONCE = 8
"""So many stores are read side by side: enough to keep Cassandra busy, few enough for little memory."""

Span = tuple[int, int]
"""The first window and where the last one ends, seconds since 1970."""


@dataclass(frozen=True)
class Shown:
    """What readers would be shown at one moment. `waiting`: events left to the next publication, an upper bound."""

    basis: Basis
    waiting: int


class EveryCell:
    """Reads between two instants, for the stores that are named, in processes of its own. Use as a context manager."""

    def __init__(self, address: Address, speed_ttl: timedelta, stores: Sequence[str], span: Span) -> None:
        """`address` of Cassandra, `speed_ttl`: how long speed rows live."""
        self._reading, self.stores = _Reading(address, speed_ttl, span), stores
        self._pool = ProcessPoolExecutor(PROCESSES, get_context("spawn"))  # not forked: Spark's threads run here

    def __enter__(self) -> Self:
        """Nothing to prepare."""
        return self

    def __exit__(self, *_: object) -> None:
        """End the processes."""
        self._pool.shutdown(cancel_futures=True)

    def moment(self) -> Shown:
        """What an answer of now rests on. Speed writes rows first and positions after them: ask when it is done."""
        return self._pool.submit(self._reading.moment, self.stores).result()

    def tables(self, basis: Basis, view: View, read: Callable[[int], None]) -> Iterator[pa.Table]:
        """The cells of a view as columns store, window, dimensions, states; `read` is told how many stores are done."""
        chunks = [self.stores[start : start + AT_ONCE] for start in range(0, len(self.stores), AT_ONCE)]
        tables = [self._pool.submit(self._reading.table, basis, view.name, chunk) for chunk in chunks]
        done = 0
        for chunk, table in zip(chunks, tables, strict=True):
            yield table.result()
            done += len(chunk)
            read(done)


@dataclass(frozen=True)
class _Reading:
    """Done in the processes."""

    address: Address
    speed_ttl: timedelta
    span: Span

    def moment(self, stores: Sequence[str]) -> Shown:
        async def read() -> Shown:
            basis = await BasisReader(_readers(self.address), self.speed_ttl).read(partial=False)
            cells, waiting = _cells(self.address, self.speed_ttl, ""), 0
            for store in stores:
                waiting += await cells.waiting(basis, registered_views(), store, *self.span)
            return Shown(basis, waiting)

        return asyncio.run(read())

    def table(self, basis: Basis, name: str, stores: Sequence[str]) -> pa.Table:
        look_seldom()
        view = view_named(name)

        async def read() -> list[list[Cell]]:
            cells = _cells(self.address, self.speed_ttl, name)
            return await asyncio.gather(*(cells.read(basis, view, store, *self.span) for store in stores))

        return _table(view, list(zip(stores, asyncio.run(read()), strict=True)))


@cache
def _readers(address: Address) -> Readers:
    bridge = Bridge(session_of(address))
    return Readers(
        PublishedTables(bridge), BatchTables(bridge), SpeedTables(bridge), StoreTables(bridge), ReceiptTables(bridge)
    )


@lru_cache(1)
def _cells(address: Address, speed_ttl: timedelta, _view: str) -> MergedCells:
    """A new one for each view: what it remembers of the view before would only take room."""
    return MergedCells(_readers(address), speed_ttl)


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
