"""What is known of a view on a store's day: final, provisional, missing, corrected, or not begun.

`/views`: which days of which stores are final, provisional, missing or corrected, for one view.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Annotated, Any, Literal, NamedTuple, Self

from fastapi import Query, Response

from master_dataset.errors import GalateaError, UnknownNameError
from master_dataset.registry.stores import Store
from serving_layer.admin.corrections import CorrectionsRequest, CorrectionsService
from serving_layer.health.freshness import FreshnessReport
from serving_layer.pages.business_day import BusinessDay, periods_of
from serving_layer.pages.figures import read_at
from serving_layer.pages.queries import PageAnswers, Question, Refused
from serving_layer.pages.routing import ReaderVisit, routes
from serving_layer.query.catalogue import Catalogue
from serving_layer.query.timeline import iso_instant, zone_named
from views.core import View
from views.core.cut import seconds
from views.core.local_time import BusinessDays
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
    async def read(cls, corrections: CorrectionsService, view: View, publication: int) -> Self:
        """Of what readers had been shown: a cell that was new corrects nothing."""
        if not publication:
            return cls(view, frozenset(), is_readable=True)
        try:
            told, _ = await corrections.page(CorrectionsRequest(publication, view=view.name, limit=MOST_ROWS))
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


router = routes()
DAYS, STORES = 14, 24
DAY = timedelta(days=1)


class Grid(NamedTuple):
    """`days`, newest first; per store the state of each."""

    days: Sequence[date]
    rows: Sequence[tuple[Store, Sequence[State]]]
    refused: Refused | None
    question: Question | None


@router.get("/views")
async def get_views(
    visit: ReaderVisit,
    view: Annotated[str, Query(max_length=256)] = "sales",
    last: Annotated[date | None, Query()] = None,
    number: Annotated[int, Query(alias="page", ge=1, le=10_000)] = 1,
) -> Response:
    """A grid of two weeks."""
    catalogue = visit.answers.all.catalogue
    if view not in catalogue.views:
        raise UnknownNameError("view", view, catalogue.views)
    fresh = await visit.fresh()
    stores = await visit.answers.stores()
    shown = stores[(number - 1) * STORES : number * STORES]
    today = _today(shown, fresh.at)
    ends = last or today
    corrections, publication = visit.operations.corrections, fresh.basis.pointer.publication
    states = await DayStates.read(corrections, catalogue.views[view], publication)
    grid = await _grid(visit.answers, shown, ends, states, fresh)
    said = {
        "view": states.view,
        "views": sorted(catalogue.views),
        "grid": grid,
        "last": ends,
        "earlier": ends - DAYS * DAY,
        "later": min(ends + DAYS * DAY, today) if ends < today else None,
        "number": number,
        "pages": -(-len(stores) // STORES),
        "metric": metric_of(catalogue, states.view),
        "is_readable": states.is_readable,
    }
    return visit.page("views.html", fresh, said)


def _today(stores: Sequence[Store], now: datetime) -> date:
    return max((BusinessDay.of(store, now).today for store in stores), default=now.date())


async def _grid(
    answers: PageAnswers, stores: Sequence[Store], last: date, states: DayStates, fresh: FreshnessReport
) -> Grid:
    days = [last - DAY * number for number in range(DAYS)]
    metric = metric_of(answers.all.catalogue, states.view)
    if not stores or metric is None:
        return Grid(days, [], None, None)
    asked = Question(
        metric.id,
        tuple(store.id for store in stores),
        days[-1].isoformat(),
        (last + DAY).isoformat(),
        "day",
        by=("currency",) if metric.is_of_money else (),
        partial=bool(fresh.basis.missing),
    )
    told = await answers.tried(asked)
    if isinstance(told, Refused):
        return Grid(days, [], told, asked)
    row = Row(answers, states, asked.partial, iso_instant(fresh.at) or "")
    rows = await asyncio.gather(*(row.of(store, days, told["series"]) for store in stores))
    return Grid(days, list(zip(stores, rows, strict=True)), None, asked)


class Row(NamedTuple):
    """Makes one column of the grid: a store's days, newest first. `now`: as in answers."""

    answers: PageAnswers
    states: DayStates
    is_partial: bool
    now: str

    async def of(self, store: Store, days: Sequence[date], series: Iterable[Mapping[str, Any]]) -> Sequence[State]:
        """`series`: of all stores; of several currencies any says what is final. Points come oldest first."""
        points = next((each["points"] for each in series if each["store"] == store.id), ())
        found = dict(zip(reversed(days), points, strict=True)) if points else {}
        return await asyncio.gather(*(self._one(store, day, found.get(day)) for day in days))

    async def _one(self, store: Store, day: date, point: Mapping[str, Any] | None) -> State:
        if point is None:
            return "missing"
        if point["start"] > self.now:
            return "later"
        has_cells = bool(point["value"])
        if not has_cells:  # a zero may have been counted
            ask = (day.isoformat(), (day + DAY).isoformat())
            has_cells = await self.answers.has_cells(self.states.view, store, ask, partial=self.is_partial)
        return self.states.of(store, day, point, has_cells=has_cells)
