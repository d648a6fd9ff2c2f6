"""`/stores/{store}`: one store on one day, against the same weekday of the week before."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from typing import Annotated, NamedTuple
from zoneinfo import ZoneInfo

from fastapi import Query, Response
from msgspec import UNSET

from master_dataset.registry.stores import Store
from serving_layer.alerts.history import AlertsRequest
from serving_layer.pages.business_day import BusinessDay, opening
from serving_layer.pages.charts import HeatMap, heat_map
from serving_layer.pages.figures import Figure, figure, instant
from serving_layer.pages.queries import PageQueries, PageQuery, QueryFailure, QueryResult
from serving_layer.pages.routing import ReaderVisit, Visit, page_router
from serving_layer.query.aggregate import NO_SOURCE
from serving_layer.query.catalogue import Catalogue
from serving_layer.responses.metrics import Point, Series, Value, WeatherRow
from serving_layer.timeline import Grain

router = page_router()

TILES = (
    "net_sales",
    "traffic_in",
    "conversion_rate",
    "capture_rate",
    "avg_transaction_value",
    "avg_items_per_transaction",
)
CHARTS = {"net_sales": "Sales", "traffic_in": "Traffic", "conversion_rate": "Conversion", "capture_rate": "Capture"}
"""The metric of each chart, with its title."""
QUEUE = ("avg_queue_wait", "p90_queue_wait", "max_queue_length", "queue_served", "queue_abandonment_rate")
NAMES = {"avg_transaction_value": "Average receipt", "avg_items_per_transaction": "Items per receipt"}
"""Instead of the abbreviations of the trade (ATV, UPT)."""
WAITS, STAYS, PRODUCTIVITY, CONTEXT = "avg_queue_wait", "stays", "productivity", "context"
COMPARE = "previous_week"
WEEKS = 4
"""How far back productivity goes."""
HOUR = timedelta(hours=1)
MAX_ALERTS = 20
"""Up to which open alerts are counted."""


@router.get("/stores/{id_:path}")
async def get_store(visit: ReaderVisit, id_: str, day: Annotated[date | None, Query()] = None) -> Response:
    """Numbers, charts, and what may explain them."""
    store = await visit.queries.store(id_)
    fresh = await visit.fresh()
    business_day, is_partial = BusinessDay.of(store, fresh.at, day), bool(fresh.basis.missing)
    panels = await _panels(visit.queries, store, business_day, fresh.at, is_partial=is_partial)
    values = {
        "store": store,
        "day": business_day,
        "is_partial": is_partial,
        "tiles": _with_source(panels, TILES),
        "queue": _with_source(panels, QUEUE),
        "without_sensor": _without_sensor(panels),
        "charts": [
            (panels[f"hour:{metric}"], panels[f"before:{metric}"], title)
            for metric, title in CHARTS.items()
            if panels[f"hour:{metric}"].has_source
        ],
        "waits": (panels[f"hour:{WAITS}"], panels[f"before:{WAITS}"]),
        "stays": panels[STAYS],
        "productivity": panels[PRODUCTIVITY],
        "heat": _heat_map(panels[PRODUCTIVITY]),
        "context": _context(panels),
        "opening": opening(store, business_day.day),
        "compared": _compared(panels["change:net_sales"]),
        "comparison": panels["change:net_sales"].query,
        "open_alerts": await _open_alerts(visit, store),
        "today_ends_at": None if day else business_day.today_ends_at,
    }
    return visit.page("store.html", fresh, values)


# Panels


@dataclass(frozen=True)
class Panel:
    """A part of the page: a metric query and its result.

    `name`, `unit`: of the metric. `code`: the currency of money. `until`: points that begin later have no data yet.
    """

    query: PageQuery
    result: QueryResult
    name: str
    unit: str
    code: str
    until: datetime

    @property
    def failure(self) -> QueryFailure | None:
        """Why there is nothing to show; None if there is."""
        return self.result if isinstance(self.result, QueryFailure) else None

    @property
    def series(self) -> Series | None:
        """The only series, because the page asks for one store and splits nothing; None without data."""
        return None if isinstance(self.result, QueryFailure) else next(iter(self.result.series), None)

    @property
    def points(self) -> Sequence[Point]:
        """The points that have begun."""
        return [point for point in self._all_points if _has_begun(point, self.until)]

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

    def by_clock(self, zone: str) -> Mapping[str, Value]:
        """The values of all points, also of later ones, by the local time at which they begin."""
        return {clock: point.value for point in self._all_points if (clock := _clock(point, zone))}

    def figure(self, value: Value) -> Figure:
        """A value of this metric as text."""
        return figure(value, self.unit, self.code)

    @property
    def highest(self) -> Point | None:
        """The point with the greatest value; None if no value is known."""
        known = [point for point in self.points if point.value is not None]
        return max(known, key=lambda point: float(point.value), default=None)  # type: ignore[arg-type]  # no list

    @property
    def begins(self) -> datetime | None:
        """When the first point with a value begins; None if there is none."""
        return next((instant(point.start) for point in self.points if point.value), None)

    @property
    def is_empty(self) -> bool:
        """Whether no point has a value."""
        return not any(point.value for point in self.points)

    @property
    def _all_points(self) -> Sequence[Point]:
        return self.series.points if self.series else ()

    @property
    def _flags(self) -> Sequence[str]:
        of_answer = () if isinstance(self.result, QueryFailure) else self.result.flags or ()
        of_point = (self.last.flags or ()) if self.last else ()
        return list(dict.fromkeys([*of_answer, *of_point]))


def _has_begun(point: Point, until: datetime) -> bool:
    start = instant(point.start)
    return start is None or start <= until


def _clock(point: Point, zone: str) -> str:
    at = instant(point.start)
    return at.astimezone(ZoneInfo(zone)).strftime("%H:%M") if at else ""


def _page_queries(store: Store, day: BusinessDay, *, is_partial: bool) -> Mapping[str, PageQuery]:
    """The queries of the page by panel.

    A comparison ends with the last full quarter of an hour, on both sides; a current number does not. So each metric
    is asked for twice: as it is (`now:`) and compared with the week before (`change:`).
    """

    def query(metric: str, grain: Grain, *, weeks_back: int = 0) -> PageQuery:
        start, end = day.back(7 * weeks_back), day.back(7 * weeks_back - 1)
        return PageQuery(metric, (store.id,), start, end, grain, partial=is_partial)

    hourly = (*CHARTS, WAITS)
    totals = {metric: query(metric, "total") for metric in (*TILES, *QUEUE)}
    queries = {f"now:{metric}": total for metric, total in totals.items()}
    queries |= {f"change:{metric}": replace(total, compare=COMPARE) for metric, total in totals.items()}
    queries |= {f"hour:{metric}": query(metric, "hour") for metric in hourly}
    queries |= {f"before:{metric}": query(metric, "hour", weeks_back=1) for metric in hourly}
    weeks = replace(query("productivity", "hour_of_week"), start=day.back(7 * WEEKS), end=day.start)
    context = replace(query("net_sales", "hour"), context="holidays,weather")
    return queries | {STAYS: query("visits_by_stay_time", "total"), PRODUCTIVITY: weeks, CONTEXT: context}


async def _panels(
    queries: PageQueries, store: Store, day: BusinessDay, now: datetime, *, is_partial: bool
) -> Mapping[str, Panel]:
    by_panel = _page_queries(store, day, is_partial=is_partial)
    results = await queries.answer_all(list(by_panel.values()))
    catalogue = queries.service.catalogue
    return {
        panel: Panel(query, result, *_name_and_unit(catalogue, query.metric), store.currency.code, now)
        for (panel, query), result in zip(by_panel.items(), results, strict=True)
    }


def _name_and_unit(catalogue: Catalogue, metric: str) -> tuple[str, str]:
    known = catalogue.metrics[metric]
    return NAMES.get(metric, known.name), known.unit


def _with_source(panels: Mapping[str, Panel], metrics: Iterable[str]) -> Sequence[tuple[Panel, Panel]]:
    """The panels of each metric, as it is now and as it changed, if a sensor feeds it."""
    pairs = ((panels[f"now:{metric}"], panels[f"change:{metric}"]) for metric in metrics)
    return [(now, change) for now, change in pairs if now.has_source]


def _without_sensor(panels: Mapping[str, Panel]) -> Sequence[str]:
    """What is not shown because no sensor of the store feeds it."""
    names = [panels[f"now:{metric}"].name for metric in TILES if not panels[f"now:{metric}"].has_source]
    names += [] if panels[STAYS].has_source else ["visits by stay time"]
    return names if _with_source(panels, QUEUE) else [*names, "queue"]


def _heat_map(panel: Panel) -> HeatMap | None:
    return heat_map(panel.series.points, panel.unit, panel.code) if panel.series else None


# Beside the numbers


class DayContext(NamedTuple):
    """`weather`: hours that have begun, from the hour before the first number. `wet`: when hours with rain begin."""

    holidays: Sequence[str]
    weather: Sequence[WeatherRow]
    wet: Sequence[str]


def _context(panels: Mapping[str, Panel]) -> DayContext:
    result = panels[CONTEXT].result
    if isinstance(result, QueryFailure) or not result.context:
        return DayContext((), (), ())
    holidays, weather = result.context.get("holidays"), result.context.get("weather")
    begins = [at for metric in CHARTS if (at := panels[f"hour:{metric}"].begins)]
    first = min(begins) - HOUR if begins else None
    rows = [row for row in (weather.rows if weather else ()) if row.temperature_avg is not None]
    rows = [row for row in rows if first is None or datetime.fromisoformat(row.start) >= first]
    names = [name for row in (holidays.rows if holidays else ()) for name in row.names]
    return DayContext(names, rows, [row.start for row in rows if row.precipitation])


class ComparedDay(NamedTuple):
    """`until`: where the comparison ends on an unfinished day; None if the day is over."""

    day: date
    until: str | None


def _compared(panel: Panel) -> ComparedDay | None:
    """The day that is compared with; None without a counterpart."""
    compared = panel.series.compared if panel.series else UNSET
    if not compared or not compared.before:
        return None
    return ComparedDay(compared.before.start, compared.until or None)


async def _open_alerts(visit: Visit, store: Store) -> str:
    """How many alerts are open, in words; empty if none is."""
    request = AlertsRequest(store.tenant, frozenset([store.id]), state="open", limit=MAX_ALERTS)
    page = await visit.alerting.alerts.page(request)
    number = len(page.alerts)
    if page.following:
        return f"{number} open alerts or more"
    return f"{number} open alert{'s' * (number != 1)}" if number else ""


# Flags

FLAG_TEXTS = {
    "above_100": "more than 100 %: the two sides do not count the same people",
    "below_zero": "below zero: the target was exceeded",
    "device_based": "estimated from Wi-Fi",
    "device_days": "over several days, a phone counts once a day",
    "discounts_not_said": "no receipt says its discounts",
    "drift_high": "the counts of people entering and leaving differ a lot",
    "estimate": "an estimate",
    "loading": "loading history",
    "low_coverage": "sensor gaps (under 95 % uptime)",
    "masked": "not shown, because sensors worked for less than half of the time",
    "no_counterpart": "no data last week",
    "stores_differ": "the two periods are not of the same stores",
    "no_net_units": "no more was sold than was returned",
    "no_opening_hours": "the store has no opening hours",
    "no_source": "no sensor of this store feeds it",
    "no_staff_split": "includes staff",
    "open_only": "opening hours only",
    "partly_said": "some receipts do not say it, and are left out",
    "payments_not_said": "no receipt says how it was paid",
    "planned_only": "from planned hours, because worked hours are not known",
    "small_sample": "from few people",
}
DESCRIPTIVE_FLAGS = frozenset(
    {
        "device_based",
        "device_days",
        "drift_high",
        "estimate",
        "low_coverage",
        "open_only",
        "partly_said",
        "small_sample",
    }
)
"""They describe a number, and do not say why there is none."""


def flag_text(flag: str) -> str:
    """What a flag says, in words; an unknown flag as it is."""
    return FLAG_TEXTS.get(flag, flag.replace("_", " "))
