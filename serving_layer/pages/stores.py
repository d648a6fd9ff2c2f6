"""`/stores`: every store of the visitor in a period, sorted by what matters, as a table or as cards."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from typing import Annotated, Literal
from urllib.parse import urlencode

from fastapi import Query, Response
from msgspec import UNSET
from pydantic import Field

from master_dataset.registry.stores import Store
from serving_layer.pages.business_day import BusinessDay, is_closed
from serving_layer.pages.charts import Sparkline, provisional_share, sparkline
from serving_layer.pages.language import gettext_noop
from serving_layer.pages.overview import as_now, code_of_store, over, period_of_chain, until_of, zone_of
from serving_layer.pages.period import PagePeriod, PeriodFilter
from serving_layer.pages.queries import PageQueries, PageQuery, QueryFailure, QueryResult
from serving_layer.pages.routing import ReaderVisit, page_router
from serving_layer.query.resolve import MOST_TOP, Sort
from serving_layer.responses.metrics import Point, Series

router = page_router()
PATH = "/stores"
PAGE_SIZE = 48
"""Stores per page: one answer can hold twice as many."""
SPARK_DAYS = 14
SALES = "net_sales"
METRICS = (SALES, "traffic_in", "conversion_rate")
SORTS: dict[str, tuple[str, Sort, str]] = {
    "sales": (SALES, "-value", gettext_noop("Highest sales")),
    "least": (SALES, "value", gettext_noop("Lowest sales")),
    "rise": (SALES, "-change", gettext_noop("Biggest rise")),
    "fall": (SALES, "change", gettext_noop("Biggest fall")),
    "visitors": ("traffic_in", "-value", gettext_noop("Most visitors")),
    "conversion": ("conversion_rate", "-value", gettext_noop("Highest conversion")),
}
"""Metric, order and title of each way to sort but by name."""
BY_NAME = "name"
TABLE_FROM = 13
"""From so many stores on, a table is easier to read than cards."""


class StoresFilter(PeriodFilter):
    """The query parameters of the page, with those of its period."""

    q: str = Field("", max_length=100)
    group: str = Field("", max_length=200)
    sort: Literal["", "name", "sales", "least", "rise", "fall", "visitors", "conversion"] = ""
    view: Literal["", "table", "cards"] = ""
    page: int = Field(1, ge=1, le=10_000)

    def path(self, **changes: object) -> str:
        """The address of this page with some parameters changed."""
        fields = self.model_dump(mode="json", exclude_defaults=True) | changes
        fields = {name: value for name, value in fields.items() if value not in ("", None)}
        return f"{PATH}?{urlencode(fields)}" if fields else PATH

    @property
    def others(self) -> dict[str, str]:
        """The parameters that stay when another period is chosen."""
        period = set(PeriodFilter.model_fields)
        return self.model_dump(mode="json", exclude=period | {"page"}, exclude_defaults=True)

    def includes(self, store: Store) -> bool:
        """Whether the search and the group let the store through."""
        name, _sign, value = self.group.partition(":")
        is_found = self.q.casefold() in f"{store.id} {store.name}".casefold()
        return is_found and (not self.group or store.current_group(name) == value)


@dataclass(frozen=True)
class StoreLine:
    """What is shown of one store.

    `queries`, `points`, `codes` (of money): by panel; a point is None where there is no answer, and `failure` says why.
    `share`: of sales that are provisional, in percent; None if nothing was sold. `until`: where the comparison ends;
    None if the period is over.
    """

    store: Store
    day: BusinessDay
    queries: Mapping[str, PageQuery]
    points: Mapping[str, Point | None]
    codes: Mapping[str, str]
    spark: Sparkline
    share: float | None
    failure: QueryFailure | None
    until: str | None

    @property
    def is_active(self) -> bool:
        """Whether anything was counted in the period."""
        return any(point is not None and point.value for point in self.points.values())


@router.get(PATH)
async def get_stores(visit: ReaderVisit, asked: Annotated[StoresFilter, Query()]) -> Response:
    """Every store that the visitor can see, a page at a time."""
    fresh = await visit.fresh()
    every = await visit.queries.stores()
    period = period_of_chain(asked, every, fresh)
    found = [store for store in every if asked.includes(store)]
    is_partial = bool(fresh.snapshot.missing)
    stores, is_sorted = await _sorted(visit.queries, asked, period, found, every, is_partial=is_partial)
    pages = max(-(-len(found) // PAGE_SIZE), 1)
    page = min(asked.page, pages)  # there may be fewer stores than when the link was made
    first = (page - 1) * PAGE_SIZE
    lines = await _lines(visit.queries, stores[first : first + PAGE_SIZE], fresh.at, period)
    values = {
        "asked": asked,
        "period": period,
        "lines": lines,
        "count": len(found),
        "page": page,
        "pages": pages,
        "is_table": (asked.view or ("table" if len(found) >= TABLE_FROM else "cards")) == "table",
        "is_sorted": is_sorted,
        "most_sorted": MOST_TOP,
        "sorts": {**{name: title for name, (_m, _s, title) in SORTS.items()}, BY_NAME: gettext_noop("Name")},
        "groups": _groups(every),
        "is_partial": is_partial,
        "unfinished": next((line for line in lines if line.until), lines[0] if lines else None),
        "zone": zone_of(stores),
        "today_ends_at": min((line.day.today_ends_at for line in lines), default=None),
        "is_closed": is_closed,
    }
    return visit.page("stores.html", fresh, values)


def _groups(stores: Sequence[Store]) -> Sequence[tuple[str, str]]:
    """Every group and value that a store is in now."""
    return sorted({pair for store in stores for pair in store.current_groups.items()})


async def _sorted(  # noqa: PLR0913 - what is sorted by what
    queries: PageQueries,
    asked: StoresFilter,
    period: PagePeriod,
    found: Sequence[Store],
    every: Sequence[Store],
    *,
    is_partial: bool,
) -> tuple[Sequence[Store], bool]:
    """The stores in the order that was asked for, those without a value last; and whether they could be sorted."""
    sort = asked.sort or "sales"
    if sort == BY_NAME or not found:
        return found, True
    metric, order, _title = SORTS[sort]
    named = () if len(found) == len(every) else tuple(store.id for store in found)
    query = over(PageQuery(metric, named, grain="total", partial=is_partial), period)
    compare = period.compared_with or "previous_period" if "change" in order else None
    result = await queries.answer(replace(query, sort=order, top=min(len(found), MOST_TOP), compare=compare))
    if isinstance(result, QueryFailure):
        return found, False
    active = [each for each in result.series if each.points and each.points[-1].value]
    rank = {each.store: number for number, each in enumerate(active) if each.store is not UNSET}
    return sorted(found, key=lambda store: rank.get(store.id, len(rank))), True


async def _lines(queries: PageQueries, stores: Sequence[Store], now: datetime, period: PagePeriod) -> list[StoreLine]:
    """Stores share answers if their days have the same date and their money the same currency."""
    groups: dict[tuple[date, str], list[Store]] = {}
    days = {store.id: BusinessDay.of(store, now) for store in stores}
    for store in stores:
        groups.setdefault((days[store.id].day, store.currency.code), []).append(store)
    is_partial = await queries.is_partial()
    found = await asyncio.gather(
        *(_lines_of_group(queries, group, days, period, is_partial=is_partial) for group in groups.values())
    )
    lines = {line.store.id: line for line_group in found for line in line_group}
    return [lines[store.id] for store in stores]


async def _lines_of_group(
    queries: PageQueries,
    stores: Sequence[Store],
    days: Mapping[str, BusinessDay],
    period: PagePeriod,
    *,
    is_partial: bool,
) -> list[StoreLine]:
    by_panel = _page_queries(stores, days[stores[0].id], period, is_partial=is_partial)
    results = dict(zip(by_panel, await queries.answer_all(list(by_panel.values())), strict=True))
    failure = next((result for result in results.values() if isinstance(result, QueryFailure)), None)
    if failure and len(stores) > 1:  # such as a store with money of two currencies: only its own line says so
        alone = [_lines_of_group(queries, [store], days, period, is_partial=is_partial) for store in stores]
        return [line for lines in await asyncio.gather(*alone) for line in lines]
    return [_line(store, days[store.id], by_panel, results, failure) for store in stores]


def _page_queries(
    stores: Sequence[Store], day: BusinessDay, period: PagePeriod, *, is_partial: bool
) -> dict[str, PageQuery]:
    """By panel: each metric, how it changed (`change:`), the `spark` of sales, and the `parts` of their sum."""
    ids = tuple(store.id for store in stores)
    totals = {metric: over(PageQuery(metric, ids, grain="total", partial=is_partial), period) for metric in METRICS}
    now = {metric: as_now(query, period) for metric, query in totals.items()}
    compared = period.compared_with
    changes = {f"change:{metric}": replace(query, compare=compared) for metric, query in totals.items()}
    spark = PageQuery(SALES, ids, day.back(SPARK_DAYS - 1), day.end, "day", partial=is_partial)
    return {**now, **changes, "spark": spark, "parts": replace(totals[SALES], grain=period.grain)}


def _line(
    store: Store,
    day: BusinessDay,
    queries: Mapping[str, PageQuery],
    results: Mapping[str, QueryResult],
    failure: QueryFailure | None,
) -> StoreLine:
    series = {panel: _series(result, store.id) for panel, result in results.items()}
    points = {panel: each.points if each else () for panel, each in series.items()}
    return StoreLine(
        store,
        day,
        queries,
        {panel: each[-1] if each else None for panel, each in points.items() if panel not in ("spark", "parts")},
        {panel: code_of_store(result, store) for panel, result in results.items()},
        sparkline(points["spark"]),
        provisional_share(points["parts"]),
        failure,
        until_of(series[f"change:{SALES}"]),
    )


def _series(result: QueryResult, store: str) -> Series | None:
    return None if isinstance(result, QueryFailure) else next((s for s in result.series if s.store == store), None)
