"""`/v1/publications`, `/v1/corrections`, `/v1/recomputes`: what was published and corrected, and how to change it."""

from datetime import date
from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Path, Query, Response
from pydantic import BaseModel, ConfigDict, Field

from master_dataset.errors import UnknownNameError
from serving_layer.admin.corrections import CorrectionPosition, CorrectionsRequest
from serving_layer.admin.publications import MAX_PUBLICATION, require_recompute
from serving_layer.api.caller import AnswersOf, OperationsOf, Operator, Reader
from serving_layer.api.parameters import MAX_PAGE, AfterToken, Day, Name, Reason, page_token, read_page_token
from serving_layer.api.request_bodies import BodyLimitRoute
from serving_layer.errors import BadQuestionError
from serving_layer.query.catalogue import Catalogue
from serving_layer.responses.encoding import JSON, encode
from serving_layer.responses.publications import (
    CorrectionPage,
    PublicationPage,
    Recompute,
    RecomputeList,
    RolledBack,
    StartedRecompute,
)
from serving_layer.responses.schemas import returns
from views.control.recompute import Cause, RecomputeMode, RecomputeRequest

router = APIRouter(prefix="/v1", tags=["publications"], route_class=BodyLimitRoute)


class PublicationsQuery(BaseModel):
    """`before` is the `next` of the previous page."""

    model_config = ConfigDict(extra="forbid")

    limit: int = Field(100, ge=1, le=MAX_PAGE)
    before: int | None = Field(None, ge=0, le=MAX_PUBLICATION, description="Only publications with a smaller number.")


class RollbackQuestion(BaseModel):
    """The reason for a rollback, and whether it is a dry run."""

    model_config = ConfigDict(extra="forbid")

    reason: Reason
    dry_run: bool = Field(default=False, strict=True, description="Return what would be published, but change nothing.")


@router.get("/publications", operation_id="list_publications", responses=returns(PublicationPage))
async def list_publications(
    query: Annotated[PublicationsQuery, Query()], answers: AnswersOf, caller: Reader
) -> Response:
    """Publications, newest first. `next` is null on the last page.

    `collected`: its cells were garbage-collected, so `as_of` no longer works for it. `restores`: the publication whose
    cells it published again. What its recompute did, null where unknown: `partitions` (pairs of view and day), `days`,
    `blocks` written, `rows` read, `seconds` from the request to the publication, and the same per view in `views`.

    A publication covers all tenants. Without the scope `operate`, `by` and `why` are left out, and these counts are
    null.
    """
    before = MAX_PUBLICATION if query.before is None else query.before
    found = await answers.readers.published.history(before, query.limit + 1)
    page = found[: query.limit]
    following = page[-1].publication if len(found) > query.limit else None
    entries = [entry.response() for entry in page]
    shown = entries if caller.is_operator else [each.for_readers() for each in entries]
    return Response(encode(PublicationPage(shown, following)), media_type=JSON)


@router.post("/publications/{number}/rollback", operation_id="roll_back", responses=returns(RolledBack))
async def roll_back(
    number: Annotated[int, Path(ge=0, le=MAX_PUBLICATION)],
    body: RollbackQuestion,
    operations: OperationsOf,
    by: Operator,
) -> Response:
    """Publish the cells of an older publication again. Needs the scope `operate`; returns once readers see them.

    `publication`: the new one, which `restores` the old one at its `cut`, with speed rows of `generation`.
    """
    done = await operations.rollbacks.run(number, body.reason, by.name, dry_run=body.dry_run)
    return Response(encode(done.response()), media_type=JSON)


corrections_router = APIRouter(prefix="/v1", tags=["corrections"])
MAX_BLOCK_ROWS = 2**31


class CorrectionsQuery(BaseModel):
    """Query parameters of corrections. Default: those of the newest publication."""

    model_config = ConfigDict(extra="forbid")

    publication: int | None = Field(None, ge=0, le=MAX_PUBLICATION)
    recompute: str | None = Field(None, max_length=200, description="Id of a preview or of a published recompute.")
    view: str | None = Field(None, max_length=256)
    store: str | None = Field(None, max_length=256)
    cause: Cause | None = None
    state: str | None = Field(None, max_length=256, description="State of a view, such as `gross_sales`.")
    limit: int = Field(100, ge=1, le=MAX_PAGE)
    after: AfterToken = None

    def to_request(self) -> CorrectionsRequest:
        """Return the request to `CorrectionsService`. Raises BadQuestionError for an invalid token."""
        start = None if self.after is None else read_token(self.after)
        return CorrectionsRequest(
            self.publication, self.recompute, self.view, self.store, self.cause, self.limit, start, state=self.state
        )


@corrections_router.get("/corrections", operation_id="list_corrections", responses=returns(CorrectionPage))
async def list_corrections(
    query: Annotated[CorrectionsQuery, Query()], operations: OperationsOf, _: Operator
) -> Response:
    """One row per changed cell and state, by view, store and day. Needs the scope `operate`; money is in minor units.

    `shown` is null if no value had been shown, `corrected` if there is none any more. `events` lists at most 20 of the
    events responsible, and `events_total` counts them; for a day that had not been shown at all it counts the whole
    day. `totals` are over all corrections, whatever the filter. `pending`: the ledger is not written yet. A page can
    have fewer rows than `limit`, or none, although `next` says that more follow.
    """
    page, following = await operations.corrections.page(query.to_request())
    page.next = write_token(following) if following else None
    return Response(encode(page), media_type=JSON)


def write_token(position: CorrectionPosition) -> str:
    """The page token of a position."""
    return page_token(*position)


def read_token(token: str) -> CorrectionPosition:
    """The position of a page token. Raises BadQuestionError for an invalid one."""
    return read_page_token(token, _position)


def _position(subject: object, view: object, store: object, day: str, row: int) -> CorrectionPosition:
    in_block = range(MAX_BLOCK_ROWS)[row]
    return CorrectionPosition(str(subject), str(view), str(store), date.fromisoformat(day), in_block)


recomputes_router = APIRouter(prefix="/v1", tags=["recomputes"], route_class=BodyLimitRoute)


class RecomputeQuestion(BaseModel):
    """What to recompute. Default: everything that events have touched since the last publication."""

    model_config = ConfigDict(extra="forbid")

    views: list[Name] = Field([], max_length=100, description="Names of views.")
    first: Day | None = Field(None, alias="from", description="First UTC day of `happened_at`.")
    last: Day | None = Field(None, alias="to", description="Last UTC day of `happened_at`, included.")
    stores: list[Name] = Field([], max_length=1000, description="Only days on which one of these stores has events.")
    full: bool = Field(default=False, strict=True, description="Every day, touched or not.")
    mode: RecomputeMode = Field("publish", description="A preview only writes corrections.")
    reason: Reason

    def to_request(self, catalogue: Catalogue) -> RecomputeRequest:
        """Return the request of the recompute job. Unregistered stores are allowed, as they can have events.

        Raises:
            BadQuestionError: the days are in the wrong order.
            UnknownNameError: there is no such view.
        """
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
    body: RecomputeQuestion, answers: AnswersOf, operations: OperationsOf, by: Operator
) -> Response:
    """Recompute cells from the master dataset. Needs the scope `operate`; returns an `id` before the work begins."""
    id_ = await operations.start(body.to_request(answers.catalogue), body.reason, by.name)
    where = {"Location": f"{recomputes_router.prefix}/recomputes/{id_}"}
    return Response(encode(StartedRecompute(id_)), HTTPStatus.ACCEPTED, where, JSON)


MAX_RECOMPUTES = 100


class RecomputesQuery(BaseModel):
    """How many recomputes are listed."""

    model_config = ConfigDict(extra="forbid")

    limit: int = Field(20, ge=1, le=MAX_RECOMPUTES)


@recomputes_router.get("/recomputes", operation_id="list_recomputes", responses=returns(RecomputeList))
async def list_recomputes(
    query: Annotated[RecomputesQuery, Query()], operations: OperationsOf, _: Operator
) -> Response:
    """The newest recomputes, scheduled ones too, newest first. Needs the scope `operate`.

    `days` that each computed and `cells` that it corrected are null until they are known.
    """
    found = await operations.recomputes.newest(query.limit)
    return Response(encode(RecomputeList([record.listed() for record in found])), media_type=JSON)


@recomputes_router.get("/recomputes/{id}", operation_id="get_recompute", responses=returns(Recompute))
async def get_recompute(id: str, operations: OperationsOf, _: Operator) -> Response:  # noqa: A002 - the name in the path
    """The current state of a recompute. Needs the scope `operate`.

    `state`: asked, planning, planned, computing, computed, then published, previewed, unchanged or failed. `progress`:
    the partitions and events done and in total, `rows_per_second` and `seconds_left` (null while unknown), and the
    partition in progress. `problem`: why it failed, and what to do. `report`: what it did, once it has finished.
    """
    return Response(encode((await require_recompute(operations.recomputes, id)).response()), media_type=JSON)
