"""`/v1/views/{view}/cells`: what a number is made of, layer by layer."""

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from serving_layer.api.caller import AnswersOf, Reader
from serving_layer.api.conditional import unless_known, wants_newest
from serving_layer.api.downloads import in_form, returns_or_file
from serving_layer.api.numbers import AsOfNumber
from serving_layer.api.provenance import RestsOn
from serving_layer.caching.etag import etag
from serving_layer.files.cells_table import cells_table
from serving_layer.files.formats import Format
from serving_layer.query.questions import CellsAsk
from serving_layer.responses.cells import CellsResponse
from serving_layer.responses.schemas import or_known

router = APIRouter(prefix="/v1", tags=["views"])


class CellsQuestion(BaseModel):
    """Bounds are read in each store's time zone when they are dates."""

    model_config = ConfigDict(extra="forbid")

    store: list[str] = Field([], description="Store ids; all registered stores if none is named.")
    start: str = Field(alias="from", max_length=40, description="First instant or local date; inclusive.")
    end: str = Field(alias="to", max_length=40, description="Last instant or local date; exclusive.")
    partial: bool = Field(default=False, description="Answer from batch alone, labelled, when speed is missing.")
    format: Format = Field("json", description="JSON, or a table with a row per cell.")
    as_of: AsOfNumber = None


@router.get("/views/{view}/cells", operation_id="get_cells", responses=or_known(returns_or_file(CellsResponse)))
async def get_cells(
    request: Request,
    view: str,
    asked: Annotated[CellsQuestion, Query()],
    answers: AnswersOf,
    caller: Reader,
) -> Response:
    """The states of each cell from batch, from speed, and merged. Money is in minor units here."""
    ask = CellsAsk(view, tuple(asked.store), asked.start, asked.end, asked.partial, asked.as_of)
    of = answers.view(ask)
    moment = await answers.moment(ask, at_once=wants_newest(request.headers.get("cache-control")))
    tag = etag(("cells", asked.format, ask), caller.sight, moment.mark, answers.catalogue.fingerprint)

    async def answer() -> Response:
        body = await answers.cells(ask, moment, caller)
        return await in_form(asked.format, body, lambda told: cells_table(told, of), [view, asked.start, asked.end])

    return await unless_known(request, tag, answer, RestsOn(ask, moment))
