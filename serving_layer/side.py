"""One side of a store's answer, now or before: which windows count, and what was read of them."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from serving_layer.asked import Asked, StoreTime
from serving_layer.basis import Basis
from serving_layer.earlier import Earlier
from serving_layer.local_time import STEP
from serving_layer.merged_cells import MergedCells
from serving_layer.opening_hours import open_windows
from serving_layer.timeline import Timeline
from serving_layer.totals import Totals


@dataclass(frozen=True)
class Side:
    """`only`: the windows that count; None for all of the timeline."""

    timeline: Timeline
    only: frozenset[int] | None = None


@dataclass(frozen=True)
class SideRead:
    """The states of one store, view by view, summed per point."""

    side: Side
    totals: Sequence[Totals]


def side_now(asked: Asked, of: StoreTime, until: int) -> Side:
    """The windows that were asked for, as far as they are over at `until`."""
    start, end = of.timeline.start, of.timeline.end
    only = open_windows(of.store, start, end) if asked.is_open else None
    if until < end:
        over = frozenset(range(start, until, STEP))
        only = over if only is None else over & only
    return Side(of.timeline, only)


def side_before(asked: Asked, of: StoreTime, earlier: Earlier) -> Side:
    """The windows that those are compared with."""
    line = earlier.timeline
    only = open_windows(of.store, line.start, line.end) if asked.is_open else earlier.windows
    return Side(line, only & earlier.windows)


async def read_side(asked: Asked, basis: Basis, cells: MergedCells, of: StoreTime, side: Side) -> SideRead:
    """The cells of the windows that count. DefinitionNotPublished, CellMissing."""
    start, end = side.timeline.start, side.timeline.end
    read = await asyncio.gather(*(cells.read(basis, view, of.store.id, start, end) for view in asked.views))
    totals = [asked.totals(view) for view in asked.views]
    for total, found in zip(totals, read, strict=True):
        total.add(found, side.timeline, side.only)
    return SideRead(side, totals)
