"""`/v1/corrections`: what a publication, or a previewed one, changed in what readers are shown, and why."""

import base64
import binascii
from datetime import date
from typing import Annotated

import orjson
from fastapi import APIRouter, Query, Response
from pydantic import BaseModel, ConfigDict, Field

from serving_layer.admin.corrections import CorrectionsAsk, Place
from serving_layer.admin.ledger import Cause
from serving_layer.admin.publication_entry import GREATEST
from serving_layer.api.caller import OperationsOf, Operator
from serving_layer.errors import BadQuestion
from serving_layer.responses.encoding import JSON, encode
from serving_layer.responses.publications import CorrectionPage
from serving_layer.responses.schemas import returns

router = APIRouter(prefix="/v1", tags=["corrections"])
PAGE = 1000
MOST_ROWS = 2**31
"""No block has more."""


class CorrectionsQuestion(BaseModel):
    """The newest publication if neither it nor a recompute is named. `after` is the `next` of the page before."""

    model_config = ConfigDict(extra="forbid")

    publication: int | None = Field(None, ge=0, le=GREATEST)
    recompute: str | None = Field(None, max_length=200, description="Of a preview, or of what it published.")
    view: str | None = Field(None, max_length=256)
    store: str | None = Field(None, max_length=256)
    cause: Cause | None = None
    limit: int = Field(100, ge=1, le=PAGE)
    after: str | None = Field(None, max_length=2048)

    def understood(self) -> CorrectionsAsk:
        """BadQuestion if the token is none of this interface."""
        start = None if self.after is None else read_token(self.after)
        return CorrectionsAsk(self.publication, self.recompute, self.view, self.store, self.cause, self.limit, start)


@router.get("/corrections", operation_id="list_corrections", responses=returns(CorrectionPage))
async def list_corrections(
    asked: Annotated[CorrectionsQuestion, Query()], operations: OperationsOf, _: Operator
) -> Response:
    """A row per changed cell and state, by view, store and day. Needs the scope `operate`; money is in minor units.

    `shown` is null where nobody was shown a value, `corrected` where there is none any more. `events` names at most 20
    of those responsible; `events_total` counts them, and those of the whole day where the day had not been shown at
    all. `totals` are over everything, whatever was asked. `pending`: the ledger is not written yet. A page may hold
    fewer rows than `limit`, or none, while `next` says that there are more.
    """
    page, following = await operations.corrections.page(asked.understood())
    page.next = write_token(following) if following else None
    return Response(encode(page), media_type=JSON)


def write_token(place: Place) -> str:
    """Where the next page begins, for the caller to hand back unread."""
    return base64.urlsafe_b64encode(orjson.dumps([*place])).decode()


def read_token(token: str) -> Place:
    """The inverse. BadQuestion for anything that `write_token` did not write."""
    try:
        subject, view, store, day, row = orjson.loads(base64.urlsafe_b64decode(token.encode()))
        return Place(str(subject), str(view), str(store), date.fromisoformat(day), range(MOST_ROWS)[row])
    except (binascii.Error, ValueError, TypeError, IndexError) as error:
        message = "`after` is no token of this interface."
        raise BadQuestion(message, do="Use `next` of the page before, or leave it out.") from error
