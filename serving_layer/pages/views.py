"""`/views`: which days of which stores are final, provisional, missing or corrected, for one view."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime, timedelta
from typing import Annotated, Any, NamedTuple

from fastapi import Query, Response

from master_dataset.errors import UnknownName
from master_dataset.registry.stores import Store
from serving_layer.health.freshness import Fresh
from serving_layer.pages.business_day import BusinessDay
from serving_layer.pages.day_states import DayStates, State, metric_of
from serving_layer.pages.page_answers import PageAnswers, Refused
from serving_layer.pages.page_route import routes
from serving_layer.pages.question import Question
from serving_layer.pages.visit import ReaderVisit
from serving_layer.query.timestamps import stamp

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
        raise UnknownName("view", view, catalogue.views)
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


async def _grid(answers: PageAnswers, stores: Sequence[Store], last: date, states: DayStates, fresh: Fresh) -> Grid:
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
    row = Row(answers, states, asked.partial, stamp(fresh.at) or "")
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
