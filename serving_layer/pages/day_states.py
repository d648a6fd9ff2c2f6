"""What is known of a view on a store's day: final, provisional, missing, corrected, or not begun."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any, Literal, Self

from master_dataset.errors import GalateaError
from master_dataset.registry.stores import Store
from serving_layer.admin.corrections import Corrections, CorrectionsAsk
from serving_layer.pages.figures import read_at
from serving_layer.pages.opening import periods_of
from serving_layer.query.catalogue import Catalogue
from serving_layer.query.local_time import zone_named
from views.core import View
from views.core.business_days import BusinessDays
from views.core.cut import seconds
from views.core.metric import Metric

State = Literal["final", "provisional", "missing", "corrected", "closed", "later"]
MOST_ROWS = 1000
"""So many lines of a ledger are looked at: a grid shows where to look, the ledger itself says all."""


@dataclass(frozen=True)
class DayStates:
    """`corrected`: (store, window) that the publication changed. `is_readable`: whether its ledger could be read."""

    view: View
    corrected: frozenset[tuple[str, int]]
    is_readable: bool

    @classmethod
    async def read(cls, corrections: Corrections, view: View, publication: int) -> Self:
        """Of what readers had been shown: a cell that was new corrects nothing."""
        if not publication:
            return cls(view, frozenset(), is_readable=True)
        try:
            told, _ = await corrections.page(CorrectionsAsk(publication, view=view.name, limit=MOST_ROWS))
        except GalateaError:  # not written yet, or collected: the grid says that it does not know
            return cls(view, frozenset(), is_readable=False)
        found = {(row.store, _window(row.window)) for row in told.corrections if row.shown is not None}
        return cls(view, frozenset(found), is_readable=not told.pending)

    def of(self, store: Store, day: date, point: Mapping[str, Any], *, has_cells: bool) -> State:
        """`point`: of a metric that rests on the view, of that day."""
        if not has_cells:
            is_closed = bool(store.opening_hours) and not periods_of(store, day)
            return "closed" if is_closed else "missing"
        days = BusinessDays.of(store, zone_named(store.timezone))
        if any(day == days.day_of(window) for of, window in self.corrected if of == store.id):
            return "corrected"
        return "final" if point["final"] else "provisional"


def _window(text: str) -> int:
    at = read_at(text)
    return seconds(at) if at else 0


def metric_of(catalogue: Catalogue, view: View) -> Metric | None:
    """A metric that rests on the view, and on as little else as possible: it says what is final."""
    found = [each for each in catalogue.metrics.values() if view.name in each.views and each.unit != "list"]
    return min(found, key=lambda each: (len(each.views), not each.formula.is_sum, bool(each.grains)), default=None)
