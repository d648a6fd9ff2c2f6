"""`/`: how the chain does in a period: its totals, how they developed, which stores and groups lead, and open alerts.

All numbers are totals of one answer each, the same as `galatea ask net_sales --by total` prints.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, NamedTuple

from fastapi import Query, Response
from msgspec import UNSET

from master_dataset.registry.stores import Store
from serving_layer.health.freshness import FreshnessReport
from serving_layer.pages.alerts import newest_open_alerts
from serving_layer.pages.annotations import annotations_of
from serving_layer.pages.business_day import BusinessDay
from serving_layer.pages.charts import ChartRow, chart_rows, with_ends
from serving_layer.pages.language import gettext as _
from serving_layer.pages.language import gettext_noop
from serving_layer.pages.period import PagePeriod, PeriodFilter
from serving_layer.pages.pickers import FIRST_GROUPS
from serving_layer.pages.queries import PageQuery, QueryFailure, QueryResult
from serving_layer.pages.routing import ReaderVisit, Visit, page_router
from serving_layer.query.catalogue import Catalogue
from serving_layer.responses.encoding import Number
from serving_layer.responses.metrics import MetricResponse, Point, Series
from serving_layer.timeline import zone_named
from views.core.cut import seconds
from views.core.local_time import BusinessDays, round_down

router = page_router()
SALES = "net_sales"
TILES: dict[str, str] = {
    SALES: gettext_noop("Net sales"),
    "traffic_in": gettext_noop("Visitors"),
    "conversion_rate": gettext_noop("Conversion"),
    "total_transactions_count": gettext_noop("Receipts"),
    "avg_transaction_value": gettext_noop("Average receipt"),
    "avg_items_per_transaction": gettext_noop("Items per receipt"),
}
LEADING, GROUPS_SHOWN, ALERTS_SHOWN = 5, 8, 5


SeriesKey = tuple[str, tuple[tuple[str, str], ...], str, bool]


class Total(NamedTuple):
    """A number of the chain, in one currency if it is of money.

    `change`: with what it is compared with, or None. `until`: where the comparison of an unfinished period ends.
    """

    code: str
    point: Point
    change: Point | None
    until: str | None
    stores: int


@dataclass(frozen=True)
class Tile:
    """One metric of the chain: a total for each currency, or one. `compared`: the query that `change` is from."""

    name: str
    unit: str
    query: PageQuery
    compared: PageQuery
    totals: Sequence[Total]
    failure: QueryFailure | None

    @property
    def reason(self) -> str:
        """Why there is no number, as the flag of an answer; empty if there is one."""
        flags = [flag for total in self.totals for flag in total.point.flags or ()]
        return flags[0] if flags and all(total.point.value is None for total in self.totals) else ""


class RankedRow(NamedTuple):
    """One group, or one store (`id`).

    Attributes:
        name: as people call it.
        id: of a store; None for a group.
        currency: of its sales.
        point: its sales.
        change: the same, with what it is compared with; None if it is not known.
        width: of its bar, in percent of the greatest value with this currency.
    """

    name: str
    id: str | None
    currency: str
    point: Point
    change: Point | None
    width: float


class Ranking(NamedTuple):
    """`title`: of its table. `has_stores`: whether its rows are stores, not groups."""

    title: str
    rows: Sequence[RankedRow]


@dataclass(frozen=True)
class Trend:
    """Net sales over the period, in one currency. `zone`: of its clock; empty if each store has its own."""

    query: PageQuery
    rows: Sequence[ChartRow]
    code: str
    zone: str
    failure: QueryFailure | None


@router.get("/")
async def get_overview(visit: ReaderVisit, asked: Annotated[PeriodFilter, Query()]) -> Response:
    """All stores of the visitor together."""
    fresh = await visit.fresh()
    stores = await visit.queries.stores()
    period = period_of_chain(asked, stores, fresh)
    values: dict[str, object] = {
        "stores": stores,
        "period": period,
        "is_partial": bool(fresh.snapshot.missing),
        "today_ends_at": min((BusinessDay.of(store, fresh.at).today_ends_at for store in stores), default=None),
        "alerts": await newest_open_alerts(visit, ALERTS_SHOWN),
        "annotations": await annotations_of(visit, stores, period, is_of_chain=True),
    }
    if stores:
        values |= await _chain(visit, stores, period, is_partial=bool(fresh.snapshot.missing))
    return visit.page("overview.html", fresh, values)


def period_of_chain(asked: PeriodFilter, stores: Sequence[Store], fresh: FreshnessReport) -> PagePeriod:
    """The period of a page about many stores: today is the day that has begun in all of them, as in their totals.

    Raises:
        BadQuestionError: see `PagePeriod.of`.
    """
    now = round_down(seconds(fresh.at))
    todays = {days: days.day_of(now) for days in business_days(stores or [Store(id="", timezone="UTC")])}
    behind = min(todays, key=todays.__getitem__)
    return PagePeriod.of(asked, behind, todays[behind], latest=max(todays.values()))


def business_days(stores: Iterable[Store]) -> Collection[BusinessDays]:
    """Those of these stores, each kind once. BadQuestionError if a time zone is unknown."""
    return dict.fromkeys(BusinessDays.of(store, zone_named(store.timezone)) for store in stores)


def over(query: PageQuery, period: PagePeriod) -> PageQuery:
    """The query over that period: a range by its name, so that every store has its own today."""
    if period.preset:
        return replace(query, range=period.preset)
    return replace(query, start=period.dates.start.isoformat(), end=period.dates.end.isoformat())


def as_now(query: PageQuery, period: PagePeriod) -> PageQuery:
    """The query for the numbers of now, beside their comparison.

    A comparison ends with the last full quarter of an hour, and a number that still grows does not. Once nothing grows,
    one query answers both.
    """
    return query if period.includes_today else replace(query, compare=period.compared_with)


def bar_widths(result: MetricResponse, series: Sequence[Series]) -> list[float]:
    """Of series with one point, in percent of the greatest value of their currency, where all others do not count."""
    greatest: dict[str, float] = {}
    for each in series:
        if each.other is UNSET:
            code = code_of(result, each)
            greatest[code] = max(greatest.get(code, 0.0), _number(each.points[-1]))
    return [
        min(100 * max(_number(each.points[-1]), 0.0) / (greatest.get(code_of(result, each)) or 1.0), 100)
        for each in series
    ]


async def _chain(
    visit: Visit, stores: Sequence[Store], period: PagePeriod, *, is_partial: bool
) -> Mapping[str, object]:
    group = _group_shown(stores)
    total = over(PageQuery(SALES, by=("total",), grain="total", partial=is_partial), period)
    now = {metric: as_now(replace(total, metric=metric), period) for metric in TILES}
    compared = {metric: replace(query, compare=period.compared_with) for metric, query in now.items()}
    trend = replace(total, grain=period.grain, compare=None if period.grain == "hour" else period.compared_with)
    ranked = replace(total, by=(), sort="-value", top=LEADING)
    rankings = {gettext_noop("Top stores"): ranked}
    if len(stores) > LEADING:
        rankings[gettext_noop("Bottom stores")] = replace(ranked, sort="value")
    if group:
        rankings[f"group:{group}"] = replace(ranked, by=(f"group:{group}",), top=GROUPS_SHOWN)
    before = hours_before(trend, period)
    wanted = [*now.values(), *compared.values(), trend, *rankings.values(), *before]

    def changes_of_shown(found: Mapping[PageQuery, QueryResult]) -> list[PageQuery]:
        """For each ranking what says how its rows changed: of stores only those that it shows."""
        return [_change_query(query, found[query], period) for query in rankings.values()]

    results = await visit.queries.answer_recent(wanted, changes_of_shown)
    changes = dict(zip(rankings.values(), changes_of_shown(results), strict=True))
    names = {store.id: store.name or _("Store {id}").format(id=store.id) for store in stores}
    catalogue = visit.queries.service.catalogue
    shown = []
    for title, query in rankings.items():
        rows = ranked_rows(results[query], results[changes[query]], names)
        shown.append(Ranking(_("By {group}").format(group=group) if title.startswith("group:") else _(title), rows))
    return {
        "zone": zone_of(stores),
        "tiles": [_tile(catalogue, metric, now[metric], compared[metric], results) for metric in TILES],
        "trend": _trend(trend, results[trend], [results[each] for each in before], stores, period),
        "rankings": [each for each in shown if each.rows],
    }


def _change_query(ranking: PageQuery, result: QueryResult, period: PagePeriod) -> PageQuery:
    """What a ranking is compared with. Of stores those alone that it shows, on the same dates as all of them.

    Of groups all, where the numbers of now and those that are compared may have other leaders.
    """
    compared = replace(ranking, compare=period.compared_with)
    if isinstance(result, QueryFailure) or not period.compared_with:
        return compared
    if ranking.by:
        return compared if compared == ranking else replace(compared, sort=None, top=None)
    shown = tuple(sorted(each.store for each in result.series if each.store is not UNSET))
    dates = result.answered_range
    if dates is not UNSET and dates.start is not UNSET and dates.end is not UNSET:
        compared = replace(compared, range=None, start=dates.start.isoformat(), end=dates.end.isoformat())
    return replace(compared, stores=shown, sort=None, top=None) if shown else ranking


def hours_before(query: PageQuery, period: PagePeriod) -> Sequence[PageQuery]:
    """The query for the hours behind those of the period: in full, where a comparison would end with the hours of now.

    None at other grains, where points say what they are compared with.
    """
    dates = period.compared_dates
    if period.grain != "hour" or dates is None:
        return []
    return [replace(query, range=None, start=dates.start.isoformat(), end=dates.end.isoformat(), compare=None)]


def _tile(
    catalogue: Catalogue,
    metric: str,
    now: PageQuery,
    compared: PageQuery,
    results: Mapping[PageQuery, QueryResult],
) -> Tile:
    result, versus = results[now], results[compared]
    if isinstance(result, QueryFailure):
        return Tile(_(TILES[metric]), catalogue.metrics[metric].unit, now, compared, (), result)
    changed = {} if isinstance(versus, QueryFailure) else {code_of(versus, each): each for each in versus.series}
    totals = [
        Total(
            code := code_of(result, series),
            series.points[-1],
            against.points[-1] if (against := changed.get(code)) else None,
            until_of(against),
            series.stores.counted if series.stores is not UNSET else 0,
        )
        for series in result.series
        if series.points
    ]
    return Tile(_(TILES[metric]), catalogue.metrics[metric].unit, now, compared, totals, None)


def _trend(
    query: PageQuery,
    result: QueryResult,
    before: Sequence[QueryResult],
    stores: Sequence[Store],
    period: PagePeriod,
) -> Trend:
    """The development of the currency that most stores have, by the clock of these stores."""
    if isinstance(result, QueryFailure):
        return Trend(query, (), "", zone_of(stores), result)
    series = max(result.series, key=lambda each: each.stores.counted if each.stores is not UNSET else 0, default=None)
    if series is None:
        return Trend(query, (), "", zone_of(stores), None)
    code, zone = code_of(result, series), series.timezone if isinstance(series.timezone, str) else ""
    earlier = [
        each.points
        for answer in before
        if not isinstance(answer, QueryFailure)
        for each in answer.series
        if code_of(answer, each) == code
    ]
    rows = chart_rows(series.points, earlier[0] if earlier else (), query.grain, zone)
    if not zone:
        drawn = [store for store in stores if store.currency.code == code] or stores
        rows = with_ends(rows, query.grain, business_days(drawn), period.dates.end)
    return Trend(query, rows, code, zone, None)


def _group_shown(stores: Sequence[Store]) -> str | None:
    known = frozenset[str]().union(*(store.current_groups for store in stores))
    return next((name for name in FIRST_GROUPS if name in known), min(known, default=None))


def ranked_rows(result: QueryResult, compared: QueryResult, names: Mapping[str, str]) -> list[RankedRow]:
    """The rows of an answer with one point per series. `compared`: the same with a comparison. `names`: of stores."""
    if isinstance(result, QueryFailure):
        return []
    series = [each for each in result.series if each.points]
    if any(each.store is not UNSET for each in series):  # all others are many stores, and no row
        series = [each for each in series if each.store is not UNSET]
    changes = changes_of(compared, is_of_all=compared is result)
    return [
        RankedRow(
            _name(each, names),
            None if each.store is UNSET else each.store,
            code := code_of(result, each),
            each.points[-1],
            changes.get(series_key(each, code)),
            width,
        )
        for each, width in zip(series, bar_widths(result, series), strict=True)
    ]


def changes_of(compared: QueryResult, *, is_of_all: bool) -> Mapping[SeriesKey, Point]:
    """The points of an answer that has one per series, to be found by `series_key`.

    Args:
        compared: the answer.
        is_of_all: whether it has the very series that are shown: in another answer, all others are not the same ones.
    """
    if isinstance(compared, QueryFailure):
        return {}
    series = [each for each in compared.series if each.points and (is_of_all or each.other is UNSET)]
    return {series_key(each, code_of(compared, each)): each.points[-1] for each in series}


def series_key(series: Series, code: str) -> SeriesKey:
    """What tells a series from the others of its answer. `code`: of its currency."""
    store = series.store if series.store is not UNSET else ""
    parts = {**(series.group if series.group is not UNSET else {}), **series.dimensions}
    return store, tuple(sorted((name, value or "") for name, value in parts.items())), code, series.other is not UNSET


def _name(series: Series, names: Mapping[str, str]) -> str:
    if series.other is not UNSET:
        return _("All others")
    if series.store is not UNSET:
        return names.get(series.store, series.store)
    [value] = series.group.values() if series.group is not UNSET and series.group else [None]
    return value or _("No group")


def until_of(series: Series | None) -> str | None:
    """Where the comparison of an unfinished period ends; None if the period is over, or nothing is compared."""
    return (series.compared.until or None) if series and series.compared else None


def zone_of(stores: Iterable[Store]) -> str:
    """The time zone of all of these stores; UTC if they have several."""
    zones = {store.timezone for store in stores}
    return zones.pop() if len(zones) == 1 else "UTC"


def code_of(result: MetricResponse, series: Series) -> str:
    """The currency of a series; empty if it is not of money."""
    own = series.currency if series.currency is not UNSET else result.currency
    return own if isinstance(own, str) else ""


def code_of_store(result: QueryResult, store: Store) -> str:
    """The currency of an answer about one store.

    Amounts have the currency in which they were received. Without any it is that with which the store is registered.
    """
    if isinstance(result, QueryFailure):
        return store.currency.code
    codes = (code_of(result, each) for each in result.series if each.store in (store.id, UNSET))
    return next(filter(None, codes), store.currency.code)


def _number(point: Point) -> float:
    return float(point.value) if isinstance(point.value, Number) else 0.0
