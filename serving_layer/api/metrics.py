"""`/v1/metrics`: which numbers there are, and one or several of them over time."""

from typing import Annotated

from fastapi import APIRouter, Path, Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from serving_layer.api.caller import AnswersOf, Reader
from serving_layer.api.conditional import unless_known, wants_newest
from serving_layer.api.downloads import in_form, refuse_beside_points, returns_or_file
from serving_layer.api.numbers import AsOfNumber
from serving_layer.api.provenance import RestsOn
from serving_layer.caching.etag import etag
from serving_layer.compare.comparison import NAMES as COMPARISONS
from serving_layer.context import NAMES as CONTEXTS
from serving_layer.files.body import Body
from serving_layer.files.formats import Format
from serving_layer.files.metric_table import metric_table
from serving_layer.files.table import Table
from serving_layer.query.known_stores import MOST_STORES
from serving_layer.query.metrics_answer import MOST_METRICS, MetricsAsk, named
from serving_layer.query.questions import Hours, MetricAsk
from serving_layer.query.store_page import Page, read_token
from serving_layer.query.timeline import Grain
from serving_layer.responses.encoding import JSON, encode
from serving_layer.responses.metrics import MetricList, MetricResponse, MetricsResponse
from serving_layer.responses.schemas import or_known, returns

router = APIRouter(prefix="/v1", tags=["metrics"])
COMPARE = f"What each point is compared with: {', '.join(f'`{name}`' for name in COMPARISONS)}."
CONTEXT = f"What stands beside the points, separated by commas: {', '.join(f'`{name}`' for name in CONTEXTS)}."
METRIC = f"A metric, or up to {MOST_METRICS} separated by commas: then all are of one moment."
LIMIT = f"How many stores are in a page, by id; {MOST_STORES} if it is left out."
AFTER = "`next` of the page before."


class MetricQuestion(BaseModel):
    """What may be asked of a metric."""

    model_config = ConfigDict(extra="forbid")

    store: list[str] = Field([], description="Store ids; all registered stores if none is named.")
    start: str = Field(alias="from", max_length=40, description="First instant or local date; inclusive.")
    end: str = Field(alias="to", max_length=40, description="Last instant or local date; exclusive.")
    grain: Grain | None = Field(None, description="How windows are put together: `day`, unless the metric has its own.")
    timezone: str | None = Field(None, max_length=64, description="Each store's own if it is left out.")
    by: list[str] = Field([], description="Dimensions to split by.")
    partial: bool = Field(default=False, description="Answer from batch alone, labelled, when speed is missing.")
    hours: Hours = Field("all", description="Which windows count: all, or those inside the opening hours.")
    format: Format = Field("json", description="JSON, or a table with a row per point.")
    compare: str | None = Field(None, max_length=200, description=COMPARE)
    comp: bool = Field(default=False, description="Comparable stores only; the others are listed in `left_out`.")
    only_covered: bool = Field(default=False, description="Only windows in which the metric's sensors were alive.")
    context: str | None = Field(None, max_length=100, description=CONTEXT)
    as_of: AsOfNumber = None

    limit: int | None = Field(None, ge=1, le=MOST_STORES, description=LIMIT)
    after: str | None = Field(None, max_length=2048, description=AFTER)

    def understood(self, metric: str) -> MetricsAsk:
        """BadQuestion, TooManyMetrics, NotAvailable."""
        refuse_beside_points(self.format, context=self.context, comp=self.comp)
        page = Page(self.limit, None if self.after is None else read_token(self.after))
        asks = tuple(
            MetricAsk(
                name,
                tuple(self.store),
                self.start,
                self.end,
                self.grain,
                self.timezone,
                tuple(self.by),
                self.partial,
                self.as_of,
                self.hours,
                self.compare,
                self.comp,
                self.context,
                self.only_covered,
            )
            for name in named(metric)
        )
        return MetricsAsk(asks, page, is_table=self.format != "json")


@router.get("/metrics", operation_id="list_metrics", responses=or_known(returns(MetricList)))
async def list_metrics(request: Request, answers: AnswersOf, caller: Reader) -> Response:
    """Every metric: what it is called, how it is made, and from which views."""
    tag = etag(("listed metrics",), caller.sight, (), answers.catalogue.fingerprint)

    async def answer() -> Response:
        return Response(encode(MetricList(answers.catalogue.listed())), media_type=JSON)

    return await unless_known(request, tag, answer)


@router.get(
    "/metrics/{metric}", operation_id="get_metric", responses=or_known(returns_or_file(MetricResponse, MetricsResponse))
)
async def get_metric(
    request: Request,
    metric: Annotated[str, Path(description=METRIC)],
    asked: Annotated[MetricQuestion, Query()],
    answers: AnswersOf,
    caller: Reader,
) -> Response:
    """One metric over time. `as_of` says what the numbers rest on; `final` says which points can still change.

    `event_flags` says how many of the events behind the numbers are odd (see the sources), and how many receipts lie
    `outside_opening_hours`; they count all the same. Of several metrics the answer holds each one's own in `answers`,
    all of one publication and one reading of speed. Where more stores follow, `next` says where to go on. Tables have a
    row per point. An answer has an `ETag`.
    """
    ask = asked.understood(metric)
    moment = await answers.moment(ask.one, at_once=wants_newest(request.headers.get("cache-control")))
    tag = etag(("metrics", asked.format, ask), caller.sight, moment.mark, answers.catalogue.fingerprint)

    def made(told: Body) -> Table:
        bodies = told.get("answers", [told])
        about = {name: part for name, part in told.items() if name in ("as_of", "next")}
        return metric_table(bodies, [answers.catalogue.metrics[each["metric"]] for each in bodies], asked.by, about)

    async def answer() -> Response:
        body = await answers.metrics(ask, moment, caller)
        return await in_form(asked.format, body, made, [*(each.metric for each in ask.asks), asked.start, asked.end])

    return await unless_known(request, tag, answer, RestsOn(ask.one, moment))
