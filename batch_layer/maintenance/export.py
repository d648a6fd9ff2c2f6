"""Corrected cells as Delta tables, one per view, for DuckDB, pandas and notebooks.

A partition is one UTC day as one run computed it, so the Delta log alone shows which days are still as published.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import TYPE_CHECKING

import orjson
import pyarrow as pa
from deltalake import write_deltalake
from deltalake.exceptions import DeltaError

from batch_layer.run import read_blocks, read_digests, read_manifest
from master_dataset.cassandra_tables import leased
from master_dataset.delta.append import REWRITES, committed_once
from master_dataset.errors import DefinitionNotCoveredError, NothingPublishedError, PublicationMovedError
from master_dataset.storage import is_table, open_table, options
from views import registered_views, view_named
from views.control.publication import PointerRow
from views.core.cells import WINDOW_KEY
from views.core.cut import month_of
from views.core.view import View

if TYPE_CHECKING:
    from cassandra.cluster import Session

_PARTITIONS = ["day", "run"]
Runs = Mapping[date, str]
"""The run that computed the cells of a day."""


@dataclass(frozen=True)
class Exported:
    """What was written for one view: days added or changed, days removed, and the cells of the former."""

    view: str
    days: int
    gone: int
    cells: int


def corrected_schema(view: View) -> pa.Schema:
    """A row per cell: store, window (UTC), dimensions, states by their full names, and where they come from."""
    states = [(name, pa.string() if each.by == "union" else pa.int64()) for name, each in view.columns.items()]
    key = [("store", pa.string()), (WINDOW_KEY, pa.timestamp("us", "UTC"))]
    texts = [(name, pa.string()) for name in view.dimensions]
    return pa.schema([*key, *texts, *states, ("day", pa.date32()), ("run", pa.string())])


class CorrectedTable:
    """The table of one view."""

    def __init__(self, session: "Session", root: str, view: View) -> None:
        """`root`: a folder, or `s3://BUCKET/PREFIX`."""
        self._session, self._path, self._view = session, f"{root}/{view.name}", view
        self._schema = corrected_schema(view)
        self._moved: PublicationMovedError | None = None

    def bring_to(self, published: Runs, publication: int, keeps: timedelta) -> Exported:
        """Write the days that differ, in one commit. PublicationMovedError if cells are missing.

        `keeps`: for how long files that were replaced stay, for those who still read them.
        """
        there = self._there()
        differing = {day: run for day, run in published.items() if there.get(day) != run}
        changed = {day: stores for day, stores in self._stores(differing).items() if stores}
        gone = there.keys() - (published.keys() - differing.keys()) - changed.keys()
        cells = 0

        def counted() -> Iterator[pa.RecordBatch]:
            nonlocal cells
            for batch in self._cells(differing, changed):
                cells += batch.num_rows
                yield batch

        if changed or gone:
            reader = pa.RecordBatchReader.from_batches(self._schema, counted())
            try:
                self._write(reader, {*changed, *gone} if there else None, publication)
            except DeltaError as error:  # the writer only learns that reading has ended
                raise self._moved or error from error
            open_table(self._path).vacuum(int(keeps / timedelta(hours=1)), dry_run=False)
        return Exported(self._view.name, len(changed), len(gone), cells)

    def _there(self) -> Runs:
        """Nothing if the columns of the definition have changed: then everything is rewritten."""
        if not is_table(self._path):
            return {}
        table = open_table(self._path)
        if [field.name for field in table.schema().fields] != self._schema.names:
            return {}
        return {date.fromisoformat(each["day"]): each["run"] for each in table.partitions()}

    def _write(self, reader: pa.RecordBatchReader, days: Iterable[date] | None, publication: int) -> None:
        listed = ", ".join(f"'{day}'" for day in sorted(days or ()))
        since = open_table(self._path).version() if is_table(self._path) else -1
        with committed_once(self._path, since, REWRITES, {"galatea.publication": str(publication)}) as properties:
            write_deltalake(
                self._path,
                reader,
                mode="overwrite",
                storage_options=options(self._path),
                partition_by=_PARTITIONS,
                predicate=None if days is None else f"day IN ({listed})",
                schema_mode="overwrite" if days is None else None,
                commit_properties=properties,
            )

    def _stores(self, runs: Runs) -> Mapping[date, Sequence[str]]:
        """The stores that have cells on each day; one query per run. PublicationMovedError."""
        found: dict[date, Sequence[str]] = {}
        for run in sorted(set(runs.values())):
            days = {day for day, own in runs.items() if own == run}
            own = read_digests(self._session, run, self._view.name, days)
            if lost := days - own.keys():
                raise self._taken_away(min(lost))
            found |= {day: sorted(stores) for day, stores in own.items()}
        return found

    def _taken_away(self, day: date) -> PublicationMovedError:
        message = f"The cells of `{self._view.name}` of {day} were deleted in the meantime."
        return PublicationMovedError(message, do="Run it again: it then writes the current publication.")

    def _cells(self, runs: Runs, of: Mapping[date, Sequence[str]]) -> Iterator[pa.RecordBatch]:
        for day, stores in sorted(of.items()):
            run = runs[day]
            keys = [(self._view.name, store, month_of(day), run, day) for store in stores]
            for store, block in zip(stores, read_blocks(self._session, keys), strict=True):
                if block is None:
                    self._moved = self._taken_away(day)
                    raise self._moved
                yield self._batch(block, store, day, run)

    def _batch(self, block: str, store: str, day: date, run: str) -> pa.RecordBatch:
        columns: dict[str, Sequence[object]] = orjson.loads(block)
        number = len(columns[WINDOW_KEY])
        known = {
            "store": pa.repeat(store, number),
            WINDOW_KEY: pa.array(columns[WINDOW_KEY], pa.timestamp("s", "UTC")),
            "day": pa.repeat(pa.scalar(day, pa.date32()), number),
            "run": pa.repeat(run, number),
        }
        arrays = [
            known[field.name].cast(field.type) if field.name in known else pa.array(columns[field.name], field.type)
            for field in self._schema
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)


def export_published(  # noqa: PLR0913 - clear by name
    session: "Session",
    root: str,
    names: Sequence[str],
    *,
    definitions: Mapping[str, str],
    keeps: timedelta,
    step: Callable[[int, int, str], None],
) -> tuple[int, list[Exported]]:
    """Bring the tables of corrected views to the published state. One writer at a time.

    Args:
        session: Cassandra, with Galatea's keyspace.
        root: Root of the tables, a folder or URI.
        names: Views to export; all if empty.
        definitions: Hash of each view's definition as this deployment computes it.
        keeps: How long replaced files stay for readers that still use them.
        step: Progress: views done, views in total, what is being written.

    Returns:
        The publication that the tables hold now, and what was written per view.

    Raises:
        UnknownNameError: There is no such view.
        NothingPublishedError: Nothing was published yet.
        DefinitionNotCoveredError: A definition differs from the published one.
    """
    views = [view_named(name) for name in names] or list(registered_views())
    done = []
    with leased(session, "export") as lease:
        pointer = PointerRow(session).read()
        if not pointer.publication:
            raise NothingPublishedError("nothing is published yet", do="galatea rebuild, then: galatea export")
        published = read_manifest(session, pointer.manifest)
        for cells, view in enumerate(views):
            if not view.is_defined_alike(definitions, pointer.definitions):
                message = f"the definition of `{view.name}` differs from the published one"
                raise DefinitionNotCoveredError(message, do="galatea rebuild, then: galatea export")
            step(cells, len(views), view.name)
            lease.renew()
            runs = {day: run for (name, day), run in published.items() if name == view.name}
            done.append(CorrectedTable(session, root, view).bring_to(runs, pointer.publication, keeps))
        step(len(views), len(views), "written")
    return pointer.publication, done
