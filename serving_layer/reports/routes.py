"""A day or a week of a tenant: as JSON at `/v1/reports`, and as the page at `/reports` that a mail has, to print."""

from dataclasses import replace
from datetime import date, datetime
from typing import Annotated

from fastapi import APIRouter, FastAPI, Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from serving_layer.api.caller import AnswersOf, Reader
from serving_layer.api.parameters import DEFAULT_TENANT, Day, TenantName, registered_tenant
from serving_layer.keys.key import Caller
from serving_layer.pages.queries import PageQueries
from serving_layer.pages.routing import ReaderVisit, page_router
from serving_layer.reports.document import Document
from serving_layer.reports.period import LENGTHS, ReportPeriod
from serving_layer.reports.report import ReportSources, make_report
from serving_layer.responses.encoding import JSON, encode
from serving_layer.responses.reports import Report, ReportPeriodName
from serving_layer.responses.schemas import returns

router = APIRouter(prefix="/v1", tags=["reports"])
pages = page_router()


class ReportQuery(BaseModel):
    """Query parameters of a report."""

    model_config = ConfigDict(extra="forbid")

    day: Day | None = Field(
        None, description="A business date of the period. Default: the newest period that is over in every store."
    )
    tenant: TenantName = None


def report_sources(app: FastAPI, tenant: str, caller: Caller, now: datetime) -> ReportSources:
    """What a report of a tenant is made from, on behalf of a caller who may see it."""
    state = app.state
    queries = PageQueries(state.answers, replace(caller, tenant=tenant))
    return ReportSources(tenant, queries, state.alerting.alerts, state.freshness, state.operations.corrections, now)


@router.get("/reports/{period}", operation_id="get_report", responses=returns(Report))
async def get_report(
    request: Request,
    period: ReportPeriodName,
    query: Annotated[ReportQuery, Query()],
    answers: AnswersOf,
    caller: Reader,
) -> Response:
    """All stores of a tenant for a day or a week, against the same days of the week before.

    `figures` per metric and currency, `trends` of the last 14 days or 8 weeks, the `best` and `weakest` stores, alerts,
    sensors with gaps, and what the publications of the period corrected of earlier days. What is not known is null with
    a `reason`, never zero. `final_until` and `provisional` say what of it can still change.
    """
    tenant = await registered_tenant(caller, query.tenant, answers)
    sources = report_sources(request.app, tenant, caller, answers.now())
    stores = await sources.queries.stores()
    report = await make_report(sources, ReportPeriod.of(period, query.day, stores, sources.now), stores)
    return Response(encode(report), media_type=JSON)


@pages.get("/reports/{period}")
async def get_report_page(
    visit: ReaderVisit,
    period: ReportPeriodName,
    day: Annotated[Day | None, Query()] = None,
    tenant: Annotated[TenantName, Query()] = None,
) -> Response:
    """The report of a day or a week, with links to the periods beside it."""
    fresh = await visit.fresh()
    caller = visit.visitor.caller
    tenants = sorted({store.tenant for store in await visit.queries.stores()})
    usual = DEFAULT_TENANT if DEFAULT_TENANT in tenants else next(iter(tenants), None)
    chosen = await registered_tenant(caller, tenant or usual, visit.queries.service)
    sources = report_sources(visit.request.app, chosen, caller, fresh.at)
    stores = await sources.queries.stores()
    of = ReportPeriod.of(period, day, stores, fresh.at)
    report = await make_report(sources, of, stores)
    values = {
        "report": Document.of(report),
        "period": period,
        "days": of.days,
        "tenant": chosen if caller.sees_all else "",
        "tenants": tenants,
        "before": (of.start - LENGTHS[period]).isoformat(),
        "after": _following(of),
    }
    return visit.page("report.html", fresh, values)


def _following(of: ReportPeriod) -> date | None:
    """The first day of the period after this one; None if no day of it is over in every store."""
    return of.end if of.end <= of.latest_day else None
