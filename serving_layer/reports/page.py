"""`/reports/daily` and `/reports/weekly`: the report that a mail has, to look at and to print."""

from datetime import date
from typing import Annotated

from fastapi import Query, Response

from serving_layer.api.parameters import DEFAULT_TENANT, Day, TenantName, registered_tenant
from serving_layer.pages.routing import ReaderVisit, page_router
from serving_layer.reports.document import Document
from serving_layer.reports.period import LENGTHS, ReportPeriod
from serving_layer.reports.report import make_report
from serving_layer.reports.rest import report_sources
from serving_layer.responses.reports import ReportPeriodName

router = page_router()


@router.get("/reports/{period}")
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
