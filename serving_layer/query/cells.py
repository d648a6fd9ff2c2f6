"""Cells of a view with the states of each layer: what a number is made of."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from serving_layer.off_loop import CELLS_PER_POINT, off_loop
from serving_layer.query.answer import (
    FIRST_TOGETHER,
    LongAnswerSlot,
    Together,
    long_answer_slot,
    refuse_long,
    windows_weighed,
)
from serving_layer.query.ranges import RangeName
from serving_layer.responses.encoding import encode, encoded, iso_epoch
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
    view: View, spans: Mapping[str, Span], snapshot: ReadSnapshot, cells: MergedCells, slot: LongAnswerSlot
) -> bytes:
    """The cells of some stores.

    Args:
        view: whose cells.
        spans: per store, of windows.
        snapshot: the state of both layers that is read.
        cells: the merged cells of both layers.
        slot: is held while a long answer is made.

    Returns:
        The JSON of a CellsResponse. States are as they are stored: whole numbers, money in minor units.

    Raises:
        DefinitionNotPublishedError, CellMissingError, CassandraUnavailableError: as for any answer.
        RangeTooLongError: it is longer than `MOST_BYTES`.
    """
    by_store = {store: [span] for store, span in spans.items()}
    async with long_answer_slot(windows_weighed([view], spans.values()), slot):
        waiting = await cells.waiting(snapshot, [view], by_store)
        together, shown = Together(list(by_store), FIRST_TOGETHER), list[bytes]()
        for some in together:
            read = await cells.read(snapshot, view, {store: by_store[store] for store in some})
            found = {store: read[store][0] for store in some}
            total = together.note(list(map(len, found.values())))
            shown += await off_loop(CELLS_PER_POINT * total, partial(_encoded, view, found, sum(map(len, shown))))
    joined = encoded(b"[" + b",".join(shown) + b"]", list[CellStates])
    return encode(CellsResponse(view.name, joined, as_of(snapshot, sum(each.number for each in waiting.values()))))


def _encoded(view: View, cells: Mapping[str, Sequence[Cell]], length: int) -> list[bytes]:
    """Each cell as JSON, by store. RangeTooLongError if it is too much beside so many bytes that there are already."""
    shown = []
    for store, own in cells.items():
        for cell in sorted(own, key=_order):
            shown.append(encode(_cell_states(view, store, cell)))
            length += len(shown[-1])
            refuse_long(length, "Use a shorter range, or fewer stores.")
    return shown


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
