"""Day cells from the cells of blocks; see `views.core.day_cells`."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date
from functools import reduce
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from master_dataset.compressed_blocks import pack
from master_dataset.registry.stores import Store
from master_dataset.registry.time_zones import zone_named
from views.core.aggregates import ARROW_FUNCTION, LISTED
from views.core.cells import WINDOW_KEY
from views.core.day_cells import (
    DAY_SECONDS,
    DAY_WINDOWS,
    END,
    RECEIPTS,
    START,
    STORE,
    DayShape,
    day_cuts,
    dimension_column,
    state_column,
)
from views.core.local_time import STEP, BusinessDays
from views.core.sketch import united

DAY = "day"
ROWS_AT_ONCE = 200_000
"""Day cells that a worker holds before it writes them."""
ROWS_OF_PART = 50_000
"""The most day cells of one row in Cassandra: usually some hundred kilobytes."""
BYTES_OF_PART = 2**20
"""Of such a row, if it has several day cells: dimensions may be 256 bytes long, and Cassandra takes 8 MB at most."""
_UTC = BusinessDays(zone_named("UTC"))
_MOST, _MOST_RECEIPTS = 2**62, 2**31 - 1
"""A sum whose parts might exceed it is left to the blocks, which are merged without a bound."""


def calendar_of(stores: Mapping[str, Store]) -> dict[str, BusinessDays]:
    """The business days of stores, each in its own time zone."""
    return {id_: BusinessDays.of(store, zone_named(store.timezone)) for id_, store in stores.items()}


@dataclass(frozen=True)
class DayCells:
    """Adds up cells. `calendar`: the business days of stores; a day of an unknown store is one part."""

    shape: DayShape
    calendar: Mapping[str, BusinessDays]

    def of(self, cells: pa.Table) -> pa.Table:
        """The day cells of these cells.

        Args:
            cells: `store`, `day` (UTC), `window`, and the columns of dimensions and states. All cells of a store and
                day are there, and follow each other.

        Returns:
            `store`, `day`, `start`, `end`, dimensions and states; for a view that counts flags also `receipts`. Stores
            are left out if a sum may exceed 64 bits.
        """
        cells = self._bounded(cells)
        dimensions = [dimension_column(place) for place in range(self.shape.dimensions)]
        keys = [STORE, DAY, START, END, *dimensions]
        states = [(state_column(at), ARROW_FUNCTION[by]) for at, by in enumerate(self.shape.reducers)]
        more = []
        if self.shape.receipts is not None:
            cells = cells.append_column(RECEIPTS, cells[state_column(self.shape.receipts)])
            more = [(WINDOW_KEY, LISTED), (RECEIPTS, LISTED)]
        starts, ends = self._parts(cells)
        cells = cells.append_column(START, pa.array(starts)).append_column(END, pa.array(ends))
        found = cells.group_by(keys, use_threads=False).aggregate([*states, *more])
        columns = {key: found[key] for key in keys}
        for name, by in states:
            columns[name] = found[f"{name}_{by}"] if by != LISTED else _unions(found[f"{name}_{LISTED}"])
        if self.shape.receipts is not None:
            columns[RECEIPTS] = _running(found[f"{WINDOW_KEY}_{LISTED}"], found[f"{RECEIPTS}_{LISTED}"])
        return pa.table(columns)

    def _bounded(self, cells: pa.Table) -> pa.Table:
        """Without the stores of which a sum might exceed 64 bits."""
        for at, by in enumerate(self.shape.reducers):
            if by != "sum":
                continue
            most = (_MOST_RECEIPTS if at == self.shape.receipts else _MOST) // max(1, cells.num_rows)
            column = cells[state_column(at)]
            huge = pc.or_(pc.greater(column, most), pc.less(column, -most))
            if pc.any(huge).as_py():
                stores = pc.unique(cells[STORE].filter(huge))
                cells = cells.filter(pc.invert(pc.is_in(cells[STORE], value_set=stores)))
        return cells

    def _parts(self, cells: pa.Table) -> tuple[np.ndarray, np.ndarray]:
        """Per cell where its part of the day starts and ends."""
        windows = cells[WINDOW_KEY].to_numpy()
        starts, ends = np.empty_like(windows), np.empty_like(windows)
        for first, last, store, day in runs(cells):
            cuts = np.array(day_cuts(self.calendar.get(store, _UTC), day))
            bounds = np.append(cuts, cuts[0] + DAY_SECONDS)
            place = np.searchsorted(cuts, windows[first:last], side="right") - 1
            starts[first:last], ends[first:last] = bounds[place], bounds[place + 1]
        return starts, ends


def runs(cells: pa.Table) -> Iterator[tuple[int, int, str, date]]:
    """Per store and day the first row, the row after the last, the store and the day."""
    if not cells.num_rows:
        return
    changes = np.zeros(cells.num_rows - 1, bool)
    for name in (STORE, DAY):
        column = cells[name].combine_chunks()
        changes |= pc.not_equal(column.slice(1), column.slice(0, len(column) - 1)).to_numpy(zero_copy_only=False)
    firsts = [0, *(np.flatnonzero(changes) + 1).tolist()]
    of = cells.select([STORE, DAY]).take(pa.array(firsts))
    pairs = zip(of[STORE].to_pylist(), of[DAY].to_pylist(), strict=True)
    for first, last, (store, day) in zip(firsts, [*firsts[1:], cells.num_rows], pairs, strict=True):
        yield first, last, store, day


def _running(windows: pa.ChunkedArray, receipts: pa.ChunkedArray) -> pa.Array:
    """Per list the receipts until the end of each window of its UTC day."""
    windows, receipts = windows.combine_chunks(), receipts.combine_chunks()
    found = np.zeros((len(windows), DAY_WINDOWS), np.int64)
    row = np.repeat(np.arange(len(windows)), windows.value_lengths().to_numpy())
    found[row, windows.flatten().to_numpy() % DAY_SECONDS // STEP] = receipts.flatten().to_numpy()
    running = np.cumsum(found, axis=1).astype(np.int32)
    return pa.FixedSizeListArray.from_arrays(pa.array(running.reshape(-1)), DAY_WINDOWS)


def _unions(listed: pa.ChunkedArray) -> pa.Array:
    """One sketch of those in each list."""
    sketches = ([each for each in of if each is not None] for of in listed.to_pylist())
    return pa.array([reduce(united, of) if of else None for of in sketches], pa.string())


@dataclass
class PartBuffer:
    """Day cells of one worker, until they are written as parts: each of one UTC day and many stores.

    Names are unique to this worker and attempt, and only those that reach the driver count, so an attempt that was
    killed leaves nothing behind that is read.
    """

    attempt: str = field(default_factory=lambda: uuid4().hex[:12])
    _held: list[pa.Table] = field(default_factory=list)
    _parts: int = 0

    @property
    def is_full(self) -> bool:
        """Whether it is time to write."""
        return sum(int(each.num_rows) for each in self._held) >= ROWS_AT_ONCE

    def add(self, rows: pa.Table) -> None:
        """Hold day cells."""
        self._held.append(rows)

    def parts(self) -> Iterator[tuple[date, str, bytes, list[str]]]:
        """The day, name, bytes and stores of every part; nothing is held afterwards."""
        if not self._held:
            return
        rows, self._held = pa.concat_tables(self._held), []
        rows = rows.sort_by([(DAY, "ascending"), (STORE, "ascending")])
        for day in pc.unique(rows[DAY]):
            of_day = rows.filter(pc.equal(rows[DAY], day)).drop_columns([DAY])
            for first in range(0, of_day.num_rows, ROWS_OF_PART):
                for part, block in _bounded_parts(of_day.slice(first, ROWS_OF_PART).combine_chunks()):
                    self._parts += 1
                    yield day.as_py(), f"{self.attempt}-{self._parts}", block, pc.unique(part[STORE]).to_pylist()


def _bounded_parts(part: pa.Table) -> Iterator[tuple[pa.Table, bytes]]:
    """The part and how it is kept; in halves, again and again, while that has more than `BYTES_OF_PART`."""
    block = packed(part)
    if len(block) <= BYTES_OF_PART or part.num_rows == 1:
        yield part, block
        return
    half = part.num_rows // 2
    for each in (part.slice(0, half), part.slice(half)):
        yield from _bounded_parts(each.combine_chunks())


def packed(part: pa.Table) -> bytes:
    """A part as it is kept. Texts are dictionaries, except sketches."""
    texts = {name for name in part.column_names if name == STORE or name.startswith("d")}
    columns = {name: pc.dictionary_encode(part[name]) if name in texts else part[name] for name in part.column_names}
    return pack(pa.table(columns))
