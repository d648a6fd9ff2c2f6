"""What an answer holds of one store: its points, and what they are compared with."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from serving_layer.compare.period import ComparisonPeriod, comparison_period
from serving_layer.query.aggregate import Totals, series_of
from serving_layer.query.period import side_before, side_now
from serving_layer.query.period_data import SideRead, read_side, span_read
from serving_layer.query.resolved_query import ResolvedQuery, StoreTime
from serving_layer.query.snapshot import ReadSnapshot
from serving_layer.store.cells import MergedCells
from views.core.cut import seconds
from views.core.local_time import Span, round_down, round_up


@dataclass(frozen=True)
class StorePart:
    """`until`: where the windows end that count; that of the question unless its period is unfinished.

    `earlier` and `before` are None if nothing is compared, or nothing has a counterpart.
    """

    asked: StoreTime
    until: int
    now: SideRead
    earlier: ComparisonPeriod | None
    before: SideRead | None
    waiting: int

    @property
    def is_partial(self) -> bool:
        """Whether the period is unfinished, so that both sides stop where it is known."""
        return self.until < self.asked.timeline.end

    @property
    def sensor_time(self) -> Fraction | None:
        """The lesser part of sensor time that was covered on either side; None if no sensor is registered."""
        sides = [self.now, *([self.before] if self.before else [])]
        return min((share for each in sides if (share := each.sensors.share(each.side)) is not None), default=None)

    @property
    def totals(self) -> Sequence[Totals]:
        """Of both sides."""
        return (*self.now.totals, *(self.before.totals if self.before else ()))

    def series(self, by: Sequence[str]) -> list[dict[str, str | None]]:
        """The dimensions of every series: also of those that only one side has."""
        return series_of(self.totals, by)


async def read_part(asked: ResolvedQuery, basis: ReadSnapshot, cells: MergedCells, of: StoreTime) -> StorePart:
    """Both sides of a store. DefinitionNotPublishedError, CellMissingError."""
    start, end = of.timeline.start, of.timeline.end
    until = end if of.by is None else min(end, round_down(seconds(basis.as_of_at)))
    there = None
    if of.by is not None and start < until:
        there = comparison_period(of.at._replace(span=Span(start, until)), of.timeline, of.by)
    as_of = seconds(basis.as_of_at)
    known = Span(round_down(as_of), round_up(as_of))
    sides = [side_now(asked, of, until, known), *([side_before(asked, of, there, known)] if there else [])]
    spans = _apart([span_read(asked, of, side) for side in sides])
    waiting, (now, *before) = await asyncio.gather(
        asyncio.gather(*(cells.waiting(basis, asked.views, of.store.id, *span) for span in spans)),
        asyncio.gather(*(read_side(asked, basis, cells, of, side) for side in sides)),
    )
    return StorePart(of, until, now, there, before[0] if before else None, sum(waiting))


def _apart(spans: Sequence[Span]) -> list[Span]:
    """The same windows in spans that do not overlap, so that nothing waits twice."""
    apart: list[Span] = []
    for span in sorted(spans):
        if apart and span.start < apart[-1].end:
            apart[-1] = Span(apart[-1].start, max(apart[-1].end, span.end))
        else:
            apart.append(span)
    return apart
