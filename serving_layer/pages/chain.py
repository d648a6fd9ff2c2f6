"""How the chain did: all stores of the visitor together, today and in the last seven days, by group, and the best ones.

All numbers are totals of one answer each, the same as `galatea ask net_sales --by total` prints.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from msgspec import UNSET

from master_dataset.registry.stores import Store
from serving_layer.pages.queries import PageQueries, PageQuery, QueryFailure, QueryResult
from serving_layer.query.ranges import RangeName
from serving_layer.responses.encoding import Number
from serving_layer.responses.metrics import MetricResponse, Point, Series

SALES = "net_sales"
DAYS: RangeName = "last_7_days"
BEST_STORES, GROUPS_SHOWN = 5, 8
FIRST_GROUPS = ("region", "country", "format", "brand")
"""Of the groups that stores have, the first of these is shown; otherwise the first by name."""


class ChainTotal(NamedTuple):
    """Net sales of all stores with one currency.

    `change`: of today, up to the last full quarter of an hour. `days`: the last seven days. None without an answer.
    """

    currency: str
    stores: int
    today: Point
    change: Point | None
    days: Point | None


class ChainRow(NamedTuple):
    """One group, or one store (`id`).

    `width`: of its bar, in percent of the greatest value with this currency, where all others do not count.
    """

    name: str
    id: str | None
    currency: str
    point: Point
    width: float


@dataclass(frozen=True)
class Chain:
    """What is shown of the chain.

    Attributes:
        totals: one per currency.
        group: the name of the group whose values have rows; None if no store is in one.
        groups: its values, those that sold most first.
        best: the stores that sold most.
        query: of the totals of today.
        failure: why there is no answer, if there is none.
    """

    totals: Sequence[ChainTotal]
    group: str | None
    groups: Sequence[ChainRow]
    best: Sequence[ChainRow]
    query: PageQuery
    failure: QueryFailure | None = None


async def chain_of(queries: PageQueries, stores: Sequence[Store], *, is_partial: bool) -> Chain | None:
    """The chain of a visitor; None if it is a single store.

    Args:
        queries: asks on behalf of the visitor.
        stores: all that the visitor can see.
        is_partial: whether the speed layer is missing.
    """
    if len(stores) < 2:  # noqa: PLR2004 - of one store, its card says all
        return None
    group = _group_shown(stores)
    of_all = PageQuery(SALES, grain="total", compare="previous_week", partial=is_partial)
    change, days = (replace(of_all, by=("total",), range=each) for each in ("today", DAYS))
    today = replace(change, compare=None)  # a comparison ends with the last full quarter of an hour
    ranked = replace(of_all, range=DAYS, sort="-value", top=BEST_STORES)
    groups = [replace(ranked, by=(f"group:{group}",), top=GROUPS_SHOWN)] if group else []
    results = await queries.answer_all([today, change, days, ranked, *groups])
    failure = next((result for result in results if isinstance(result, QueryFailure)), None)
    names = {store.id: store.name or f"Store {store.id}" for store in stores}
    best = [row for row in _rows(results[3]) if row.id is not None]
    return Chain(
        totals=_totals(*results[:3]),
        group=group,
        groups=_rows(results[4]) if group else (),
        best=[row._replace(name=names.get(row.name, row.name)) for row in best],
        query=today,
        failure=failure,
    )


def _group_shown(stores: Sequence[Store]) -> str | None:
    known = frozenset[str]().union(*(store.current_groups for store in stores))
    return next((name for name in FIRST_GROUPS if name in known), min(known, default=None))


def _totals(today: QueryResult, change: QueryResult, days: QueryResult) -> list[ChainTotal]:
    if isinstance(today, QueryFailure):
        return []
    changed, recent = _points(change), _points(days)
    found = []
    for series in today.series:
        code = _code(today, series)
        counted = series.stores.counted if series.stores is not UNSET else 0
        found.append(ChainTotal(code, counted, series.points[-1], changed.get(code), recent.get(code)))
    return found


def _points(result: QueryResult) -> dict[str, Point]:
    """By currency the point of an answer that has one per series."""
    if isinstance(result, QueryFailure):
        return {}
    return {_code(result, series): series.points[-1] for series in result.series}


def _rows(result: QueryResult) -> list[ChainRow]:
    """The rows of an answer that has one point per series."""
    if isinstance(result, QueryFailure):
        return []
    greatest: dict[str, float] = {}
    for series in result.series:
        if series.other is not UNSET:
            continue
        code = _code(result, series)
        greatest[code] = max(greatest.get(code, 0.0), _number(series.points[-1]))
    return [
        ChainRow(
            _name(series),
            None if series.store is UNSET else series.store,
            code := _code(result, series),
            series.points[-1],
            min(100 * max(_number(series.points[-1]), 0.0) / (greatest.get(code) or 1.0), 100),
        )
        for series in result.series
    ]


def _name(series: Series) -> str:
    if series.other is not UNSET:
        return "All others"
    if series.store is not UNSET:
        return series.store
    [value] = series.group.values() if series.group is not UNSET and series.group else [None]
    return value or "In none"


def _code(result: MetricResponse, series: Series) -> str:
    own = series.currency if series.currency is not UNSET else result.currency
    return own if isinstance(own, str) else ""


def _number(point: Point) -> float:
    return float(point.value) if isinstance(point.value, Number) else 0.0
