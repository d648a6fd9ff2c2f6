"""`/stores/{store}`: one store in a period, and what it is compared with."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from typing import Annotated, NamedTuple

from fastapi import Query, Response
from msgspec import UNSET

from master_dataset.registry.stores import Store
from serving_layer.alerts.history import AlertsRequest
from serving_layer.pages.annotations import annotations_of
from serving_layer.pages.business_day import BusinessDay, is_closed, opening
from serving_layer.pages.charts import ChartRow, HeatMap, chart_rows, heat_map
from serving_layer.pages.figures import instant
from serving_layer.pages.flags import DESCRIPTIVE_FLAGS, flag_text
from serving_layer.pages.language import gettext as _
from serving_layer.pages.language import gettext_noop, ngettext
from serving_layer.pages.overview import as_now, code_of_store, hours_before, until_of
from serving_layer.pages.period import PagePeriod, PeriodFilter
from serving_layer.pages.products import change_query, product_rows
from serving_layer.pages.queries import PageQueries, PageQuery, QueryFailure, QueryResult
from serving_layer.pages.routing import ReaderVisit, Visit, page_router
from serving_layer.query.aggregate import NO_SOURCE
from serving_layer.query.catalogue import Catalogue
from serving_layer.responses.metrics import Point, Series, WeatherRow
from serving_layer.timeline import Grain, zone_named
from views.core.local_time import BusinessDays

router = page_router()

TILES = {
    "net_sales": gettext_noop("Net sales"),
    "traffic_in": gettext_noop("Visitors"),
    "conversion_rate": gettext_noop("Conversion"),
    "total_transactions_count": gettext_noop("Receipts"),
    "avg_transaction_value": gettext_noop("Average receipt"),
    "avg_items_per_transaction": gettext_noop("Items per receipt"),
}
PASSING = {
    "outside_traffic": gettext_noop("Outside"),
    "in_store_traffic": gettext_noop("Inside"),
    "capture_rate": gettext_noop("Capture"),
    "avg_stay_time": gettext_noop("Average stay"),
    "bounce_rate": gettext_noop("Left soon after"),
}
QUEUE = {
    "avg_queue_wait": gettext_noop("Average wait"),
    "p90_queue_wait": gettext_noop("9 in 10 waited at most"),
    "max_queue_length": gettext_noop("Longest queue"),
    "queue_served": gettext_noop("Served"),
    "queue_abandonment_rate": gettext_noop("Left the queue"),
}
CHARTS = {
    "net_sales": gettext_noop("Sales"),
    "traffic_in": gettext_noop("Visitors"),
    "conversion_rate": gettext_noop("Conversion"),
    "capture_rate": gettext_noop("Capture"),
}
"""The metric of each chart, with its title."""
WAITS, STAYS, PRODUCTIVITY, CONTEXT, TILLS, PRODUCTS = (
    "avg_queue_wait",
    "stays",
    "productivity",
    "context",
    "tills",
    "products",
)
WEEKS, TOP_PRODUCTS, TOP_TILLS = 4, 5, 12
"""How far back productivity goes on a page about less; rows of a table."""
MAX_CONTEXT_DAYS = 14
"""Up to which period holidays and weather are read."""
HOUR = timedelta(hours=1)
MAX_ALERTS = 20
"""Up to which open alerts are counted."""


@router.get("/stores/{id_:path}")
async def get_store(visit: ReaderVisit, id_: str, asked: Annotated[PeriodFilter, Query()]) -> Response:
    """Numbers, charts, and what may explain them."""
    store = await visit.queries.store(id_)
    fresh = await visit.fresh()
    today, is_partial = BusinessDay.of(store, fresh.at), bool(fresh.snapshot.missing)
    period = PagePeriod.of(asked, BusinessDays.of(store, zone_named(store.timezone)), today.today)
    panels = await _panels(visit.queries, store, period, fresh.at, is_partial=is_partial)
    values = {
        "store": store,
        "period": period,
        "is_partial": is_partial,
        "tiles": _with_source(panels, TILES),
        "passing": _with_source(panels, PASSING),
        "queue": _with_source(panels, QUEUE),
        "without_sensor": _without_sensor(panels),
        "charts": [panels[f"line:{metric}"] for metric in CHARTS if panels[f"line:{metric}"].has_source],
        "waits": panels[f"line:{WAITS}"],
        "stays": panels[STAYS],
        "productivity": panels[PRODUCTIVITY],
        "heat": _heat_map(panels[PRODUCTIVITY]),
        "tills": panels[TILLS],
        "products": product_rows(panels[PRODUCTS].result, panels[f"change:{PRODUCTS}"].result),
        "products_panel": panels[PRODUCTS],
        "context": _context(panels),
        "opening": opening(store, period.first) if period.days == 1 else "",
        "is_closed": period.days == 1 and is_closed(store, period.first),
        "compared": _compared(panels["change:net_sales"]),
        "comparison": panels["change:net_sales"].query,
        "open_alerts": await _open_alerts(visit, store),
        "annotations": await annotations_of(visit, [store], period, is_of_chain=False),
        "today_ends_at": today.today_ends_at if period.includes_today and not asked.day else None,
    }
    return visit.page("store.html", fresh, values)


# Panels


@dataclass(frozen=True)
class Panel:
    """A part of the page: a metric query and its result.

    Attributes:
        query: of the metric.
        result: its answer.
        name: of the metric, or of the panel.
        unit: of the metric.
        code: the currency of money.
        until: points that begin later have no data yet.
        rows: of a chart, with what its points are compared with.
    """

    query: PageQuery
    result: QueryResult
    name: str
    unit: str
    code: str
    until: datetime
    rows: Sequence[ChartRow] = ()

    @property
    def failure(self) -> QueryFailure | None:
        """Why there is nothing to show; None if there is."""
        return self.result if isinstance(self.result, QueryFailure) else None

    @property
    def series(self) -> Series | None:
        """The first series, which is the only one if nothing is split; None without data."""
        return None if isinstance(self.result, QueryFailure) else next(iter(self.result.series), None)

    @property
    def parts(self) -> Sequence[Series]:
        """All series of a metric that is split."""
        return () if isinstance(self.result, QueryFailure) else self.result.series

    @property
    def compared_until(self) -> str | None:
        """Where the comparison of an unfinished period ends; None if it is over, or nothing is compared."""
        return until_of(self.series)

    @property
    def points(self) -> Sequence[Point]:
        """The points that have begun."""
        points = self.series.points if self.series else ()
        return [point for point in points if _has_begun(point, self.until)]

    @property
    def last(self) -> Point | None:
        """The last of them, which for a total is the only one; None if none has begun."""
        return self.points[-1] if self.points else None

    @property
    def has_source(self) -> bool:
        """Whether any sensor of the store feeds the metric."""
        return NO_SOURCE not in self._flags

    @property
    def flags(self) -> Sequence[str]:
        """The flags of the answer and of its last point, in words."""
        flags = self._flags if self.has_source else (NO_SOURCE,)  # without a source, nothing else matters
        return [flag_text(flag) for flag in flags if flag != "low_coverage" or "masked" not in flags]

    @property
    def reasons(self) -> Sequence[str]:
        """Why there is no number, in words; empty if no flag says so."""
        return [flag_text(flag) for flag in self._flags if flag not in DESCRIPTIVE_FLAGS]

    @property
    def begins(self) -> datetime | None:
        """When the first point with a value begins; None if there is none."""
        return next((instant(point.start) for point in self.points if point.value), None)

    @property
    def is_empty(self) -> bool:
        """Whether no point has a value."""
        return not any(point.value for point in self.points)

    @property
    def _flags(self) -> Sequence[str]:
        of_answer = () if isinstance(self.result, QueryFailure) else self.result.flags or ()
        of_point = (self.last.flags or ()) if self.last else ()
        return list(dict.fromkeys([*of_answer, *of_point]))


def _has_begun(point: Point, until: datetime) -> bool:
    start = instant(point.start)
    return start is None or start <= until


def _page_queries(store: Store, period: PagePeriod, *, is_partial: bool) -> Mapping[str, PageQuery]:
    """The queries of the page by panel.

    Each metric is asked for as it is (`now:`) and compared (`change:`), see `as_now`. Lines of hours have their own
    query for what is drawn behind them (`before:`); other lines are compared point by point.
    """

    def query(metric: str, grain: Grain, compare: str | None = None) -> PageQuery:
        start, end = period.dates.start.isoformat(), period.dates.end.isoformat()
        return PageQuery(metric, (store.id,), start, end, grain, partial=is_partial, compare=compare)

    totals = {metric: query(metric, "total") for metric in (*TILES, *PASSING, *QUEUE)}
    queries = {f"now:{metric}": as_now(total, period) for metric, total in totals.items()}
    queries |= {f"change:{metric}": replace(total, compare=period.compared_with) for metric, total in totals.items()}
    compare = None if period.grain == "hour" else period.compared_with
    for metric in (*CHARTS, WAITS):
        line = query(metric, period.grain, compare)
        queries |= {f"line:{metric}": line}
        queries |= {f"before:{metric}": each for each in hours_before(line, period)}
    weeks = query("productivity", "hour_of_week")
    if period.days < 7 * WEEKS:
        start = (period.first - timedelta(weeks=WEEKS)).isoformat()
        weeks = replace(weeks, start=start, end=period.first.isoformat())
    products = replace(query("sku_net_sales", "total"), by=("sku",), sort="-value", top=TOP_PRODUCTS)
    tills = replace(query("till_share", "total"), by=("till",), sort="-value", top=TOP_TILLS)
    queries |= {STAYS: query("visits_by_stay_time", "total"), PRODUCTIVITY: weeks, PRODUCTS: as_now(products, period)}
    queries |= {TILLS: tills}
    if period.days <= MAX_CONTEXT_DAYS:
        grain: Grain = "hour" if period.days == 1 else "day"
        queries |= {CONTEXT: replace(query("net_sales", grain), context="holidays,weather")}
    return queries


async def _panels(
    queries: PageQueries, store: Store, period: PagePeriod, now: datetime, *, is_partial: bool
) -> Mapping[str, Panel]:
    by_panel = _page_queries(store, period, is_partial=is_partial)
    results = dict(zip(by_panel, await queries.answer_all(list(by_panel.values())), strict=True))
    change = change_query(by_panel[PRODUCTS], results[PRODUCTS], period)
    by_panel = {**by_panel, f"change:{PRODUCTS}": change}
    results[f"change:{PRODUCTS}"] = results[PRODUCTS] if change == by_panel[PRODUCTS] else await queries.answer(change)
    catalogue = queries.service.catalogue

    def rows(panel: str) -> Sequence[ChartRow]:
        kind, _sign, metric = panel.partition(":")
        if kind != "line":
            return ()
        before = results.get(f"before:{metric}")
        return chart_rows(_points(results[panel]), _points(before), by_panel[panel].grain, store.timezone)

    return {
        panel: Panel(
            by_panel[panel],
            result,
            *_name_and_unit(catalogue, by_panel[panel].metric),
            code_of_store(result, store),
            now,
            rows(panel),
        )
        for panel, result in results.items()
    }


def _points(result: QueryResult | None) -> Sequence[Point]:
    if result is None or isinstance(result, QueryFailure) or not result.series:
        return ()
    return result.series[0].points


def _name_and_unit(catalogue: Catalogue, metric: str) -> tuple[str, str]:
    known = catalogue.metrics[metric]
    name = (TILES | PASSING | QUEUE).get(metric)
    return _(name) if name else known.name, known.unit


def _with_source(panels: Mapping[str, Panel], metrics: Iterable[str]) -> Sequence[tuple[Panel, Panel]]:
    """The panels of each metric, as it is now and as it changed, if a sensor feeds it."""
    pairs = ((panels[f"now:{metric}"], panels[f"change:{metric}"]) for metric in metrics)
    return [(now, change) for now, change in pairs if now.has_source]


def _without_sensor(panels: Mapping[str, Panel]) -> Sequence[str]:
    """What is not shown because no sensor of the store feeds it."""
    names = [panels[f"now:{metric}"].name for metric in TILES if not panels[f"now:{metric}"].has_source]
    names += [] if _with_source(panels, PASSING) else [_("People outside and inside")]
    names += [] if panels[STAYS].has_source else [_("Visits by stay time")]
    return names if _with_source(panels, QUEUE) else [*names, _("Queue")]


def _heat_map(panel: Panel) -> HeatMap | None:
    return heat_map(panel.series.points, panel.unit, panel.code) if panel.series else None


# Beside the numbers


class DayContext(NamedTuple):
    """`weather`: of one day, hours that have begun, from the hour before the first number. `wet`: hours with rain."""

    holidays: Sequence[str]
    weather: Sequence[WeatherRow]
    wet: Sequence[str]


def _context(panels: Mapping[str, Panel]) -> DayContext:
    panel = panels.get(CONTEXT)
    if panel is None or isinstance(panel.result, QueryFailure) or not panel.result.context:
        return DayContext((), (), ())
    holidays, weather = panel.result.context.get("holidays"), panel.result.context.get("weather")
    names = list(dict.fromkeys(name for row in (holidays.rows if holidays else ()) for name in row.names))
    if panel.query.grain != "hour":
        return DayContext(names, (), ())
    begins = [at for metric in CHARTS if (at := panels[f"line:{metric}"].begins)]
    first = min(begins) - HOUR if begins else None
    rows = [row for row in (weather.rows if weather else ()) if row.temperature_avg is not None]
    rows = [row for row in rows if first is None or datetime.fromisoformat(row.start) >= first]
    return DayContext(names, rows, [row.start for row in rows if row.precipitation])


class ComparedDays(NamedTuple):
    """`last`: included. `until`: where the comparison ends on an unfinished day; None if the day is over."""

    first: date
    last: date
    until: str | None


def _compared(panel: Panel) -> ComparedDays | None:
    """The days that are compared with; None without a counterpart."""
    compared = panel.series.compared if panel.series else UNSET
    if not compared or not compared.before:
        return None
    before = compared.before
    return ComparedDays(before.start, max(before.end - timedelta(days=1), before.start), panel.compared_until)


async def _open_alerts(visit: Visit, store: Store) -> str:
    """How many alerts are open, in words; empty if none is."""
    request = AlertsRequest(store.tenant, frozenset([store.id]), state="open", limit=MAX_ALERTS)
    page = await visit.alerting.alerts.page(request)
    number = len(page.alerts)
    if page.following:
        return _("{number} open alerts or more").format(number=number)
    return ngettext("{number} open alert", "{number} open alerts", number).format(number=number) if number else ""
