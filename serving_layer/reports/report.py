"""Makes the report of a period from metric queries, alerts and ledgers.

Its numbers are totals of one answer each, all of one publication and one reading of speed.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import NamedTuple

from msgspec import UNSET, UnsetType

from master_dataset.registry.stores import Store
from serving_layer.admin.corrections import CorrectionsService
from serving_layer.alerts.history import AlertListing, AlertsRequest, AuditReader, StoredAlert, audited_cut
from serving_layer.pages.business_day import is_closed
from serving_layer.pages.charts import provisional_share
from serving_layer.pages.language import gettext_noop
from serving_layer.pages.queries import PageQueries, PageQuery, QueryFailure, QueryResult
from serving_layer.query.stores import MOST_STORES
from serving_layer.reports.corrections import corrections_of
from serving_layer.reports.period import LENGTHS, ReportPeriod
from serving_layer.responses.encoding import Number, iso_instant
from serving_layer.responses.metrics import AsOf, MetricResponse, Point, Provenance, Series, StoreCounts, Value
from serving_layer.responses.reports import (
    Report,
    ReportAlert,
    ReportAlerts,
    ReportFigure,
    ReportProvisional,
    ReportSensorGap,
    ReportStore,
    ReportTrend,
    ReportTrendPoint,
)
from serving_layer.timeline import zone_named
from views.core.local_time import ONE_DAY

SALES = "net_sales"
METRICS = (SALES, "traffic_in", "conversion_rate", "avg_transaction_value", "total_transactions_count")
"""In the order of the report."""
COVERAGE = "coverage"
COVERED_PERCENT = 95
"""Below it, sensors have gaps, as `low_coverage` says."""
STORES_RANKED, GAPS_SHOWN, ALERTS_SHOWN, ALERTS_COUNTED = 5, 10, 10, 1000
REASONS = {
    "loading": gettext_noop("history is still loading"),
    "masked": gettext_noop("sensors worked for less than half of the time"),
    "no_source": gettext_noop("no store has a sensor for it"),
    "no_opening_hours": gettext_noop("opening hours are not known"),
}
"""Why a value is not known, by the flag of its point."""
NOTHING_COUNTED = {
    "conversion_rate": gettext_noop("no visitors were counted"),
    "avg_transaction_value": gettext_noop("there are no sale receipts"),
    COVERAGE: gettext_noop("no sensor is registered"),
}
NO_DATA = gettext_noop("there is no data")


@dataclass(frozen=True)
class ReportSources:
    """What a report is made from. `queries`: on behalf of somebody who sees the stores of the tenant alone."""

    tenant: str
    queries: PageQueries
    alerts: AlertListing
    audits: AuditReader
    ledgers: CorrectionsService
    now: datetime


class _Answers(NamedTuple):
    """The answers of a report. `figures`: one per metric."""

    figures: Sequence[QueryResult]
    hours: QueryResult
    days: QueryResult
    best: QueryResult
    weakest: QueryResult
    coverage: QueryResult | None = None

    @property
    def failures(self) -> list[str]:
        """What could not be answered, each reason once."""
        every = (*self.figures, *self[1:])
        return list(dict.fromkeys(each.message for each in every if isinstance(each, QueryFailure)))

    @property
    def as_of(self) -> AsOf | None:
        """The data that they were computed from; None if there is no answer."""
        return next((each.as_of for each in self.figures if isinstance(each, MetricResponse)), None)


async def make_report(sources: ReportSources, period: ReportPeriod, stores: Sequence[Store]) -> Report:
    """The report of a period.

    Args:
        sources: what it is made from.
        period: which days it is about.
        stores: all stores of the tenant.

    Raises:
        GalateaError: alerts, ledgers or the registry cannot be read. What a query refuses is in `problems`.
    """
    queries = sources.queries
    published = queries.service.readers.published
    answers = await _answered(queries, period, stores) if stores else None
    as_of = _provenance(answers.as_of) if answers and answers.as_of else await queries.provenance()
    by_id = {store.id: store for store in stores}
    figures = _figures(queries, answers) if answers else []
    return Report(
        tenant=sources.tenant,
        period=period.name,
        days=period.days,
        compared=period.compared,
        latest_day=period.latest_day,
        over=period.is_over,
        made_at=iso_instant(sources.now.replace(microsecond=0)),
        as_of=as_of,
        final_until=as_of.cut if as_of.publication else None,
        final=bool(figures) and all(each.final for each in figures),
        provisional=_provisional(answers.hours) if answers else [],
        stores=len(stores),
        timezone=zones.pop() if len(zones := {store.timezone for store in stores}) == 1 else None,
        figures=figures,
        trends=_trends(answers.days, period) if answers else [],
        best=_ranked(answers.best, by_id) if answers else [],
        weakest=_weakest(answers, by_id, period) if answers else [],
        alerts=await _alerts(sources, period, by_id),
        sensor_gaps=_gaps(answers.coverage, by_id) if answers else [],
        corrections=await corrections_of(period, by_id, published, sources.ledgers, sources.now),
        problems=answers.failures if answers else [],
    )


async def _answered(queries: PageQueries, period: ReportPeriod, of: Sequence[Store]) -> _Answers:
    start, end = period.start.isoformat(), period.end.isoformat()
    is_partial = await queries.is_partial()
    total = PageQuery(SALES, start=start, end=end, grain="total", by=("total",), partial=is_partial)
    compared = replace(total, compare="previous_week")
    stores = replace(compared, by=(), top=STORES_RANKED)
    opened = tuple(store.id for store in of if not _was_closed(store, period))
    sensed = tuple(store.id for store in of if _has_sensor(store, period))
    # Where stores are so many that only some can be named, it is those of whose sensors there are signs.
    gaps = replace(total, metric=COVERAGE, stores=sensed, by=(), sort="value")
    gaps = gaps if len(sensed) <= MOST_STORES else replace(gaps, top=GAPS_SHOWN)
    results = await queries.answer_all(
        [
            *(replace(compared, metric=metric) for metric in METRICS),
            replace(total, grain="hour"),
            replace(total, grain="day", start=period.trend_start.isoformat()),
            replace(stores, sort="-value"),
            replace(stores, sort="value", stores=opened if len(opened) < len(of) else ()),
            *([gaps] if sensed else []),
        ]
    )
    return _Answers(results[: len(METRICS)], *results[len(METRICS) :])


def _was_closed(store: Store, period: ReportPeriod) -> bool:
    """Whether it was closed on every day of the period: it is not among the weakest."""
    days = (period.end - period.start) // ONE_DAY
    return all(is_closed(store, period.start + number * ONE_DAY) for number in range(days))


def _has_sensor(store: Store, period: ReportPeriod) -> bool:
    """Whether it registers a sensor for a day of the period."""
    return any(
        (each.since is None or each.since < period.end) and (each.until is None or each.until > period.start)
        for each in store.sensors
    )


def _provenance(as_of: AsOf) -> Provenance:
    return Provenance(
        as_of.publication, as_of.cut, as_of.speed_as_of, as_of.layers, missing=as_of.missing, loading=as_of.loading
    )


# Figures


def _figures(queries: PageQueries, answers: _Answers) -> list[ReportFigure]:
    found = []
    for metric, result in zip(METRICS, answers.figures, strict=True):
        of = queries.service.catalogue.metrics[metric]
        every: Sequence[Series | None] = _series(result) or [None]
        for series in every:
            point = series.points[-1] if series else None
            change = point.change if point else UNSET
            change_points = point.change_points if point else UNSET
            found.append(
                ReportFigure(
                    metric=metric,
                    name=of.name,
                    unit=of.unit,
                    currency=_code(result, series) if of.unit == "money" and series else None,
                    value=_number(point.value) if point else None,
                    reason=_reason(metric, point) if point else _failure(result),
                    before=_number(point.before) if point else None,
                    change=None if change is UNSET else change,
                    change_points=None if change_points is UNSET else change_points,
                    final=point is not None and point.final,
                    stores=series.stores if series and isinstance(series.stores, StoreCounts) else None,
                )
            )
    return found


def _failure(result: QueryResult) -> str:
    """Why an answer has no series."""
    return result.message if isinstance(result, QueryFailure) else NO_DATA


def _reason(metric: str, point: Point) -> str | None:
    """Why the value of a point is not known; None if it is known."""
    if point.value is not None:
        return None
    flags = point.flags if point.flags is not UNSET else ()
    known = next((REASONS[flag] for flag in flags if flag in REASONS), None)
    return known or NOTHING_COUNTED.get(metric, NO_DATA)


def _number(value: Value | UnsetType) -> Number | None:
    """The value of a metric that is no list; None if it is not known."""
    return value if isinstance(value, Number) else None


def _code(result: QueryResult, series: Series) -> str:
    shared = result.currency if isinstance(result, MetricResponse) else None
    code = series.currency if series.currency is not UNSET else shared
    return code if isinstance(code, str) else ""


def _series(result: QueryResult) -> Sequence[Series]:
    """Without those that hold what `top` leaves out."""
    return () if isinstance(result, QueryFailure) else [each for each in result.series if each.other is UNSET]


def _provisional(hours: QueryResult) -> list[ReportProvisional]:
    return [ReportProvisional(_code(hours, each), provisional_share(each.points)) for each in _series(hours)]


def _trends(days: QueryResult, period: ReportPeriod) -> list[ReportTrend]:
    return [ReportTrend(_code(days, each), _trend(each.points, period)) for each in _series(days)]


def _trend(points: Sequence[Point], period: ReportPeriod) -> list[ReportTrendPoint]:
    """Days, or their sums by week. A week of which a day is not known is not known."""
    step = LENGTHS[period.name]
    by_start: dict[date, list[Point]] = {}
    for each in points:
        if isinstance(each.business_date, date):
            start = period.trend_start + (each.business_date - period.trend_start) // step * step
            by_start.setdefault(start, []).append(each)
    return [_trend_point(start, of) for start, of in by_start.items()]


def _trend_point(start: date, points: Sequence[Point]) -> ReportTrendPoint:
    unknown = next((reason for each in points if (reason := _reason(SALES, each))), None)
    total = sum((Decimal(_number(each.value) or 0) for each in points), Decimal(0))
    return ReportTrendPoint(start, None if unknown else total, unknown, all(each.final for each in points))


# Stores


def _ranked(result: QueryResult, stores: Mapping[str, Store]) -> list[ReportStore]:
    found = []
    for series in _series(result):
        store, point = stores[str(series.store)], series.points[-1]
        change = None if point.change is UNSET else point.change
        code = _code(result, series)
        reason = _reason(SALES, point)
        found.append(ReportStore(store.id, _name(store), code, _number(point.value), reason, change, point.final))
    return found


def _weakest(answers: _Answers, stores: Mapping[str, Store], period: ReportPeriod) -> list[ReportStore]:
    """Those that sold least, least first, without closed ones and those that are among the best."""
    best = {each.store for each in _ranked(answers.best, stores)}
    found = [each for each in _ranked(answers.weakest, stores) if each.store not in best]
    return [each for each in found if not _was_closed(stores[each.store], period)]


def _gaps(result: QueryResult | None, stores: Mapping[str, Store]) -> list[ReportSensorGap]:
    """Those with the longest gaps first. All queried stores register sensors, so nothing is known of silent ones."""
    found = []
    for series in _series(result) if result else ():
        point = series.points[-1]
        covered = _number(point.value)
        is_silent = covered is None and point.flags is UNSET
        if is_silent or (covered is not None and covered < COVERED_PERCENT):
            store = stores[str(series.store)]
            found.append(ReportSensorGap(store.id, _name(store), covered))
    return sorted(found, key=lambda gap: gap.coverage or 0)[:GAPS_SHOWN]


def _name(store: Store) -> str:
    return store.name or f"Store {store.id}"


# Alerts


async def _alerts(sources: ReportSources, period: ReportPeriod, stores: Mapping[str, Store]) -> ReportAlerts:
    cut = await audited_cut(sources.audits, sources.queries.service.readers.published)
    since, until = period.span
    ask = AlertsRequest(sources.tenant, limit=ALERTS_COUNTED)
    is_open = await sources.alerts.page(replace(ask, state="open"))
    raised = await sources.alerts.page(replace(ask, since=since, until=min(until, sources.now + timedelta(days=1))))
    return ReportAlerts(
        as_of=iso_instant(raised.kept.as_of),
        open_count=len(is_open.alerts),
        raised_count=len(raised.alerts),
        more=is_open.following is not None or raised.following is not None,
        open=[_alert(each, stores, cut) for each in is_open.alerts[:ALERTS_SHOWN]],
        raised=[_alert(each, stores, cut) for each in raised.alerts[:ALERTS_SHOWN]],
    )


def _alert(stored: StoredAlert, stores: Mapping[str, Store], cut: datetime) -> ReportAlert:
    alert = stored.alert
    store = stores.get(alert.store) or Store(id=alert.store, timezone="UTC")
    local = stored.raised_at.astimezone(zone_named(store.timezone))
    return ReportAlert(
        alert_id=stored.alert_id,
        store=store.id,
        name=_name(store),
        currency=store.currency.code,
        state=stored.state,
        sentence=alert.sentence,
        raised_at=iso_instant(stored.raised_at),
        raised_at_local=local.isoformat(timespec="minutes"),
        provisional=stored.is_provisional(cut),
    )
