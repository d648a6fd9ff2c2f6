"""One side of a store's answer, now or before: which windows count."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Self

from serving_layer.compare.period import ComparisonPeriod
from serving_layer.query.resolved_query import ResolvedQuery, StoreTime
from serving_layer.query.timeline import Timeline
from views.core.local_time import STEP, Span, open_windows


@dataclass(frozen=True)
class Period:
    """`only`: the windows that count; None for all of the timeline.

    `begun`: where the windows end that are over or running, as far as the answer knows. `over`: those that are over.
    """

    timeline: Timeline
    begun: int
    over: int
    only: frozenset[int] | None = None

    def keeping(self, windows: frozenset[int]) -> Self:
        """Of the windows that count those alone."""
        return replace(self, only=windows if self.only is None else self.only & windows)

    def ended(self) -> Self:
        """The windows that are over: a running one is not yet reported by interval."""
        return replace(self, begun=self.over)

    def holds(self, window: int) -> bool:
        """Whether the window counts."""
        return self.timeline.start <= window < self.timeline.end if self.only is None else window in self.only

    def counts_in(self, window: int) -> bool:
        """Whether the window counts and is over or running."""
        return self.holds(window) and window < self.begun

    def windows(self) -> Iterator[int]:
        """Those that count and are over or running, in order."""
        counted = (window for span in self.timeline.spans for window in range(*span, STEP))
        found = counted if self.only is None else sorted(self.only)
        return (window for window in found if window < self.begun)

    def counts(self, between: Span | None = None) -> dict[int, int]:
        """Per point how many windows count; `between`: that begin there."""
        start, end = between or Span(self.timeline.start, self.timeline.end)
        found: dict[int, int] = {}
        if self.only is None:
            for span, point in zip(self.timeline.spans, self.timeline.points, strict=True):
                found[point] = found.get(point, 0) + max(0, min(span.end, end) - max(span.start, start)) // STEP
            return found
        for window in self.only:
            if start <= window < end:
                point = self.timeline.point_of(window)
                found[point] = found.get(point, 0) + 1
        return found


def side_now(asked: ResolvedQuery, of: StoreTime, until: int, known: Span) -> Period:
    """The windows that were asked for, as far as they lie before `until`. `known`: see `Side`, over until begun."""
    start, end = of.timeline.start, of.timeline.end
    only = open_windows(of.store, start, end) if asked.is_open else None
    if until < end:
        over = frozenset(range(start, until, STEP))
        only = over if only is None else over & only
    return Period(of.timeline, known.end, known.start, only)


def side_before(asked: ResolvedQuery, of: StoreTime, earlier: ComparisonPeriod, known: Span) -> Period:
    """The windows that those are compared with."""
    line = earlier.timeline
    only = open_windows(of.store, line.start, line.end) if asked.is_open else earlier.windows
    return Period(line, known.end, known.start, only & earlier.windows)
