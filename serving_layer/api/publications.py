"""`/v1/publications`, `/v1/corrections`, `/v1/recomputes`: what was published, what it corrected, and how to change it."""

import base64
import binascii
from datetime import date
from http import HTTPStatus
from typing import Annotated

import orjson
from fastapi import APIRouter, Path, Query, Response
from pydantic import BaseModel, ConfigDict, Field

from master_dataset.errors import UnknownNameError
from serving_layer.admin.corrections import CorrectionPosition, CorrectionsRequest
from serving_layer.admin.ledger import Cause
from serving_layer.admin.publications import MAX_PUBLICATION, require_recompute
from serving_layer.api.caller import AnswersOf, OperationsOf, Operator, Reader
from serving_layer.api.parameters import Day, Name, Reason
from serving_layer.api.request_bodies import BodyLimitRoute
from serving_layer.errors import BadQuestionError
from serving_layer.query.catalogue import Catalogue
from serving_layer.responses.encoding import JSON, encode
from serving_layer.responses.publications import (
    CorrectionPage,
    PublicationPage,
    Recompute,
    RolledBack,
    StartedRecompute,
)
from serving_layer.responses.schemas import returns
from views.control.recompute import RecomputeMode, RecomputeRequest

router = APIRouter(prefix="/v1", tags=["publications"], route_class=BodyLimitRoute)
PAGE = 1000


class PublicationsQuestion(BaseModel):
    """`before` is the `next` of the page before."""

    model_config = ConfigDict(extra="forbid")

    limit: int = Field(100, ge=1, le=PAGE)
    before: int | None = Field(None, ge=0, le=MAX_PUBLICATION, description="Only publications with a lesser number.")


class RollbackQuestion(BaseModel):
    """Why, and whether in earnest."""

    model_config = ConfigDict(extra="forbid")

    reason: Reason
    dry_run: bool = Field(default=False, strict=True, description="Say what would be published; change nothing.")


@router.get("/publications", operation_id="list_publications", responses=returns(PublicationPage))
async def list_publications(asked: Annotated[PublicationsQuestion, Query()], answers: AnswersOf, _: Reader) -> Response:
    """Publications, newest first. `next` is null on the last page.

    `collected`: its cells are gone, so it can no longer be asked with `as_of`. `restores`: the publication whose cells
    it published again. What its recompute did, null where it did not say: `partitions` (pairs of view and day), `days`,
    `blocks` written, `rows` read, `seconds` from question to publication, and the same by view in `views`.
    """
    before = MAX_PUBLICATION if asked.before is None else asked.before
    require_recompute = await answers.readers.published.history(before, asked.limit + 1)
    page = require_recompute[: asked.limit]
    following = page[-1].publication if len(require_recompute) > asked.limit else None
    return Response(encode(PublicationPage([entry.response() for entry in page], following)), media_type=JSON)


@router.post("/publications/{number}/rollback", operation_id="roll_back", responses=returns(RolledBack))
async def roll_back(
    number: Annotated[int, Path(ge=0, le=MAX_PUBLICATION)],
    asked: RollbackQuestion,
    operations: OperationsOf,
    by: Operator,
) -> Response:
    """Publish again what an older publication said. Needs the scope `operate`; answers when readers are switched.

    `publication`: the new one, which `restores` the old one at its `cut`, with speed rows of `generation`.
    """
    done = await operations.rollbacks.run(number, asked.reason, by.name, dry_run=asked.dry_run)
    return Response(encode(done.response()), media_type=JSON)


corrections_router = APIRouter(prefix="/v1", tags=["corrections"])
MOST_ROWS = 2**31
"""No block has more."""


class CorrectionsQuestion(BaseModel):
    """The newest publication if neither it nor a recompute is named. `after` is the `next` of the page before."""

    model_config = ConfigDict(extra="forbid")

    publication: int | None = Field(None, ge=0, le=MAX_PUBLICATION)
    recompute: str | None = Field(None, max_length=200, description="Of a preview, or of what it published.")
    view: str | None = Field(None, max_length=256)
    store: str | None = Field(None, max_length=256)
    cause: Cause | None = None
    limit: int = Field(100, ge=1, le=PAGE)
    after: str | None = Field(None, max_length=2048)

    def understood(self) -> CorrectionsRequest:
        """BadQuestionError if the token is none of this interface."""
        start = None if self.after is None else read_token(self.after)
        return CorrectionsRequest(
            self.publication, self.recompute, self.view, self.store, self.cause, self.limit, start
        )


@corrections_router.get("/corrections", operation_id="list_corrections", responses=returns(CorrectionPage))
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


def write_token(place: CorrectionPosition) -> str:
    """Where the next page begins, for the caller to hand back unread."""
    return base64.urlsafe_b64encode(orjson.dumps([*place])).decode()


def read_token(token: str) -> CorrectionPosition:
    """The inverse. BadQuestionError for anything that `write_token` did not write."""
    try:
        subject, view, store, day, row = orjson.loads(base64.urlsafe_b64decode(token.encode()))
        return CorrectionPosition(str(subject), str(view), str(store), date.fromisoformat(day), range(MOST_ROWS)[row])
    except (binascii.Error, ValueError, TypeError, IndexError) as error:
        message = "`after` is no token of this interface."
        raise BadQuestionError(message, do="Use `next` of the page before, or leave it out.") from error


recomputes_router = APIRouter(prefix="/v1", tags=["recomputes"], route_class=BodyLimitRoute)


class RecomputeQuestion(BaseModel):
    """Whatever is left out means everything, or what was touched since the last publication."""

    model_config = ConfigDict(extra="forbid")

    views: list[Name] = Field([], max_length=100, description="Names of views.")
    first: Day | None = Field(None, alias="from", description="First UTC day of `happened_at`.")
    last: Day | None = Field(None, alias="to", description="Last UTC day of `happened_at`, included.")
    stores: list[Name] = Field([], max_length=1000, description="Only days on which one of these stores has events.")
    full: bool = Field(default=False, strict=True, description="Every day, whether touched or not.")
    mode: RecomputeMode = Field("publish", description="A preview writes corrections and no more.")
    reason: Reason

    def understood(self, catalogue: Catalogue) -> RecomputeRequest:
        """BadQuestionError, UnknownNameError. A store may be any: one that is not registered can have events."""
        if self.first and self.last and self.first > self.last:
            raise BadQuestionError(f"`from` is `{self.first}`, which is after `to`: `{self.last}`.", do="Swap them.")
        for view in self.views:
            if view not in catalogue.views:
                raise UnknownNameError("view", view, catalogue.views)
        views, stores = (tuple(dict.fromkeys(names)) for names in (self.views, self.stores))
        return RecomputeRequest(views, self.first, self.last, stores, self.full, mode=self.mode)


@recomputes_router.post(
    "/recomputes",
    operation_id="start_recompute",
    status_code=HTTPStatus.ACCEPTED,
    responses=returns(StartedRecompute, status=HTTPStatus.ACCEPTED),
)
async def start_recompute(
    asked: RecomputeQuestion, answers: AnswersOf, operations: OperationsOf, by: Operator
) -> Response:
    """Recompute from the master dataset. Needs the scope `operate`; answers with an `id` before anything is done."""
    id_ = await operations.start(asked.understood(answers.catalogue), asked.reason, by.name)
    where = {"Location": f"{recomputes_router.prefix}/recomputes/{id_}"}
    return Response(encode(StartedRecompute(id_)), HTTPStatus.ACCEPTED, where, JSON)


@recomputes_router.get("/recomputes/{id}", operation_id="get_recompute", responses=returns(Recompute))
async def get_recompute(id: str, operations: OperationsOf, _: Operator) -> Response:  # noqa: A002 - the name in the path
    """One recompute as it is now. Needs the scope `operate`.

    `state`: asked, planning, planned, computing, computed, then published, previewed, unchanged or failed. `progress`:
    partitions and events done of how many, `rows_per_second` and `seconds_left` (null while unknown), and what is being
    worked on. `problem`: why it failed, and what to do. `report`: what it did, once it has done it.
    """
    return Response(encode((await require_recompute(operations.recomputes, id)).response()), media_type=JSON)
