"""A question about one metric, understood: names looked up, and when it is about in each store's time zone."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from master_dataset.stores import Store
from serving_layer.comparable_stores import LeftOut
from serving_layer.comparison import AskedTime
from serving_layer.counterparts import Counterparts
from serving_layer.timeline import Grain, Timeline
from serving_layer.totals import Totals
from views.core import View
from views.core.metric import Metric


class StoreTime(NamedTuple):
    """One store of the question, and its points in its own or the asked time zone; `by` says what they compare with."""

    store: Store
    zone: str
    timeline: Timeline
    at: AskedTime
    by: Counterparts | None = None


@dataclass(frozen=True)
class Asked:
    """`hours_asked`: `hours=open` was asked for. `compare`: as it was asked; None for no comparison.

    `left_out`: the stores that are not comparable; None if comparable ones were not asked for.
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

    @property
    def is_open(self) -> bool:
        """Whether only windows inside the opening hours count."""
        return self.hours_asked or self.metric.is_open_only

    def totals(self, view: View) -> Totals:
        """An empty sum of the states that this view has to give."""
        columns = tuple(dict.fromkeys(state for name, state in self.metric.states.values() if name == view.name))
        return Totals(view, columns, tuple(name for name in self.by if name in view.dimensions))
