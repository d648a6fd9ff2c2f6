"""`/v1/views/{view}/cells`: what a number is made of, layer by layer."""

from typing import Annotated

from fastapi import APIRouter, Query, Response
from pydantic import BaseModel, ConfigDict, Field

from serving_layer.api.caller import AnswersOf, ByOperator
from serving_layer.api.numbers import AsOfNumber
from serving_layer.questions import CellsAsk

router = APIRouter(prefix="/v1", tags=["views"])


class CellsQuestion(BaseModel):
    """Bounds are read in each store's time zone when they are dates."""

    model_config = ConfigDict(extra="forbid")

    store: list[str] = Field([], description="Store ids; all registered stores if none is named.")
    start: str = Field(alias="from", max_length=40, description="First instant or local date; inclusive.")
    end: str = Field(alias="to", max_length=40, description="Last instant or local date; exclusive.")
    partial: bool = Field(default=False, description="Answer from batch alone, labelled, when speed is missing.")
    as_of: AsOfNumber = None


@router.get("/views/{view}/cells", operation_id="get_cells")
async def get_cells(
    view: str, asked: Annotated[CellsQuestion, Query()], answers: AnswersOf, by_operator: ByOperator
) -> Response:
    """The states of each cell from batch, from speed, and merged. Money is in minor units here."""
    ask = CellsAsk(view, tuple(asked.store), asked.start, asked.end, asked.partial, asked.as_of)
    return Response(await answers.cells(ask, by_operator=by_operator), media_type="application/json")
