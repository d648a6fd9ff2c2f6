"""A question about one metric, understood: names looked up, and when it is about in each store's time zone."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from master_dataset.registry.stores import Store
from serving_layer.compare.calendar import ComparisonCalendar, QueryRange
from serving_layer.query.aggregate import Totals, Where
from serving_layer.query.timeline import Grain, Timeline
from serving_layer.responses.metrics import LeftOut
from views.core import View
from views.core.metric import Metric

if TYPE_CHECKING:
    from views.core.formula import Term


class StoreTime(NamedTuple):
    """One store of the question, and its points in its own or the asked time zone; `by` says what they compare with."""

    store: Store
    zone: str
    timeline: Timeline
    at: QueryRange
    by: ComparisonCalendar | None = None


@dataclass(frozen=True)
class ResolvedQuery:
    """`hours_asked`: `hours=open` was asked for. `compare`: as it was asked; None for no comparison.

    `left_out`: the stores that are not comparable; None if comparable ones were not asked for. `only_covered`: only
    windows count in which the sensors were alive. `proofs`: the views that say when they were.
    """

    metric: Metric
    views: tuple[View, ...]
    grain: Grain
    by: tuple[str, ...]
    stores: Sequence[StoreTime]
    hours_asked: bool = False
    compare: str | None = None
    left_out: Sequence[LeftOut] | None = None
    context: tuple[str, ...] = ()
    only_covered: bool = False
    proofs: tuple[View, ...] = ()

    @property
    def is_open(self) -> bool:
        """Whether only windows inside the opening hours count."""
        return self.hours_asked or self.metric.is_open_only

    @property
    def is_in_order(self) -> bool:
        """Whether windows are needed one by one, from the start of the business day."""
        return any(term.is_in_order for term in self.metric.terms.values())

    def totals(self) -> list[Totals]:
        """Empty sums, one of all terms that take the same cells."""
        views = {view.name: view for view in self.views}
        found: dict[tuple[str, Where, bool, bool], list[Term]] = {}
        for term in self.metric.terms.values():
            same = (self.metric.view_of(term), term.where, term.is_total, term.is_in_order)
            found.setdefault(same, []).append(term)
        return [
            Totals(views[name], tuple(terms), () if is_total else self._split(views[name]), where, is_by_window)
            for (name, where, is_total, is_by_window), terms in found.items()
        ]

    def _split(self, view: View) -> tuple[str, ...]:
        return tuple(name for name in self.by if name in view.dimensions)
