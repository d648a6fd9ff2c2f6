"""`/`: all stores at a glance, today against the same weekday of the week before."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from typing import Annotated

from fastapi import Query, Response

from master_dataset.registry.stores import Store
from serving_layer.pages.business_day import BusinessDay, opening
from serving_layer.pages.chain import chain_of
from serving_layer.pages.charts import Sparkline, provisional_share, sparkline
from serving_layer.pages.queries import PageQueries, PageQuery, QueryFailure, QueryResult
from serving_layer.pages.routing import ReaderVisit, page_router
from serving_layer.responses.metrics import Point, Series

router = page_router()
PAGE_SIZE = 48
"""Stores per page: one answer can hold twice as many."""
SPARK_DAYS = 14
SALES = "net_sales"
METRICS = (SALES, "traffic_in", "conversion_rate")


@dataclass(frozen=True)
class StoreCard:
    """What is shown of one store.

    `queries`, `points`: by panel; a point is None where there is no answer, and `failure` says why. `share`: of sales
    that are provisional, in percent; None if nothing was sold. `until`: where the comparison ends; None if the day is
    over.
    """

    store: Store
    day: BusinessDay
    queries: Mapping[str, PageQuery]
    points: Mapping[str, Point | None]
    spark: Sparkline
    share: float | None
    failure: QueryFailure | None
    until: str | None


@router.get("/")
async def get_stores(
    visit: ReaderVisit,
    number: Annotated[int, Query(alias="page", ge=1, le=10_000)] = 1,
    search: Annotated[str, Query(alias="q", max_length=100)] = "",
) -> Response:
    """Every store that the visitor can see, a page at a time."""
    fresh = await visit.fresh()
    every = await visit.queries.stores()
    stores = [store for store in every if _matches(store, search)]
    is_first = number == 1 and not search
    chain = await chain_of(visit.queries, every, is_partial=bool(fresh.basis.missing)) if is_first else None
    cards = await _cards(visit.queries, stores[(number - 1) * PAGE_SIZE : number * PAGE_SIZE], fresh.at)
    values = {
        "chain": chain,
        "cards": cards,
        "count": len(stores),
        "number": number,
        "pages": -(-len(stores) // PAGE_SIZE),
        "search": search,
        "is_partial": bool(fresh.basis.missing),
        "today_ends_at": min((card.day.today_ends_at for card in cards), default=None),
        "opening": opening,
    }
    return visit.page("overview.html", fresh, values)


def _matches(store: Store, search: str) -> bool:
    return search.casefold() in f"{store.id} {store.name}".casefold()


async def _cards(queries: PageQueries, stores: Sequence[Store], now: datetime) -> list[StoreCard]:
    """Stores share answers if their days have the same date and their money the same currency."""
    groups: dict[tuple[date, str], list[Store]] = {}
    days = {store.id: BusinessDay.of(store, now) for store in stores}
    for store in stores:
        groups.setdefault((days[store.id].day, store.currency.code), []).append(store)
    is_partial = await queries.is_partial()
    found = await asyncio.gather(
        *(_cards_of_group(queries, group, days, is_partial=is_partial) for group in groups.values())
    )
    cards = {card.store.id: card for group in found for card in group}
    return [cards[store.id] for store in stores]


async def _cards_of_group(
    queries: PageQueries, stores: Sequence[Store], days: Mapping[str, BusinessDay], *, is_partial: bool
) -> list[StoreCard]:
    by_panel = _page_queries(stores, days[stores[0].id], is_partial=is_partial)
    results = dict(zip(by_panel, await queries.answer_all(list(by_panel.values())), strict=True))
    failure = next((result for result in results.values() if isinstance(result, QueryFailure)), None)
    if failure and len(stores) > 1:  # such as a store with money of two currencies: only its own card says so
        alone = [_cards_of_group(queries, [store], days, is_partial=is_partial) for store in stores]
        return [card for cards in await asyncio.gather(*alone) for card in cards]
    return [_card(store, days[store.id], by_panel, results, failure) for store in stores]


def _page_queries(stores: Sequence[Store], day: BusinessDay, *, is_partial: bool) -> dict[str, PageQuery]:
    """By panel: each metric, how it changed (`change:`), and the `hours` of sales."""
    ids = tuple(store.id for store in stores)
    now = {metric: PageQuery(metric, ids, day.start, day.end, "day", partial=is_partial) for metric in METRICS}
    changes = {f"change:{metric}": replace(query, compare="previous_week") for metric, query in now.items()}
    # The number is the last point of the line below it, so one answer updates both.
    line = replace(now[SALES], start=day.back(SPARK_DAYS - 1))
    return {**now, **changes, SALES: line, "hours": replace(now[SALES], grain="hour")}


def _card(
    store: Store,
    day: BusinessDay,
    queries: Mapping[str, PageQuery],
    results: Mapping[str, QueryResult],
    failure: QueryFailure | None,
) -> StoreCard:
    series = {panel: _series(result, store.id) for panel, result in results.items()}
    points = {panel: each.points if each else () for panel, each in series.items()}
    compared = series[f"change:{SALES}"]
    return StoreCard(
        store,
        day,
        queries,
        {panel: each[-1] if each else None for panel, each in points.items()},
        sparkline(points[SALES]),
        provisional_share(points["hours"]),
        failure,
        (compared.compared.until or None) if compared and compared.compared else None,
    )


def _series(result: QueryResult, store: str) -> Series | None:
    return None if isinstance(result, QueryFailure) else next((s for s in result.series if s.store == store), None)
