"""Cells of a view with the states of each layer: what a number is made of."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from serving_layer.query.ranges import RangeName
from serving_layer.responses.encoding import iso_epoch
from serving_layer.responses.metrics import CellsResponse, CellStates
from serving_layer.store.cells import MergedCells
from serving_layer.store.snapshot import ReadSnapshot, as_of
from views.core import View
from views.core.local_time import Span
from views.core.merge import Cell


@dataclass(frozen=True)
class CellsRequest:
    """A request for cells; for the fields see `MetricRequest`. Dates are read in the time zone of each store."""

    view: str
    stores: tuple[str, ...]
    start: str | None
    end: str | None
    partial: bool = False
    as_of: int | None = None
    range: RangeName | None = None


async def answer_cells(
    view: View, spans: Sequence[tuple[str, int, int]], snapshot: ReadSnapshot, cells: MergedCells
) -> CellsResponse:
    """The cells of some stores.

    Args:
        view: whose cells.
        spans: per store its id, the first window, and where the last one ends, in seconds since 1970.
        snapshot: the state of both layers that is read.
        cells: the merged cells of both layers.

    Returns:
        States as they are stored: whole numbers, money in minor units.

    Raises:
        DefinitionNotPublishedError, CellMissingError, CassandraUnavailableError: as for any answer.
    """
    by_store = {store: [Span(start, end)] for store, start, end in spans}
    read, waiting = await asyncio.gather(
        cells.read(snapshot, view, by_store), cells.waiting(snapshot, [view], by_store)
    )
    shown = [_cell_states(view, store, cell) for store in by_store for cell in sorted(read[store][0], key=_order)]
    return CellsResponse(view.name, shown, as_of(snapshot, waiting.total()))


def _order(cell: Cell) -> tuple[int, tuple[str, ...]]:
    return cell.key.window, tuple(value or "" for value in cell.key.dimensions)


def _cell_states(view: View, store: str, cell: Cell) -> CellStates:
    return CellStates(
        store=store,
        window=iso_epoch(cell.key.window),
        dimensions=dict(zip(view.dimensions, cell.key.dimensions, strict=True)),
        batch=None if cell.batch is None else view.present_states(cell.batch),
        speed=None if cell.speed is None else view.present_states(cell.speed),
        merged=view.present_states(cell.merged),
    )
