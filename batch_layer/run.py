"""A run writes cells under its own name and deletes nothing; a publication is what makes them seen (R11)."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING

import orjson
import pyarrow as pa
from cassandra.concurrent import execute_concurrent_with_args
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import from_arrow_schema

from views.core.cut import month_of
from views.core.view import View

if TYPE_CHECKING:
    from cassandra.cluster import Session

Manifest = Mapping[tuple[str, date], str]
"""(view, day) to the run that wrote its cells."""

_WRITTEN = pa.schema([("day", pa.date32()), ("store", pa.string())])
_IN_FLIGHT = 64


@dataclass(frozen=True)
class BlockWriter:
    """Runs in Spark's workers: writes blocks, gives back (day, store) of each."""

    connect: "Callable[[], Session]"
    view: str
    run: str

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Every block is acknowledged before its place is given back."""
        session = self.connect()
        insert = session.prepare(
            "INSERT INTO batch_cells (view_name, store, month, run, day, block) VALUES (?, ?, ?, ?, ?, ?)"
        )
        for batch in batches:
            rows = batch.to_pylist()
            values = [(self.view, r["store"], month_of(r["day"]), self.run, r["day"], r["block"]) for r in rows]
            execute_concurrent_with_args(session, insert, values, concurrency=_IN_FLIGHT, raise_on_first_error=True)
            yield batch.select(_WRITTEN.names)


class Run:
    """One run's cells, and the manifest that a publication may name."""

    def __init__(self, connect: "Callable[[], Session]", name: str) -> None:
        """`connect` is also called in Spark's workers; `name` is unique for ever."""
        self._connect, self._session, self.name = connect, connect(), name

    def write(self, view: View, blocks: DataFrame, days: set[date]) -> int:
        """Write the blocks of these days, and for each day which stores have one. Gives back how many blocks."""
        written = blocks.mapInArrow(BlockWriter(self._connect, view.name, self.name), from_arrow_schema(_WRITTEN))
        stores: dict[date, list[str]] = {day: [] for day in days}
        for row in written.toLocalIterator():
            stores[row.day].append(row.store)
        insert = self._session.prepare("INSERT INTO run_days (run, view_name, day, stores) VALUES (?, ?, ?, ?)")
        values = [(self.name, view.name, day, orjson.dumps(sorted(own)).decode()) for day, own in stores.items()]
        execute_concurrent_with_args(self._session, insert, values, concurrency=_IN_FLIGHT, raise_on_first_error=True)
        return sum(map(len, stores.values()))

    def write_manifest(self, manifest: Manifest) -> None:
        """Write the whole manifest under this run's name; it never changes afterwards."""
        insert = self._session.prepare("INSERT INTO manifests (manifest, view_name, day, run) VALUES (?, ?, ?, ?)")
        values = [(self.name, view, day, run) for (view, day), run in manifest.items()]
        execute_concurrent_with_args(self._session, insert, values, concurrency=_IN_FLIGHT, raise_on_first_error=True)


def read_manifest(session: "Session", manifest: str) -> dict[tuple[str, date], str]:
    """The entries of a manifest; none for publication 0, whose manifest is ""."""
    if not manifest:
        return {}
    query = session.prepare("SELECT view_name, day, run FROM manifests WHERE manifest = ?")
    return {(row.view_name, row.day.date()): row.run for row in session.execute(query, (manifest,))}
