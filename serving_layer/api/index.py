"""`/v1/index`: how a metric stands to what a model expected of it. Outside the exact metrics."""

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from serving_layer.api.caller import AnswersOf, Reader
from serving_layer.api.conditional import unless_known, wants_newest
from serving_layer.api.numbers import AsOfNumber
from serving_layer.api.provenance import RestsOn
from serving_layer.caching.etag import etag
from serving_layer.index.question import FEWEST_WEEKS, MOST_WEEKS, USUAL_WEEKS, IndexAsk, IndexGrain
from serving_layer.query.questions import Hours
from serving_layer.responses.encoding import JSON
from serving_layer.responses.index import IndexResponse
from serving_layer.responses.schemas import or_known, returns

router = APIRouter(prefix="/v1", tags=["index"])
EXAMPLE = {
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


@router.get(
    "/index/{metric}",
    operation_id="get_index",
    summary="A metric against what a model expected",
    responses=or_known(returns(IndexResponse, example=EXAMPLE)),
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
    ask = IndexAsk(
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
    moment = await answers.moment(ask, at_once=wants_newest(request.headers.get("cache-control")))
    tag = etag(("index", ask), caller.sight, moment.mark, answers.catalogue.fingerprint)

    async def answer() -> Response:
        return Response(await answers.index(ask, moment, caller), media_type=JSON)

    return await unless_known(request, tag, answer, RestsOn(ask, moment))
