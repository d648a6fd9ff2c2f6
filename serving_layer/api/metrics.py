"""`/v1/metrics`: which numbers there are, and each of them over time."""

from typing import Annotated, Literal

import orjson
from fastapi import APIRouter, Query, Response
from pydantic import BaseModel, ConfigDict, Field

from serving_layer.api.caller import AnswersOf, ByOperator
from serving_layer.api.numbers import AsOfNumber
from serving_layer.comparison import NAMES as COMPARISONS
from serving_layer.context import NAMES as CONTEXTS
from serving_layer.questions import Hours, MetricAsk
from serving_layer.refusals import NotAvailable
from serving_layer.timeline import Grain

router = APIRouter(prefix="/v1", tags=["metrics"])
JSON = "application/json"
COMPARE = f"What each point is compared with: {', '.join(f'`{name}`' for name in COMPARISONS)}."
CONTEXT = f"What stands beside the points, separated by commas: {', '.join(f'`{name}`' for name in CONTEXTS)}."


class MetricQuestion(BaseModel):
    """`format` belongs to the interface, but only JSON is answered yet: asking for another one is refused."""

    model_config = ConfigDict(extra="forbid")

    store: list[str] = Field([], description="Store ids; all registered stores if none is named.")
    start: str = Field(alias="from", max_length=40, description="First instant or local date; inclusive.")
    end: str = Field(alias="to", max_length=40, description="Last instant or local date; exclusive.")
    grain: Grain | None = Field(None, description="How windows are put together: `day`, unless the metric has its own.")
    timezone: str | None = Field(None, max_length=64, description="Each store's own if it is left out.")
    by: list[str] = Field([], description="Dimensions to split by.")
    partial: bool = Field(default=False, description="Answer from batch alone, labelled, when speed is missing.")
    hours: Hours = Field("all", description="Which windows count: all, or those inside the opening hours.")
    format: Literal["json", "csv", "parquet", "arrow"] = "json"
    compare: str | None = Field(None, max_length=200, description=COMPARE)
    comp: bool = Field(default=False, description="Comparable stores only; the others are listed in `left_out`.")
    only_covered: bool = Field(default=False, description="Only windows in which the metric's sensors were alive.")
    context: str | None = Field(None, max_length=100, description=CONTEXT)
    as_of: AsOfNumber = None

    def refuse_what_is_missing(self) -> None:
        """Raise NotAvailable for an argument that would change the answer if it were understood."""
        if self.format != "json":
            raise NotAvailable(f"`format={self.format}` is not answered yet.", do="Leave `format` out.")


@router.get("/metrics", operation_id="list_metrics")
async def list_metrics(answers: AnswersOf) -> Response:
    """Every metric: what it is called, how it is made, and from which views."""
    return Response(orjson.dumps({"metrics": answers.catalogue.listed()}), media_type=JSON)


@router.get("/metrics/{metric}", operation_id="get_metric")
async def get_metric(
    metric: str, asked: Annotated[MetricQuestion, Query()], answers: AnswersOf, by_operator: ByOperator
) -> Response:
    """One metric over time. `as_of` says what the numbers rest on; `final` says which points can still change.

    `event_flags` says how many of the events behind the numbers are odd (see the sources), and how many receipts lie
    `outside_opening_hours`; they count all the same.
    """
    asked.refuse_what_is_missing()
    ask = MetricAsk(
        metric, tuple(asked.store), asked.start, asked.end, asked.grain, asked.timezone, tuple(asked.by),
        asked.partial, asked.as_of, asked.hours, asked.compare, asked.comp, asked.context,
        asked.only_covered,
    )  # fmt: skip
    return Response(await answers.metric(ask, by_operator=by_operator), media_type=JSON)
