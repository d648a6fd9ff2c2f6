"""`/v1/views/{view}/cells` and `/v1/raw/pos_transactions`: what a number is made of, down to the receipts."""

import base64
import binascii
from datetime import UTC, datetime
from typing import Annotated

import msgspec
import orjson
from fastapi import APIRouter, Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from serving_layer.api.caller import AnswersOf, Reader
from serving_layer.api.conditional_requests import AnswerProvenance, conditional_response, requires_fresh
from serving_layer.api.downloads import formatted_response, returns_or_file
from serving_layer.api.parameters import AsOfNumber, Day
from serving_layer.caching import etag
from serving_layer.errors import BadQuestionError
from serving_layer.files.formats import Format
from serving_layer.files.tables import cells_table
from serving_layer.query.cells import CellsRequest
from serving_layer.query.timeline import iso_instant
from serving_layer.responses.encoding import JSON, encode
from serving_layer.responses.metrics import CellsResponse
from serving_layer.responses.schemas import or_not_modified, returns
from serving_layer.responses.stores import Receipt, ReceiptPage
from serving_layer.store.readers import RawReceipt, ReceiptPlace

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


@router.get("/views/{view}/cells", operation_id="get_cells", responses=or_not_modified(returns_or_file(CellsResponse)))
async def get_cells(
    request: Request,
    view: str,
    asked: Annotated[CellsQuestion, Query()],
    answers: AnswersOf,
    caller: Reader,
) -> Response:
    """The states of each cell from batch, from speed, and merged. Money is in minor units here."""
    ask = CellsRequest(view, tuple(asked.store), asked.start, asked.end, asked.partial, asked.as_of)
    of = answers.view(ask)
    moment = await answers.read_version(ask, fresh=requires_fresh(request.headers.get("cache-control")))
    tag = etag(("cells", asked.format, ask), caller.visibility_scope, moment.key, answers.catalogue.fingerprint)

    async def answer() -> Response:
        body = await answers.cells(ask, moment, caller)
        return await formatted_response(
            asked.format, body, lambda told: cells_table(told, of), [view, asked.start, asked.end]
        )

    return await conditional_response(request, tag, answer, AnswerProvenance(ask, moment))


raw_router = APIRouter(prefix="/v1/raw", tags=["raw"])
PAGE = 1000


class ReceiptsQuestion(BaseModel):
    """One store and UTC day. `after` is the `next` of the page before."""

    model_config = ConfigDict(extra="forbid")

    store: str = Field(min_length=1, max_length=256)
    day: Day = Field(description="UTC day of `happened_at`.")
    limit: int = Field(100, ge=1, le=PAGE)
    after: str | None = Field(None, max_length=2048)


@raw_router.get("/pos_transactions", operation_id="get_raw_receipts", responses=returns(ReceiptPage))
async def get_raw_receipts(asked: Annotated[ReceiptsQuestion, Query()], answers: AnswersOf, caller: Reader) -> Response:
    """Receipts newest first. `next` is null on the last page."""
    await answers.stores.visible([asked.store], caller)
    after = None if asked.after is None else read_token(asked.after)
    found = await answers.readers.receipts.receipts(asked.store, asked.day, after, asked.limit + 1)
    page = found[: asked.limit]
    following = write_token(page[-1].place) if len(found) > asked.limit else None
    body = ReceiptPage(asked.store, asked.day, [_receipt(receipt) for receipt in page], following)
    return Response(encode(body), media_type=JSON)


def _receipt(receipt: RawReceipt) -> Receipt:
    """The receipt's place beside its own text, which is JSON already and stays byte for byte."""
    return Receipt(
        happened_at=iso_instant(receipt.place.happened_at),
        received_at=iso_instant(receipt.received_at),
        vendor_fiscal_module=receipt.place.till,
        transaction_id=receipt.place.transaction_id,
        receipt=msgspec.Raw(receipt.value),
    )


def write_token(place: ReceiptPlace) -> str:
    """Where the next page begins, for the caller to hand back unread."""
    parts = [int(place.happened_at.timestamp() * 1000), place.till, place.transaction_id]
    return base64.urlsafe_b64encode(orjson.dumps(parts)).decode()


def read_token(token: str) -> ReceiptPlace:
    """The inverse. BadQuestionError for anything that `write_token` did not write."""
    try:
        millis, till, transaction_id = orjson.loads(base64.urlsafe_b64decode(token.encode()))
        return ReceiptPlace(datetime.fromtimestamp(millis / 1000, UTC), str(till), str(transaction_id))
    except (binascii.Error, ValueError, TypeError, OverflowError, OSError) as error:
        raise BadQuestionError(
            "`after` is no token of this interface.", do="Use `next` of the page before, or leave it out."
        ) from error
