"""The cells of a view with each layer's states: what a number is made of."""

import asyncio
from collections.abc import Sequence

from serving_layer.query.snapshot import ReadSnapshot, as_of
from serving_layer.query.timeline import iso_epoch
from serving_layer.responses.metrics import CellsResponse, CellStates
from serving_layer.store.cells import MergedCells
from views.core import View
from views.core.merge import Cell


async def answer(
    view: View, spans: Sequence[tuple[str, int, int]], basis: ReadSnapshot, cells: MergedCells
) -> CellsResponse:
    """`spans`: per store the first window and where the last one ends. States are whole: money in minor units."""
    read = await asyncio.gather(*(cells.read(basis, view, *span) for span in spans))
    waiting = await asyncio.gather(*(cells.waiting(basis, [view], *span) for span in spans))
    shown = [
        _shown(view, store, cell)
        for (store, _, _), found in zip(spans, read, strict=True)
        for cell in sorted(found, key=_order)
    ]
    return CellsResponse(view.name, shown, as_of(basis, sum(waiting)))


def _order(cell: Cell) -> tuple[int, tuple[str, ...]]:
    return cell.key.window, tuple(value or "" for value in cell.key.dimensions)


def _shown(view: View, store: str, cell: Cell) -> CellStates:
    return CellStates(
        store=store,
        window=iso_epoch(cell.key.window),
        dimensions=dict(zip(view.dimensions, cell.key.dimensions, strict=True)),
        batch=None if cell.batch is None else view.present_states(cell.batch),
        speed=None if cell.speed is None else view.present_states(cell.speed),
        merged=view.present_states(cell.merged),
    )
