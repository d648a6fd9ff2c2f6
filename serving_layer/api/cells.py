"""`/v1/views/{view}/cells` and `/v1/raw/pos_transactions`: what a number is made of, down to the receipts."""

from datetime import UTC, datetime
from typing import Annotated

import msgspec
from fastapi import APIRouter, Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from serving_layer.api.caller import AnswersOf, Reader
from serving_layer.api.conditional_requests import conditional_response
from serving_layer.api.downloads import formatted_response, returns_or_file
from serving_layer.api.parameters import (
    MAX_PAGE,
    AfterToken,
    AsOfNumber,
    Day,
    NamedRange,
    PartialFlag,
    RangeEnd,
    RangeStart,
    StoreIds,
    page_token,
    read_page_token,
)
from serving_layer.api.staleness import AtLeastToken, MaxStaleness, read_answer_version
from serving_layer.caching import etag
from serving_layer.files.formats import Format
from serving_layer.files.tables import cells_table
from serving_layer.query.cells import CellsRequest
from serving_layer.query.ranges import AskedRange
from serving_layer.responses.encoding import JSON, encode, iso_instant
from serving_layer.responses.metrics import CellsResponse
from serving_layer.responses.schemas import or_not_modified, returns
from serving_layer.responses.stores import Receipt, ReceiptPage
from serving_layer.store.readers import RawReceipt, ReceiptPlace

router = APIRouter(prefix="/v1", tags=["views"])


class CellsQuery(BaseModel):
    """Query parameters of cells. Dates are local days of each store."""

    model_config = ConfigDict(extra="forbid")

    store: StoreIds = []
    start: RangeStart = None
    end: RangeEnd = None
    range: NamedRange = None
    partial: PartialFlag = False
    format: Format = Field("json", description="JSON, or a table with one row per cell.")
    as_of: AsOfNumber = None
    at_least: AtLeastToken = None
    max_staleness: MaxStaleness = None


@router.get("/views/{view}/cells", operation_id="get_cells", responses=or_not_modified(returns_or_file(CellsResponse)))
async def get_cells(
    request: Request,
    view: str,
    query: Annotated[CellsQuery, Query()],
    answers: AnswersOf,
    caller: Reader,
) -> Response:
    """The states of each cell: from batch, from speed, and merged. Money is in minor units."""
    asked = AskedRange(query.start, query.end, query.range)
    asked.refuse_incomplete()
    cells = CellsRequest(view, tuple(query.store), query.start, query.end, query.partial, query.as_of, query.range)
    definition = answers.view(cells)
    read = await read_answer_version(request, answers, cells, caller, query)
    version = read.version
    tag = etag(("cells", query.format, cells), caller.visibility_scope, version.key, answers.catalogue.fingerprint)

    async def respond() -> Response:
        body = await answers.cells(cells, version, caller)
        name = [view, *asked.words]
        return await formatted_response(query.format, body, lambda found: cells_table(found, definition), name)

    return await conditional_response(request, tag, respond, read.provenance, read.headers)


raw_router = APIRouter(prefix="/v1/raw", tags=["raw"])


class ReceiptsQuery(BaseModel):
    """Query parameters of receipts: one store and UTC day."""

    model_config = ConfigDict(extra="forbid")

    store: str = Field(min_length=1, max_length=256)
    day: Day = Field(description="UTC day of `happened_at`.")
    limit: int = Field(100, ge=1, le=MAX_PAGE, description="Receipts of a page at most.")
    after: AfterToken = None


@raw_router.get("/pos_transactions", operation_id="get_raw_receipts", responses=returns(ReceiptPage))
async def get_raw_receipts(query: Annotated[ReceiptsQuery, Query()], answers: AnswersOf, caller: Reader) -> Response:
    """Receipts as they were received, newest first.

    A page ends after `limit` receipts, or before they exceed 4 MB as they were received: receipts can be large, so a
    page may have fewer than `limit` although others follow. `next` is null on the last page only.
    """
    after = None if query.after is None else read_page_token(query.after, _receipt_place)
    page = await answers.receipts(caller, query.store, query.day, after, query.limit)
    following = _receipt_token(page.receipts[-1].place) if page.has_more else None
    body = ReceiptPage(query.store, query.day, [_receipt(receipt) for receipt in page.receipts], following)
    return Response(encode(body), media_type=JSON)


def _receipt(receipt: RawReceipt) -> Receipt:
    """The received text is already JSON and is copied byte for byte."""
    return Receipt(
        happened_at=iso_instant(receipt.place.happened_at),
        received_at=iso_instant(receipt.received_at),
        vendor_fiscal_module=receipt.place.till,
        transaction_id=receipt.place.transaction_id,
        receipt=msgspec.Raw(receipt.value),
    )


def _receipt_token(place: ReceiptPlace) -> str:
    return page_token(int(place.happened_at.timestamp() * 1000), place.till, place.transaction_id)


def _receipt_place(millis: int, till: object, transaction_id: object) -> ReceiptPlace:
    return ReceiptPlace(datetime.fromtimestamp(millis / 1000, UTC), str(till), str(transaction_id))
