"""`/v1/targets`: what stores should reach on a business day."""

from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from serving_layer.admin.loaded_files import TargetService
from serving_layer.api.caller import AnswersOf, Operator
from serving_layer.api.parameters import TenantName, registered_tenant
from serving_layer.api.request_bodies import FILE_BODY, file_body
from serving_layer.errors import not_offered
from serving_layer.responses.encoding import JSON, encode, iso_instant
from serving_layer.responses.master_data import LoadedTargets
from serving_layer.responses.schemas import returns


async def targets_of(request: Request) -> TargetService:
    """The target service of the app. Raises NotOfferedError if this process has none."""
    targets: TargetService | None = request.app.state.targets
    if targets is None:
        raise not_offered("targets", "use `galatea targets`")
    return targets


class TargetsLoadQuery(BaseModel):
    """Query parameters of a load."""

    model_config = ConfigDict(extra="forbid")

    tenant: TenantName = None
    replace: bool = Field(default=False, description="Remove the targets that the body lacks.")


router = APIRouter(prefix="/v1", tags=["targets"])


@router.post(
    "/targets",
    operation_id="load_targets",
    status_code=HTTPStatus.OK,
    openapi_extra={"requestBody": FILE_BODY},
    responses=returns(LoadedTargets),
)
async def load_targets(
    request: Request,
    query: Annotated[TargetsLoadQuery, Query()],
    targets: Annotated[TargetService, Depends(targets_of)],
    answers: AnswersOf,
    caller: Operator,
) -> Response:
    """Load targets, all or none, at most 8 MB in a request. Needs the scope `operate`; safe to repeat.

    Each line replaces the former target of its store, day and metric; other targets stay unless `replace` is true.
    Fields: `store`, `day`, `metric` and `value`, which is in the major unit of the store's currency for money.
    Queries with `compare=target` use the new version within a second.
    """
    tenant = await registered_tenant(caller, query.tenant, answers)
    async with file_body(request, "targets") as body:
        current = await targets.load(tenant, body, replace=query.replace)
    loaded = LoadedTargets(tenant, current.version, current.count, iso_instant(current.loaded_at))
    return Response(encode(loaded), media_type=JSON)
