"""What was read of one side of a store's answer: states summed per point, and how long its sensors were alive."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from master_dataset.registry.stores import Store
from master_dataset.sources.pos_transactions import POS_TRANSACTIONS
from serving_layer.query.aggregate import Totals
from serving_layer.query.event_flags import event_flags
from serving_layer.query.period import Period
from serving_layer.query.resolved_query import ResolvedQuery, StoreTime
from serving_layer.query.sensor_coverage import SensorCoverage, sensed
from serving_layer.query.snapshot import ReadSnapshot
from serving_layer.store.cells import MergedCells
from views.core.local_time import STEP, Span


@dataclass(frozen=True)
class SideRead:
    """The states of one store, view by view, summed per point. `odd`: how many of its events carry each flag."""

    side: Period
    totals: Sequence[Totals]
    sensors: SensorCoverage
    odd: Counter[str]

    def has_sources(self, store: Store) -> bool:
        """Whether the store has the source of every view: a till always, a registered sensor, or any cell in the range.

        Without one nothing is known: a sum is no zero then, and neither is a part of a whole.
        """
        registered = {each.source for each in store.sensors} | {POS_TRANSACTIONS.topic}
        return all(each.has_cells or each.view.source.topic in registered for each in self.totals)


async def read_side(
    asked: ResolvedQuery, basis: ReadSnapshot, cells: MergedCells, of: StoreTime, side: Period
) -> SideRead:
    """The cells of the windows that count. DefinitionNotPublishedError, CellMissingError."""
    start, end = span = span_read(asked, of, side)
    views = {view.name: view for view in (*asked.views, *asked.proofs)}
    found = await asyncio.gather(*(cells.read(basis, view, of.store.id, *span) for view in views.values()))
    read = dict(zip(views, found, strict=True))
    sensors = SensorCoverage(of.store, sensed(asked.views), read, asked.proofs)
    if asked.only_covered and sensed(asked.views):
        side = side.keeping(sensors.covered(side))
    reaches_beyond = (start, end) != (side.timeline.start, side.timeline.end)
    asked_for = frozenset(range(side.timeline.start, side.timeline.end, STEP)) if reaches_beyond else None
    totals = asked.totals()
    for total in totals:
        if total.is_by_window:
            total.add(read[total.view.name], int, None)
        else:
            total.add(read[total.view.name], side.timeline.point_of, asked_for if side.only is None else side.only)
    odd = (event_flags(of.store, view, read[view.name], side.holds) for view in asked.views)
    return SideRead(side, totals, sensors, sum(odd, Counter()))


def span_read(asked: ResolvedQuery, of: StoreTime, side: Period) -> Span:
    """The windows that are read: those asked for, or whole business days if what was before in the day matters."""
    asked_for = Span(side.timeline.start, side.timeline.end)
    return of.at.days.whole(asked_for) if asked.is_in_order else asked_for
