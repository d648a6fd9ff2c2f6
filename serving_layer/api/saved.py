"""`/v1/saved-views` and `/v1/shares`: pages under a name, and links that open one page without a key."""

from http import HTTPStatus
from typing import Annotated, Any

from fastapi import APIRouter, Path, Request, Response
from msgspec import Struct
from pydantic import BaseModel, ConfigDict, Field

from serving_layer.api.caller import AnswersOf, Keeper, Reader, SavedOf
from serving_layer.api.parameters import DEFAULT_TENANT, TenantName, registered_tenant, tenant_of
from serving_layer.api.request_bodies import BodyLimitRoute
from serving_layer.keys.key import Caller
from serving_layer.responses.encoding import JSON, encode
from serving_layer.responses.saved import SavedViewEntry, SavedViewList, ShareEntry, ShareList
from serving_layer.responses.schemas import returns
from serving_layer.saved.addresses import MAX_ADDRESS, PageAddress, parse_address, require_page, shown_stores
from serving_layer.saved.shares import MAX_HOURS, MIN_HOURS
from serving_layer.saved.views import MAX_NAME
from serving_layer.service import QueryService

ADDRESS = "/stores/12?day=2026-11-21"
VIEW: dict[str, Any] = {
    "id": "5f0c81d2a9b3",
    "name": "Kosice on Saturday",
    "address": ADDRESS,
    "made_by": "9a2b5f0c81d3",
    "made_at": "2026-11-21T09:00:00Z",
}
SHARE: dict[str, Any] = {
    "id": "5f0c81d2a9b3",
    "tenant": "acme",
    "address": ADDRESS,
    "stores": ["12"],
    "origin": None,
    "made_by": "9a2b5f0c81d3",
    "made_at": "2026-11-21T09:00:00Z",
    "expires_at": "2026-11-28T09:00:00Z",
    "revoked_at": None,
    "state": "open",
}
Address = Annotated[str, Field(max_length=MAX_ADDRESS, description="Path and query of a page of this deployment.")]
ViewName = Annotated[str, Field(min_length=1, max_length=MAX_NAME)]
Id = Annotated[str, Path(max_length=64)]

router = APIRouter(prefix="/v1", tags=["pages"], route_class=BodyLimitRoute)


class SavedViewBody(BaseModel):
    """A page to save under a name."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"example": {"name": "Kosice", "address": ADDRESS}})

    name: ViewName
    address: Address


class RenamedView(BaseModel):
    """The new name of a saved view."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"example": {"name": "Kosice"}})

    name: ViewName


class ShareBody(BaseModel):
    """A page to share."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"example": {"address": ADDRESS, "hours": 168}})

    address: Address
    hours: int = Field(strict=True, ge=MIN_HOURS, le=MAX_HOURS, description="After how many hours it expires.")
    origin: str | None = Field(
        None, max_length=256, description="Which may show it in a frame: one of `GALATEA_API_EMBED_ORIGINS`."
    )
    tenant: TenantName = None


@router.get(
    "/saved-views",
    operation_id="list_saved_views",
    responses=returns(SavedViewList, example={"views": [VIEW], "most": 200}),
)
async def list_saved_views(saved: SavedOf, caller: Reader) -> Response:
    """The saved views of the tenant by name, whichever of its keys saved them."""
    views = await saved.views.listed(caller)
    return _json(SavedViewList([view.response() for view in views], saved.views.most))


@router.post(
    "/saved-views",
    operation_id="save_view",
    status_code=HTTPStatus.CREATED,
    responses=returns(SavedViewEntry, status=HTTPStatus.CREATED, example=VIEW),
)
async def save_view(request: Request, body: SavedViewBody, saved: SavedOf, caller: Keeper) -> Response:
    """Save the address of a page under a name. Needs a key."""
    address = parse_address(body.address)
    require_page(address, request.app.routes)
    view = await saved.views.save(caller, body.name, address, saved.now())
    return _json(view.response(), HTTPStatus.CREATED)


@router.patch("/saved-views/{id}", operation_id="rename_view", responses=returns(SavedViewEntry, example=VIEW))
async def rename_view(
    id: Id,  # noqa: A002 - the name in the path
    body: RenamedView,
    saved: SavedOf,
    caller: Keeper,
) -> Response:
    """Rename a saved view: one that this key saved, or any of the tenant with the scope `configure`."""
    return _json((await saved.views.rename(caller, id, body.name)).response())


@router.delete("/saved-views/{id}", operation_id="remove_view", status_code=HTTPStatus.NO_CONTENT)
async def remove_view(
    id: Id,  # noqa: A002 - the name in the path
    saved: SavedOf,
    caller: Keeper,
) -> Response:
    """Remove a saved view: one that this key saved, or any of the tenant with the scope `configure`."""
    await saved.views.remove(caller, id)
    return Response(status_code=HTTPStatus.NO_CONTENT)


@router.get(
    "/shares",
    operation_id="list_shares",
    responses=returns(ShareList, example={"shares": [SHARE], "most": 200, "origins": []}),
)
async def list_shares(saved: SavedOf, caller: Reader) -> Response:
    """The share links that this key made, newest first; with the scope `configure`, all of the tenant.

    Links that have ended are listed for 30 days. `origins`: those that may show shared pages in frames.
    """
    shares, now = saved.shares, saved.shares.now()
    found = [link.response(now) for link in await shares.listed(caller)]
    return _json(ShareList(found, shares.most, shares.origins))


@router.post(
    "/shares",
    operation_id="share_page",
    status_code=HTTPStatus.CREATED,
    responses=returns(ShareEntry, status=HTTPStatus.CREATED, example=SHARE | {"path": "/shared/..."}),
)
async def share_page(request: Request, body: ShareBody, saved: SavedOf, answers: AnswersOf, caller: Keeper) -> Response:
    """Make a link that opens the overview or the page of a store without a key, until it expires. Needs a key.

    `path` is the link below this address. It is shown only in this response. The overview shows all stores of the
    tenant: for keys of all tenants, of the `tenant` that the body names, or `default`.
    """
    address = parse_address(body.address)
    require_page(address, request.app.routes)
    page = address, await tenant_shown(address, caller, body.tenant, answers)
    _, stores = await answers.stores.all()
    token, link = await saved.shares.make(caller, page, body.hours, body.origin or "", stores)
    return _json(link.response(saved.shares.now(), token), HTTPStatus.CREATED)


async def tenant_shown(address: PageAddress, caller: Caller, named: str | None, answers: QueryService) -> str:
    """The tenant whose stores a shared page shows if it shows all of them.

    Args:
        address: of the page.
        caller: who shares it.
        named: the tenant that the request names; None if it names none.
        answers: knows the stores of all tenants.

    Raises:
        BadAddressError: the page cannot be shared.
        UnknownNameError: as of `registered_tenant`.
    """
    if named is None and shown_stores(address) is not None:
        return tenant_of(caller, None, DEFAULT_TENANT)  # its stores say whose it is
    return await registered_tenant(caller, named, answers)


@router.delete("/shares/{id}", operation_id="revoke_share", status_code=HTTPStatus.NO_CONTENT)
async def revoke_share(
    id: Id,  # noqa: A002 - the name in the path
    saved: SavedOf,
    caller: Keeper,
) -> Response:
    """Revoke a share link: one that this key made, or any of the tenant with the scope `configure`."""
    await saved.shares.revoke(caller, id)
    return Response(status_code=HTTPStatus.NO_CONTENT)


def _json(body: Struct, status: int = HTTPStatus.OK) -> Response:
    return Response(encode(body), status, media_type=JSON)
