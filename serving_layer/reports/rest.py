"""`/v1/reports`: a day or a week of a tenant, and what of it is final."""

from dataclasses import replace
from typing import Annotated

from fastapi import APIRouter, Query, Response
from pydantic import BaseModel, ConfigDict, Field

from serving_layer.api.caller import AlertingOf, AnswersOf, FreshnessOf, OperationsOf, Reader
from serving_layer.api.parameters import Day, TenantName, registered_tenant
from serving_layer.pages.queries import PageQueries
from serving_layer.reports.period import ReportPeriod
from serving_layer.reports.report import ReportSources, make_report
from serving_layer.responses.encoding import JSON, encode
from serving_layer.responses.reports import Report, ReportPeriodName
from serving_layer.responses.schemas import returns

router = APIRouter(prefix="/v1", tags=["reports"])


class ReportQuery(BaseModel):
    """Query parameters of a report."""

    model_config = ConfigDict(extra="forbid")

    day: Day | None = Field(
        None, description="A business date of the period. Default: the newest period that is over in every store."
    )
    tenant: TenantName = None


@router.get("/reports/{period}", operation_id="get_report", responses=returns(Report))
async def get_report(  # noqa: PLR0913 - what a report is made from
    period: ReportPeriodName,
    query: Annotated[ReportQuery, Query()],
    answers: AnswersOf,
    freshness: FreshnessOf,
    alerting: AlertingOf,
    operations: OperationsOf,
    caller: Reader,
) -> Response:
    """All stores of a tenant for a day or a week, against the same days of the week before.

    `figures` per metric and currency, `trends` of the last 14 days or 8 weeks, the `best` and `weakest` stores, alerts,
    sensors with gaps, and the corrections since the report before. What is not known is null with a `reason`, never
    zero. `final_until` and `provisional` say what of it can still change.
    """
    tenant = await registered_tenant(caller, query.tenant, answers)
    queries = PageQueries(answers, replace(caller, tenant=tenant))
    now = answers.now()
    sources = ReportSources(tenant, queries, alerting.alerts, freshness, operations.corrections, now)
    stores = await queries.stores()
    report = await make_report(sources, ReportPeriod.of(period, query.day, stores, now), stores)
    return Response(encode(report), media_type=JSON)
