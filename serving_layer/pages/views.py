"""`/views`: which days of which stores are final, provisional, missing or corrected, for one view.

A day is missing only if there should be data: the store was open, has the source, and had data in the weeks before.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Annotated, Literal, NamedTuple, Self

from fastapi import Query, Response

from master_dataset.errors import GalateaError, UnknownNameError
from master_dataset.registry.stores import Store
from serving_layer.admin.corrections import CorrectionsRequest, CorrectionsService
from serving_layer.health.freshness import FreshnessReport
from serving_layer.pages.business_day import BusinessDay, open_periods, require_kept
from serving_layer.pages.cells import source_name, view_name
from serving_layer.pages.figures import instant
from serving_layer.pages.language import gettext_noop
from serving_layer.pages.pickers import stores_with_cells
from serving_layer.pages.queries import PageQueries, PageQuery, QueryFailure
from serving_layer.pages.routing import ReaderVisit, page_router
from serving_layer.query.catalogue import Catalogue
from serving_layer.responses.encoding import iso_instant
from serving_layer.responses.metrics import Point, Series
from serving_layer.timeline import zone_named
from views.core import View
from views.core.cut import seconds
from views.core.local_time import ONE_DAY, BusinessDays
from views.core.metric import Metric

router = page_router()
DAYS, STORES = 14, 24
"""Of one grid."""
MAX_CORRECTIONS = 1000
"""How many lines of the ledger are read: the grid shows where to look, the ledger itself says everything."""

DayState = Literal["final", "provisional", "missing", "corrected", "closed", "later", "no source", "not begun"]
"""`not begun`: no data yet, neither on that day nor in the weeks before."""
STATE_TEXTS: Mapping[DayState, str] = {
    "final": gettext_noop("final"),
    "provisional": gettext_noop("provisional"),
    "corrected": gettext_noop("corrected"),
    "missing": gettext_noop("missing"),
    "closed": gettext_noop("closed"),
    "no source": gettext_noop("no sensor"),
    "not begun": gettext_noop("no data yet"),
    "later": gettext_noop("not started"),
}


class Grid(NamedTuple):
    """`days`, newest first; for each store the states of its days. `failure`: why there are no rows."""

    days: Sequence[date]
    rows: Sequence[tuple[Store, Sequence[DayState]]]
    failure: QueryFailure | None
    query: PageQuery | None


@router.get("/views")
async def get_views(
    visit: ReaderVisit,
    view: Annotated[str, Query(max_length=256)] = "sales",
    last: Annotated[date | None, Query()] = None,
    number: Annotated[int, Query(alias="page", ge=1, le=10_000)] = 1,
) -> Response:
    """A grid of two weeks."""
    require_kept("last", last)
    catalogue = visit.queries.service.catalogue
    if view not in catalogue.views:
        raise UnknownNameError("view", view, catalogue.views)
    fresh = await visit.fresh()
    stores = await visit.queries.stores()
    shown = stores[(number - 1) * STORES : number * STORES]
    today = _today(shown, fresh.at)
    ends = last or today
    corrections, publication = visit.operations.corrections, fresh.snapshot.pointer.publication
    corrected = await CorrectedDays.read(corrections, catalogue.views[view], publication)
    values = {
        "view": corrected.view,
        "views": view_groups(catalogue),
        "view_name": view_name,
        "state_texts": STATE_TEXTS,
        "grid": await _grid(visit.queries, shown, ends, corrected, fresh),
        "last": ends,
        "earlier": ends - DAYS * ONE_DAY,
        "later": min(ends + DAYS * ONE_DAY, today) if ends < today else None,
        "number": number,
        "pages": -(-len(stores) // STORES),
        "metric": finality_metric(catalogue, corrected.view),
        "is_readable": corrected.is_readable,
    }
    return visit.page("views.html", fresh, values)


def view_groups(catalogue: Catalogue) -> Sequence[tuple[str, Sequence[tuple[str, str]]]]:
    """The views with what they are about, by source in words: name, and the question that it answers."""
    groups: dict[str, list[tuple[str, str]]] = {}
    for view in catalogue.views.values():
        question = view.question.partition("?")[0]
        groups.setdefault(source_name(view.source.topic), []).append(
            (view.name, f"{view_name(view.name)}: {question}?")
        )
    return sorted((name, sorted(views, key=lambda each: each[1])) for name, views in groups.items())


def _today(stores: Sequence[Store], now: datetime) -> date:
    return max((BusinessDay.of(store, now).today for store in stores), default=now.date())


@dataclass(frozen=True)
class CorrectedDays:
    """`windows`: (store, window) that the publication corrected. `is_readable`: whether its ledger could be read."""

    view: View
    windows: frozenset[tuple[str, int]]
    is_readable: bool

    @classmethod
    async def read(cls, corrections: CorrectionsService, view: View, publication: int) -> Self:
        """Of cells that readers had seen before: a new cell corrects nothing."""
        if not publication:
            return cls(view, frozenset(), is_readable=True)
        try:
            page, _ = await corrections.page(CorrectionsRequest(publication, view=view.name, limit=MAX_CORRECTIONS))
        except GalateaError:  # not written yet, or deleted: the grid says that it does not know
            return cls(view, frozenset(), is_readable=False)
        windows = {(row.store, _window(row.window)) for row in page.corrections if row.shown is not None}
        return cls(view, frozenset(windows), is_readable=not page.pending)

    def has(self, store: Store, day: date) -> bool:
        """Whether a window of that business day was corrected."""
        days = BusinessDays.of(store, zone_named(store.timezone))
        return any(day == days.day_of(window) for id_, window in self.windows if id_ == store.id)


def _window(text: str) -> int:
    at = instant(text)
    return seconds(at) if at else 0


async def _grid(
    queries: PageQueries, stores: Sequence[Store], last: date, corrected: CorrectedDays, fresh: FreshnessReport
) -> Grid:
    days = [last - ONE_DAY * number for number in range(DAYS)]
    metric = finality_metric(queries.service.catalogue, corrected.view)
    if not stores or metric is None:
        return Grid(days, [], None, None)
    query = PageQuery(
        metric.id,
        tuple(store.id for store in stores),
        days[-1].isoformat(),
        (last + ONE_DAY).isoformat(),
        "day",
        by=("currency",) if metric.is_of_money else (),
        partial=bool(fresh.snapshot.missing),
    )
    result = await queries.answer(query)
    if isinstance(result, QueryFailure):
        return Grid(days, [], result, query)
    begun = await stores_with_cells(queries.service, fresh, corrected.view, days[-1])
    states = DayStates(queries, corrected, query.partial, fresh.at, begun)
    rows = await asyncio.gather(*(states.of(store, days, result.series) for store in stores))
    return Grid(days, list(zip(stores, rows, strict=True)), None, query)


@dataclass(frozen=True)
class DayStates:
    """Tells the states of a store's days. `begun`: the stores that had data in the weeks before these days."""

    queries: PageQueries
    corrected: CorrectedDays
    is_partial: bool
    now: datetime
    begun: frozenset[str]

    async def of(self, store: Store, days: Sequence[date], series: Sequence[Series]) -> Sequence[DayState]:
        """The states of these days, newest first, from the series of all stores, whose points come oldest first.

        If a store has series of several currencies, each of them says what is final.
        """
        points: Sequence[Point] = next((each.points for each in series if each.store == store.id), ())
        by_day = dict(zip(reversed(days), points, strict=True)) if points else {}
        found = await asyncio.gather(*(self._state(store, day, by_day.get(day)) for day in days))
        return self._explained(store, days, found, {day: point for day, point in by_day.items() if point.flags})

    async def _state(self, store: Store, day: date, point: Point | None) -> DayState | None:
        """The state of a day; None if it has no cell."""
        if point is None:
            return None
        if point.start > iso_instant(self.now):
            return "later"
        if not point.value and not await self._has_cells(store, day):  # a zero may have been counted
            return None
        if self.corrected.has(store, day):
            return "corrected"
        return "final" if point.final else "provisional"

    def _explained(
        self, store: Store, days: Sequence[date], found: Sequence[DayState | None], flagged: Mapping[date, Point]
    ) -> Sequence[DayState]:
        """The states with why days have no cells. A day is missing if it should have some."""
        today = BusinessDay.of(store, self.now).today
        has_begun, explained = store.id in self.begun, list[DayState]()
        for day, state in zip(reversed(days), reversed(found), strict=True):
            if state in ("final", "provisional", "corrected"):
                has_begun = True
            if state is not None:
                explained.append(state)
            elif store.opening_hours and not open_periods(store, day):
                explained.append("closed")
            elif day in flagged and "no_source" in (flagged[day].flags or ()) and not has_begun:
                explained.append("no source")
            elif not has_begun:
                explained.append("not begun")
            else:
                explained.append("later" if day >= today else "missing")
        return explained[::-1]

    async def _has_cells(self, store: Store, day: date) -> bool:
        span = (day.isoformat(), (day + ONE_DAY).isoformat())
        return await self.queries.has_cells(self.corrected.view, store, span, partial=self.is_partial)


def finality_metric(catalogue: Catalogue, view: View) -> Metric | None:
    """The metric that says what is final in a view: one that uses the view, and as little else as possible."""
    metrics = [each for each in catalogue.metrics.values() if view.name in each.views and each.unit != "list"]
    return min(metrics, key=lambda each: (len(each.views), not each.formula.is_sum, bool(each.grains)), default=None)
