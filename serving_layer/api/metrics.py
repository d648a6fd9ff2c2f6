"""`/v1/metrics`, `/v1/live` and `/v1/index`: the metrics, their values over time, and how they compare to a model."""

from collections.abc import AsyncIterable, AsyncIterator
from functools import partial
from typing import Annotated

from fastapi import APIRouter, Depends, Header, Path, Query, Request, Response
from fastapi.sse import EventSourceResponse, ServerSentEvent
from pydantic import BaseModel, ConfigDict, Field

from serving_layer.api.caller import AnswersOf, Reader, is_still_authorized
from serving_layer.api.conditional_requests import conditional_response
from serving_layer.api.downloads import formatted_response, refuse_beside_points, returns_or_file
from serving_layer.api.parameters import (
    STORES,
    AfterToken,
    AsOfNumber,
    Brands,
    Categories,
    NamedRange,
    PartialFlag,
    RangeEnd,
    RangeStart,
    SkuIds,
    StoreIds,
    TimeZone,
)
from serving_layer.api.staleness import AtLeastToken, MaxStaleness, demand_of, read_answer_version
from serving_layer.caching import etag
from serving_layer.compare.calendar import NAMES as COMPARISONS
from serving_layer.errors import BadQuestionError
from serving_layer.files.formats import Format
from serving_layer.files.tables import Body, Table, metric_table
from serving_layer.index.request import FEWEST_WEEKS, MOST_WEEKS, USUAL_WEEKS, IndexGrain, IndexRequest
from serving_layer.live import CHECK_SECONDS, Event, Live, while_allowed
from serving_layer.products.dimensions import Attributes
from serving_layer.query.context import NAMES as CONTEXTS
from serving_layer.query.ranges import AskedRange
from serving_layer.query.resolve import (
    MOST_METRICS,
    MOST_TOP,
    Hours,
    MetricRequest,
    MetricsRequest,
    Ranking,
    Sort,
    metric_names,
)
from serving_layer.query.stores import MOST_STORES, PageRequest, read_token
from serving_layer.responses.encoding import JSON, encode
from serving_layer.responses.metrics import IndexResponse, MetricList, MetricResponse, MetricsResponse
from serving_layer.responses.schemas import or_not_modified, returns
from serving_layer.timeline import Grain

router = APIRouter(prefix="/v1", tags=["metrics"])
COMPARE = f"What to compare each point with: {', '.join(f'`{name}`' for name in COMPARISONS)}."
CONTEXT = f"What to add to the points, separated by commas: {', '.join(f'`{name}`' for name in CONTEXTS)}."
METRIC = f"A metric, or up to {MOST_METRICS} separated by commas, which are then read from the same version."
BY = (
    "What to split by, repeated or separated by commas: dimensions, and `store` (the default: a series per store), "
    "`total` (one over all stores) or groups of stores such as `group:region`. What is counted by SKU also has "
    "`category` (the first level), `category:2` (two levels) and `brand`."
)
ATTRIBUTES = (
    "Groups of stores and attributes of products as they were on each business day, or the newest ones for all days."
)
SORT = "Order of series: by value over the whole range, by its change (with `compare`), or by name. `-`: descending."
TOP = "Keep this many series, chosen by `sort` (default `-value`); the rest are combined into one with `other: true`."
SHARE = "Add to each point which part of the total it is, in percent. Only for sums."
LIMIT = f"Number of stores per page, in order of their ids; default {MOST_STORES}."


class MetricQuery(BaseModel):
    """Query parameters of a metric."""

    model_config = ConfigDict(extra="forbid")

    store: StoreIds = []
    start: RangeStart = None
    end: RangeEnd = None
    range: NamedRange = None
    grain: Grain | None = Field(None, description="Length of a point. Default: `day`, unless the metric has its own.")
    timezone: TimeZone = None
    by: list[Annotated[str, Field(max_length=400)]] = Field([], max_length=20, description=BY)
    partial: PartialFlag = False
    hours: Hours = Field("all", description="Which windows count: all, or only those inside the opening hours.")
    format: Format = Field("json", description="JSON, or a table with one row per point.")
    compare: str | None = Field(None, max_length=200, description=COMPARE)
    comp: bool = Field(default=False, description="Only comparable stores; `left_out` lists the others.")
    only_covered: bool = Field(default=False, description="Only windows in which the metric's sensors were alive.")
    context: str | None = Field(None, max_length=100, description=CONTEXT)
    attributes: Attributes = Field("as_then", description=ATTRIBUTES)
    sort: Sort | None = Field(None, description=SORT)
    top: int | None = Field(None, ge=1, le=MOST_TOP, description=TOP)
    share: bool = Field(default=False, description=SHARE)
    category: Categories = []
    brand: Brands = []
    sku: SkuIds = []
    as_of: AsOfNumber = None
    at_least: AtLeastToken = None
    max_staleness: MaxStaleness = None

    limit: int | None = Field(None, ge=1, le=MOST_STORES, description=LIMIT)
    after: AfterToken = None

    @property
    def split(self) -> tuple[str, ...]:
        """What the answer is split by."""
        return tuple(name.strip() for names in self.by for name in names.split(","))

    def to_request(self, metric: str) -> MetricsRequest:
        """Return the request to the query service.

        Raises:
            ArgumentMissingError: there is no range.
            BadQuestionError: an argument cannot be read.
            NotAvailableError: the format cannot hold what was requested.
            TooManyMetricsError: there are too many metrics.
        """
        AskedRange(self.start, self.end, self.range).refuse_incomplete()
        refuse_beside_points(self.format, context=self.context, comp=self.comp)
        page = PageRequest(self.limit, None if self.after is None else read_token(self.after))
        requests = tuple(
            MetricRequest(
                name,
                tuple(self.store),
                self.start,
                self.end,
                grain=self.grain,
                timezone=self.timezone,
                by=self.split,
                partial=self.partial,
                as_of=self.as_of,
                hours=self.hours,
                compare=self.compare,
                comp=self.comp,
                context=self.context,
                only_covered=self.only_covered,
                attributes=self.attributes,
                sort=self.sort,
                top=self.top,
                share=self.share,
                category=tuple(self.category),
                brand=tuple(self.brand),
                sku=tuple(self.sku),
                range=self.range,
            )
            for name in metric_names(metric)
        )
        return MetricsRequest(requests, page, is_table=self.format != "json")


@router.get("/metrics", operation_id="list_metrics", responses=or_not_modified(returns(MetricList)))
async def list_metrics(request: Request, answers: AnswersOf, caller: Reader) -> Response:
    """All metrics: their names, how they are calculated, and from which views."""
    tag = etag(("listed metrics",), caller.visibility_scope, (), answers.catalogue.fingerprint)

    async def respond() -> Response:
        return Response(encode(MetricList(answers.catalogue.listed())), media_type=JSON)

    return await conditional_response(request, tag, respond)


@router.get(
    "/metrics/{metric}",
    operation_id="get_metric",
    responses=or_not_modified(returns_or_file(MetricResponse, MetricsResponse)),
)
async def get_metric(
    request: Request,
    metric: Annotated[str, Path(description=METRIC)],
    query: Annotated[MetricQuery, Query()],
    answers: AnswersOf,
    caller: Reader,
) -> Response:
    """One metric over time. `as_of` says what the numbers are based on, `final` which points can no longer change.

    `event_flags` counts the events behind the numbers that are flagged (see the sources), and the receipts that lie
    `outside_opening_hours`; both are included in the numbers. For several metrics, `answers` holds one answer per
    metric, all from one publication and one reading of the speed layer. If more stores follow, `next` is the `after` of
    the next page. Tables have one row per point. The response has an `ETag`.
    """
    metrics = query.to_request(metric)
    read = await read_answer_version(request, answers, metrics.first, caller, query)
    version = read.version
    tag = etag(("metrics", query.format, metrics), caller.visibility_scope, version.key, answers.catalogue.fingerprint)

    def table(body: Body) -> Table:
        bodies = body.get("answers", [body])
        about = {name: part for name, part in body.items() if name in ("as_of", "next")}
        of = [answers.catalogue.metrics[each["metric"]] for each in bodies]
        return metric_table(bodies, of, query.split, Ranking(query.sort, query.top, query.share), about)

    async def respond() -> Response:
        body = await answers.metrics(metrics, version, caller)
        name = [*(each.metric for each in metrics.requests), *AskedRange(query.start, query.end, query.range).words]
        return await formatted_response(query.format, body, table, name)

    return await conditional_response(request, tag, respond, read.provenance, read.headers)


RETRY_MS = 2000
LAST_EVENT_ID = "The `id` of the last event received; the same answer is not sent again."


async def live_events(
    request: Request,
    metric: Annotated[str, Path(description=METRIC)],
    query: Annotated[MetricQuery, Query()],
    caller: Reader,
    last_event_id: Annotated[str | None, Header(max_length=200, description=LAST_EVENT_ID)] = None,
) -> AsyncIterator[AsyncIterator[Event]]:
    """Follow the metric. A dependency, so that a bad request is rejected before the response begins."""
    if query.format != "json":
        raise BadQuestionError("Live answers are always JSON.", do="Leave `format` out.")
    if demand_of(request, query) is not None:
        message = "A live answer follows the newest state, and waits for nothing."
        raise BadQuestionError(message, do="Request `/v1/metrics` with `at_least` or `max_staleness`.")
    live: Live = request.app.state.live
    async with live.follow(query.to_request(metric), caller) as follower:
        yield follower.events(last_event_id)


@router.get("/live/{metric}", operation_id="follow_metric", response_class=EventSourceResponse)
async def follow_metric(
    request: Request, caller: Reader, events: Annotated[AsyncIterator[Event], Depends(live_events)]
) -> AsyncIterable[ServerSentEvent]:
    """The response of `/v1/metrics/{metric}`, now and whenever it changes, as server-sent events named `answer`.

    Each event is a complete answer, so a missed event does no harm. `Last-Event-ID` continues after an event. An event
    named `problem` says why there is no answer at the moment. The stream ends when the key expires, and within seconds
    after it is revoked; one that was opened with a browser session also ends with that session.
    """
    is_allowed = partial(is_still_authorized, request, caller)
    async for event in while_allowed(events, is_allowed, CHECK_SECONDS):
        yield ServerSentEvent(raw_data=event.data, event=event.kind, id=event.id or None, retry=RETRY_MS)


index_router = APIRouter(prefix="/v1", tags=["index"])
INDEX_EXAMPLE = {
    "metric": "net_sales",
    "kind": "model",
    "grain": "day",
    "history_weeks": 13,
    "interval_percent": 95,
    "series": [
        {
            "store": "1",
            "timezone": "Europe/Bratislava",
            "unit": "money",
            "currency": "EUR",
            "history": {"from": "2025-12-05T23:00:00Z", "to": "2026-03-06T23:00:00Z", "points": 91},
            "factors": {"temperature": {"0 to 10": 1.0211, "below 0": 0.9388}, "rain": {"dry": 1.0534, "wet": 0.8612}},
            "points": [
                {
                    "start": "2026-03-06T23:00:00Z",
                    "value": 1311.4,
                    "expected": 1190.27,
                    "index": 110.18,
                    "interval": {"low": 94.6, "high": 125.76},
                    "points_used": 12,
                    "conditions": {"temperature": "0 to 10", "rain": False, "holidays": []},
                    "final": True,
                }
            ],
        }
    ],
    "as_of": {
        "publication": 41,
        "cut": "2026-03-08T00:00:00.000Z",
        "speed_as_of": "2026-03-08T00:04:10.250Z",
        "waiting_for_batch": 0,
        "layers": ["batch", "speed"],
    },
}


class IndexQuery(BaseModel):
    """The parameters of a metric that the index supports, and how much history the model uses."""

    model_config = ConfigDict(extra="forbid")

    store: StoreIds = Field([], description=f"{STORES} At most 20.")
    start: RangeStart = None
    end: RangeEnd = None
    range: NamedRange = None
    grain: IndexGrain = Field("day", description="Whole hours or whole days: all that the range overlaps.")
    timezone: TimeZone = None
    history_weeks: int = Field(
        USUAL_WEEKS, ge=FEWEST_WEEKS, le=MOST_WEEKS, description="Weeks before `from` that the model is fitted to."
    )
    hours: Hours = Field("all", description="Which windows count: all, or only those inside the opening hours.")
    partial: PartialFlag = False
    as_of: AsOfNumber = None
    at_least: AtLeastToken = None
    max_staleness: MaxStaleness = None


@index_router.get(
    "/index/{metric}",
    operation_id="get_index",
    summary="A metric against what a model expected",
    responses=or_not_modified(returns(IndexResponse, example=INDEX_EXAMPLE)),
)
async def get_index(
    request: Request,
    metric: str,
    query: Annotated[IndexQuery, Query()],
    answers: AnswersOf,
    caller: Reader,
) -> Response:
    """100 x value / the value that a model expected for this hour of the week, weather and holiday. Not exact.

    `expected` comes from the store's own history before `from`. If 100 lies in `interval`, the value is not unusual, at
    95 %. Where there is too little history, `index` is null and a flag says why.
    """
    AskedRange(query.start, query.end, query.range).refuse_incomplete()
    index = IndexRequest(
        metric,
        tuple(query.store),
        query.start,
        query.end,
        query.grain,
        query.timezone,
        query.partial,
        query.as_of,
        query.hours,
        query.history_weeks,
        query.range,
    )
    read = await read_answer_version(request, answers, index, caller, query)
    version = read.version
    tag = etag(("index", index), caller.visibility_scope, version.key, answers.catalogue.fingerprint)

    async def respond() -> Response:
        return Response(await answers.index(index, version, caller), media_type=JSON)

    return await conditional_response(request, tag, respond, read.provenance, read.headers)
