"""`/v1/raw/pos_transactions`: receipts as they were received, newest first, a page at a time."""

import base64
import binascii
from datetime import UTC, datetime
from typing import Annotated

import msgspec
import orjson
from fastapi import APIRouter, Query, Response
from pydantic import BaseModel, ConfigDict, Field

from serving_layer.api.caller import AnswersOf, Reader
from serving_layer.api.days import Day
from serving_layer.errors import BadQuestion
from serving_layer.query.timestamps import stamp
from serving_layer.responses.encoding import JSON, encode
from serving_layer.responses.schemas import returns
from serving_layer.responses.stores import Receipt, ReceiptPage
from serving_layer.store.readers import RawReceipt, ReceiptPlace

router = APIRouter(prefix="/v1/raw", tags=["raw"])
PAGE = 1000


class ReceiptsQuestion(BaseModel):
    """One store and UTC day. `after` is the `next` of the page before."""

    model_config = ConfigDict(extra="forbid")

    store: str = Field(min_length=1, max_length=256)
    day: Day = Field(description="UTC day of `happened_at`.")
    limit: int = Field(100, ge=1, le=PAGE)
    after: str | None = Field(None, max_length=2048)


@router.get("/pos_transactions", operation_id="get_raw_receipts", responses=returns(ReceiptPage))
async def get_raw_receipts(asked: Annotated[ReceiptsQuestion, Query()], answers: AnswersOf, caller: Reader) -> Response:
    """Receipts newest first. `next` is null on the last page."""
    await answers.stores.asked([asked.store], caller)
    after = None if asked.after is None else read_token(asked.after)
    found = await answers.readers.receipts.receipts(asked.store, asked.day, after, asked.limit + 1)
    page = found[: asked.limit]
    following = write_token(page[-1].place) if len(found) > asked.limit else None
    body = ReceiptPage(asked.store, asked.day, [_receipt(receipt) for receipt in page], following)
    return Response(encode(body), media_type=JSON)


def _receipt(receipt: RawReceipt) -> Receipt:
    """The receipt's place beside its own text, which is JSON already and stays byte for byte."""
    return Receipt(
        happened_at=stamp(receipt.place.happened_at),
        received_at=stamp(receipt.received_at),
        vendor_fiscal_module=receipt.place.till,
        transaction_id=receipt.place.transaction_id,
        receipt=msgspec.Raw(receipt.value),
    )


def write_token(place: ReceiptPlace) -> str:
    """Where the next page begins, for the caller to hand back unread."""
    parts = [int(place.happened_at.timestamp() * 1000), place.till, place.transaction_id]
    return base64.urlsafe_b64encode(orjson.dumps(parts)).decode()


def read_token(token: str) -> ReceiptPlace:
    """The inverse. BadQuestion for anything that `write_token` did not write."""
    try:
        millis, till, transaction_id = orjson.loads(base64.urlsafe_b64decode(token.encode()))
        return ReceiptPlace(datetime.fromtimestamp(millis / 1000, UTC), str(till), str(transaction_id))
    except (binascii.Error, ValueError, TypeError, OverflowError, OSError) as error:
        raise BadQuestion(
            "`after` is no token of this interface.", do="Use `next` of the page before, or leave it out."
        ) from error
