"""`/v1/metrics`, `/v1/live` and `/v1/index`: the metrics, their values over time, and how they compare to a model."""

from collections.abc import AsyncIterable, AsyncIterator
from typing import TYPE_CHECKING, Annotated

from fastapi import APIRouter, Depends, Header, Path, Query, Request, Response
from fastapi.sse import EventSourceResponse, ServerSentEvent
from pydantic import BaseModel, ConfigDict, Field

from master_dataset.errors import GalateaError
from serving_layer.api.caller import AnswersOf, Reader
from serving_layer.api.conditional_requests import AnswerProvenance, conditional_response, requires_fresh
from serving_layer.api.downloads import formatted_response, refuse_beside_points, returns_or_file
from serving_layer.api.parameters import AsOfNumber
from serving_layer.caching import etag
from serving_layer.compare.calendar import NAMES as COMPARISONS
from serving_layer.context.kinds import NAMES as CONTEXTS
from serving_layer.errors import BadQuestionError
from serving_layer.files.formats import Format
from serving_layer.files.tables import Body, Table, metric_table
from serving_layer.index.request import FEWEST_WEEKS, MOST_WEEKS, USUAL_WEEKS, IndexGrain, IndexRequest
from serving_layer.query.live import Event, Live
from serving_layer.query.resolve import MOST_METRICS, Hours, MetricRequest, MetricsRequest, metric_names
from serving_layer.query.stores import MOST_STORES, PageRequest, read_token
from serving_layer.query.timeline import Grain
from serving_layer.responses.encoding import JSON, encode
from serving_layer.responses.metrics import IndexResponse, MetricList, MetricResponse, MetricsResponse
from serving_layer.responses.schemas import or_not_modified, returns

if TYPE_CHECKING:
    from serving_layer.keys.authenticator import Authenticator

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

    def understood(self, metric: str) -> MetricsRequest:
        """BadQuestionError, TooManyMetricsError, NotAvailableError."""
        refuse_beside_points(self.format, context=self.context, comp=self.comp)
        page = PageRequest(self.limit, None if self.after is None else read_token(self.after))
        asks = tuple(
            MetricRequest(
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
            for name in metric_names(metric)
        )
        return MetricsRequest(asks, page, is_table=self.format != "json")


@router.get("/metrics", operation_id="list_metrics", responses=or_not_modified(returns(MetricList)))
async def list_metrics(request: Request, answers: AnswersOf, caller: Reader) -> Response:
    """Every metric: what it is called, how it is made, and from which views."""
    tag = etag(("listed metrics",), caller.visibility_scope, (), answers.catalogue.fingerprint)

    async def answer() -> Response:
        return Response(encode(MetricList(answers.catalogue.listed())), media_type=JSON)

    return await conditional_response(request, tag, answer)


@router.get(
    "/metrics/{metric}",
    operation_id="get_metric",
    responses=or_not_modified(returns_or_file(MetricResponse, MetricsResponse)),
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
    moment = await answers.read_version(ask.first, fresh=requires_fresh(request.headers.get("cache-control")))
    tag = etag(("metrics", asked.format, ask), caller.visibility_scope, moment.key, answers.catalogue.fingerprint)

    def made(told: Body) -> Table:
        bodies = told.get("answers", [told])
        about = {name: part for name, part in told.items() if name in ("as_of", "next")}
        return metric_table(bodies, [answers.catalogue.metrics[each["metric"]] for each in bodies], asked.by, about)

    async def answer() -> Response:
        body = await answers.metrics(ask, moment, caller)
        return await formatted_response(
            asked.format, body, made, [*(each.metric for each in ask.requests), asked.start, asked.end]
        )

    return await conditional_response(request, tag, answer, AnswerProvenance(ask.first, moment))


RETRY_MS = 2000
LAST = "The `id` of the last event that came: the same answer does not come again."


async def events_of(
    request: Request,
    metric: Annotated[str, Path(description=METRIC)],
    asked: Annotated[MetricQuestion, Query()],
    caller: Reader,
    last_event_id: Annotated[str | None, Header(max_length=200, description=LAST)] = None,
) -> AsyncIterator[AsyncIterator[Event]]:
    """The events of a question. What refuses the question refuses it here, before anything is sent."""
    if asked.format != "json":
        raise BadQuestionError("Live answers are JSON.", do="Leave `format` out.")
    live: Live = request.app.state.live
    async with live.follow(asked.understood(metric), caller) as follower:
        yield follower.events(last_event_id)


@router.get("/live/{metric}", operation_id="follow_metric", response_class=EventSourceResponse)
async def follow_metric(
    request: Request, caller: Reader, events: Annotated[AsyncIterator[Event], Depends(events_of)]
) -> AsyncIterable[ServerSentEvent]:
    """The answer of `/v1/metrics/{metric}` to the same question, at once and whenever it changes, as an event `answer`.

    Each event is a whole answer, so one that was missed is made up for by the next. `Last-Event-ID` goes on after an
    event. An event `problem` says why there is no answer just now. A key that ends, ends the events.
    """
    authenticator: Authenticator = request.app.state.authenticator
    async for event in events:
        try:
            now = await authenticator.keys.caller(request.headers.get("Authorization"))
        except GalateaError:  # nothing can be refused any more, only ended
            return
        if now != caller:
            return
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


class IndexQuestion(BaseModel):
    """The arguments of a metric that a model has an answer to, and how much history it is made from."""

    model_config = ConfigDict(extra="forbid")

    store: list[str] = Field([], description="Store ids; all registered stores if none is named. At most 20.")
    start: str = Field(alias="from", max_length=40, description="First instant or local date; inclusive.")
    end: str = Field(alias="to", max_length=40, description="Last instant or local date; exclusive.")
    grain: IndexGrain = Field("day", description="Whole hours or days: all that the range touches.")
    timezone: str | None = Field(None, max_length=64, description="Each store's own if it is left out.")
    history_weeks: int = Field(
        USUAL_WEEKS, ge=FEWEST_WEEKS, le=MOST_WEEKS, description="The model is made from so many weeks before `from`."
    )
    hours: Hours = Field("all", description="Which windows count: all, or those inside the opening hours.")
    partial: bool = Field(default=False, description="Answer from batch alone, labelled, when speed is missing.")
    as_of: AsOfNumber = None


@index_router.get(
    "/index/{metric}",
    operation_id="get_index",
    summary="A metric against what a model expected",
    responses=or_not_modified(returns(IndexResponse, example=INDEX_EXAMPLE)),
)
async def get_index(
    request: Request,
    metric: str,
    asked: Annotated[IndexQuestion, Query()],
    answers: AnswersOf,
    caller: Reader,
) -> Response:
    """A model, not an exact number: 100 x value / what was to be expected of the hour of the week, weather and holiday.

    `expected` comes from the store's own history before `from`. `interval`: if 100 lies in it, the value is nothing out
    of the ordinary, at 95 %. `index` is null, and a flag says why, where there is too little history.
    """
    ask = IndexRequest(
        metric,
        tuple(asked.store),
        asked.start,
        asked.end,
        asked.grain,
        asked.timezone,
        asked.partial,
        asked.as_of,
        asked.hours,
        asked.history_weeks,
    )
    moment = await answers.read_version(ask, fresh=requires_fresh(request.headers.get("cache-control")))
    tag = etag(("index", ask), caller.visibility_scope, moment.key, answers.catalogue.fingerprint)

    async def answer() -> Response:
        return Response(await answers.index(ask, moment, caller), media_type=JSON)

    return await conditional_response(request, tag, answer, AnswerProvenance(ask, moment))
