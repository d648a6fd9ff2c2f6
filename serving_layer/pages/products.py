"""`/products`: what sold best in a period, by product and category, how it developed, what is bought together."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, NamedTuple
from urllib.parse import urlencode

from fastapi import Query, Response
from msgspec import UNSET
from pydantic import Field

from master_dataset.registry.products_file import MOST_LEVELS
from serving_layer.pages.charts import Sparkline, sparkline
from serving_layer.pages.language import gettext as _
from serving_layer.pages.overview import (
    as_now,
    bar_widths,
    changes_of,
    code_of,
    over,
    period_of_chain,
    series_key,
    until_of,
    zone_of,
)
from serving_layer.pages.period import PagePeriod, PeriodFilter
from serving_layer.pages.pickers import names_of, store_named
from serving_layer.pages.queries import PageQuery, QueryFailure, QueryResult
from serving_layer.pages.routing import ReaderVisit, Visit, page_router
from serving_layer.products.dimensions import CATEGORY, SKU
from serving_layer.responses.metrics import Point, Series

router = page_router()
PATH = "/products"
TOP, CATEGORIES, PAIRS = 20, 12, 10
"""Rows of the tables."""
SPARK_DAYS = 28
SALES, UNITS, PAIR = "sku_net_sales", "sku_units", "pair_receipts"
WITH_SKU = "with_sku"


class ProductsFilter(PeriodFilter):
    """The query parameters of the page, with those of its period. Empty fields do not filter."""

    store: str = Field("", max_length=256)
    category: str = Field("", max_length=2000)

    @property
    def others(self) -> dict[str, str]:
        """The parameters that stay when another period is chosen."""
        return self.model_dump(mode="json", exclude=set(PeriodFilter.model_fields), exclude_defaults=True)

    def path(self, **changes: str) -> str:
        """The address of this page with some parameters changed."""
        fields = self.model_dump(mode="json", exclude_defaults=True) | changes
        fields = {name: value for name, value in fields.items() if value}
        return f"{PATH}?{urlencode(fields)}" if fields else PATH


class ProductRow(NamedTuple):
    """A product or a category.

    Attributes:
        name: as people call it.
        sku: empty for a category.
        path: of a category; empty for a product, and for all that have none.
        detail: the whole path of its category; empty if it has none.
        currency: of its sales.
        point: its sales in the period.
        change: the same, with what it is compared with; None if it is not known.
        width: of its bar, in percent of the greatest value.
        units: how many were sold; None if that was not asked for.
        spark: how its sales developed; likewise.
    """

    name: str
    sku: str
    path: str
    detail: str
    currency: str
    point: Point
    change: Point | None
    width: float
    units: Point | None = None
    spark: Sparkline | None = None


class Pair(NamedTuple):
    """Two products that are on the same receipts."""

    one: str
    other: str
    point: Point


@dataclass(frozen=True)
class Level:
    """A level of the category that is shown. `name`: of its last part."""

    name: str
    path: str


@router.get(PATH)
async def get_products(visit: ReaderVisit, asked: Annotated[ProductsFilter, Query()]) -> Response:
    """The products of all stores of the visitor, or of one."""
    fresh = await visit.fresh()
    every = await visit.queries.stores()
    named = [await visit.queries.store(store_named(asked.store, every))] if asked.store else []
    period = period_of_chain(asked, named or every, fresh)
    is_partial = bool(fresh.snapshot.missing)
    path = [part for part in asked.category.split("/") if part]
    base = PageQuery(
        SALES,
        tuple(store.id for store in named),
        grain="total",
        by=("total", SKU),
        partial=is_partial,
        category=("/".join(path),) if path else (),
    )
    top = as_now(replace(over(base, period), sort="-value", top=TOP, share=True), period)
    wanted = {"top": top}
    if len(path) < MOST_LEVELS:
        level = f"{CATEGORY}:{len(path) + 1}" if path else CATEGORY
        wanted["categories"] = replace(top, by=("total", level), top=CATEGORIES)
    pairs = replace(over(replace(base, metric=PAIR), period), by=("total", SKU, WITH_SKU), sort="-value", top=PAIRS)
    wanted["pairs"] = replace(pairs, category=())
    answered = dict(zip(wanted.values(), await visit.queries.answer_all(list(wanted.values())), strict=True))
    compared = {
        f"change:{name}": change_query(query, answered[query], period)
        for name, query in wanted.items()
        if name != "pairs"
    }
    more = [query for query in compared.values() if query not in answered]
    answered |= dict(zip(more, await visit.queries.answer_all(more), strict=True))
    results = {name: answered[query] for name, query in (wanted | compared).items()}
    rows, paired = product_rows(results["top"], results["change:top"]), _paired(results["pairs"])
    units, lines, titles = await _details(visit, base, wanted["top"], rows, paired)
    values = {
        "asked": asked,
        "period": period,
        "stores": every,
        "names": names_of(every),
        "store": named[0] if named else None,
        "levels": [Level(part, "/".join(path[: number + 1])) for number, part in enumerate(path)],
        "query": wanted["top"],
        "failure": results["top"] if isinstance(results["top"], QueryFailure) else None,
        "products": [
            row._replace(units=units.get((row.sku, row.currency)), spark=lines.get((row.sku, row.currency)))
            for row in rows
        ],
        "categories": product_rows(results["categories"], results["change:categories"])
        if "categories" in results
        else (),
        "pairs": [_pair(each, titles) for each in paired],
        "is_partial": is_partial,
        "compared": compared["change:top"],
        "until": next((until_of(each) for each in _series(results["change:top"])), None),
        "zone": zone_of(named or every),
    }
    return visit.page("products.html", fresh, values)


def change_query(ranking: PageQuery, result: QueryResult, period: PagePeriod) -> PageQuery:
    """What says how the rows of a ranking of products or categories changed.

    Of today these are exactly the products that it shows: among the numbers up to the last full quarter of an hour, by
    which it is compared, others may lead. See `as_now`.
    """
    compared = replace(ranking, compare=period.compared_with)
    if compared == ranking or isinstance(result, QueryFailure):
        return compared
    shown = [each for each in result.series if each.other is UNSET]
    if SKU in ranking.by:
        skus = tuple(sorted({sku for each in shown if (sku := each.dimensions.get(SKU))}))
        return replace(compared, sku=skus, sort=None, top=None, share=False) if skus else compared
    if len(shown) == len(result.series):  # no category is left out
        return replace(compared, sort=None, top=None, share=False)
    categories = tuple(sorted({path for each in shown if (path := _value(each))}))
    return replace(compared, category=categories or ranking.category, sort=None, top=None, share=False)


class Details(NamedTuple):
    """`units`, and `lines` how sales developed: by SKU and currency. `titles`: of products in pairs, by SKU."""

    units: Mapping[tuple[str, str], Point]
    lines: Mapping[tuple[str, str], Sparkline]
    titles: Mapping[str, str]


async def _details(
    visit: Visit, base: PageQuery, top: PageQuery, rows: Sequence[ProductRow], paired: Sequence[Series]
) -> Details:
    """More about the products that are shown. `paired`: an answer names the first of two products only."""
    skus = tuple(sorted({row.sku for row in rows if row.sku}))
    both = tuple(sorted({sku for each in paired for name in (SKU, WITH_SKU) if (sku := each.dimensions.get(name))}))
    units = replace(top, metric=UNITS, by=(*base.by, "currency"), sort=None, top=None, share=False, compare=None)
    line = replace(base, sku=skus, grain="day", start=f"-{SPARK_DAYS - 1}d")
    wanted = [replace(units, sku=skus), line] if skus else []
    wanted += [replace(units, sku=both, category=())] if both else []
    results = list(await visit.queries.answer_all(wanted))
    sold, sales = results[:2] if skus else (None, None)
    named = results[-1] if both else None
    return Details(
        {key: points[-1] for key, points in _by_sku(sold).items()},
        {key: sparkline(points) for key, points in _by_sku(sales).items()},
        {each.dimensions.get(SKU) or "": each.title for each in _series(named) if isinstance(each.title, str)},
    )


def _series(result: QueryResult | None) -> Sequence[Series]:
    return () if result is None or isinstance(result, QueryFailure) else result.series


def _by_sku(result: QueryResult | None) -> Mapping[tuple[str, str], Sequence[Point]]:
    if result is None or isinstance(result, QueryFailure):
        return {}
    series = [each for each in result.series if each.points]
    return {
        (sku, each.dimensions.get("currency") or code_of(result, each)): each.points
        for each in series
        if (sku := each.dimensions.get(SKU))
    }


def product_rows(result: QueryResult, compared: QueryResult) -> list[ProductRow]:
    """The rows of an answer that is split by product or by category and has one point per series.

    Args:
        result: the answer.
        compared: that to its `change_query`.
    """
    if isinstance(result, QueryFailure):
        return []
    series = [each for each in result.series if each.points and each.points[-1].value]
    changes = changes_of(compared, is_of_all=compared is result)
    return [
        ProductRow(
            _name(each),
            each.dimensions.get(SKU) or "",
            "" if SKU in each.dimensions else _value(each) or "",
            each.category if isinstance(each.category, str) else "",
            code := code_of(result, each),
            each.points[-1],
            changes.get(series_key(each, code)),
            width,
        )
        for each, width in zip(series, bar_widths(result, series), strict=True)
    ]


def _name(series: Series) -> str:
    if series.other is not UNSET:
        return _("All others")
    if isinstance(series.title, str):
        return series.title
    return (_value(series) or _("Without a category")).rpartition("/")[2]


def _value(series: Series) -> str | None:
    return next((each for name, each in series.dimensions.items() if name != "currency"), None)


def _paired(result: QueryResult) -> Sequence[Series]:
    return [each for each in _series(result) if each.other is UNSET and each.points and each.points[-1].value]


def _pair(series: Series, titles: Mapping[str, str]) -> Pair:
    skus = [series.dimensions.get(name) or "" for name in (SKU, WITH_SKU)]
    one, other = (titles.get(sku) or sku or _("no SKU") for sku in skus)
    return Pair(one, other, series.points[-1])
