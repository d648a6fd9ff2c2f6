"""`/v1/recomputes`: ask for one, and see how far it is."""

from http import HTTPStatus

from fastapi import APIRouter, Response
from pydantic import BaseModel, ConfigDict, Field

from master_dataset.errors import UnknownName
from serving_layer.admin.recomputes import found
from serving_layer.api.bounded import Bounded
from serving_layer.api.caller import AnswersOf, OperationsOf, Operator
from serving_layer.api.days import Day
from serving_layer.api.words import Name, Reason
from serving_layer.errors import BadQuestion
from serving_layer.query.catalogue import Catalogue
from serving_layer.responses.encoding import JSON, encode
from serving_layer.responses.publications import Recompute, StartedRecompute
from serving_layer.responses.schemas import returns
from views.control.recompute_request import RecomputeMode, RecomputeRequest

router = APIRouter(prefix="/v1", tags=["recomputes"], route_class=Bounded)


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
        """BadQuestion, UnknownName. A store may be any: one that is not registered can have events."""
        if self.first and self.last and self.first > self.last:
            raise BadQuestion(f"`from` is `{self.first}`, which is after `to`: `{self.last}`.", do="Swap them.")
        for view in self.views:
            if view not in catalogue.views:
                raise UnknownName("view", view, catalogue.views)
        views, stores = (tuple(dict.fromkeys(names)) for names in (self.views, self.stores))
        return RecomputeRequest(views, self.first, self.last, stores, self.full, mode=self.mode)


@router.post(
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
    where = {"Location": f"{router.prefix}/recomputes/{id_}"}
    return Response(encode(StartedRecompute(id_)), HTTPStatus.ACCEPTED, where, JSON)


@router.get("/recomputes/{id}", operation_id="get_recompute", responses=returns(Recompute))
async def get_recompute(id: str, operations: OperationsOf, _: Operator) -> Response:  # noqa: A002 - the name in the path
    """One recompute as it is now. Needs the scope `operate`.

    `state`: asked, planning, planned, computing, computed, then published, previewed, unchanged or failed. `progress`:
    partitions and events done of how many, `rows_per_second` and `seconds_left` (null while unknown), and what is being
    worked on. `problem`: why it failed, and what to do. `report`: what it did, once it has done it.
    """
    return Response(encode((await found(operations.recomputes, id)).response()), media_type=JSON)
