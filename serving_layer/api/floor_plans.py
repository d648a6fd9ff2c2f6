"""`/v1/stores/{store}/floor-plan`: an image of the sales floor, and the zones drawn on it."""

import asyncio
import re
from http import HTTPStatus
from typing import Annotated
from urllib.parse import quote

from fastapi import APIRouter, Depends, Header, Path, Request, Response

from master_dataset.registry.floor_plans import FloorPlan
from master_dataset.registry.floor_plans_file import MOST_BYTES, ZonesEntry, read_image
from master_dataset.registry.stores import Store
from serving_layer.admin.floor_plans import FloorPlanService
from serving_layer.api.caller import AnswersOf, Configurer, Reader
from serving_layer.api.conditional_requests import CACHE_HEADERS, conditional_response
from serving_layer.api.request_bodies import BodyLimitRoute, bodies_of
from serving_layer.errors import UnsupportedBodyError, not_offered
from serving_layer.responses.encoding import JSON, encode, iso_instant
from serving_layer.responses.schemas import Responses, or_not_modified, returns
from serving_layer.responses.stores import PlanZone, StoreFloorPlan

MEDIA_TYPES = ("image/png", "image/jpeg", "image/webp")
SMALLER = "Send a smaller image: PNG with few colours, or WebP."
_BINARY = {"schema": {"type": "string", "format": "binary"}}
_IMAGES = dict.fromkeys(MEDIA_TYPES, _BINARY)
_IMAGE_POLICY = {"Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'; sandbox"}
"""Browsers run nothing of an image, also if somebody opens its address."""
_ETAG = {"ETag": {"description": "Its version, for `If-Match`.", "schema": {"type": "string"}}}
_TAG, _NO_VERSION = re.compile(r'"([0-9a-f-]{1,64})"'), "none"


async def floor_plans_of(request: Request) -> FloorPlanService:
    """The floor plans of the app. Raises NotOfferedError if this process has none."""
    floor_plans: FloorPlanService | None = request.app.state.floor_plans
    if floor_plans is None:
        raise not_offered("floor plans")
    return floor_plans


FloorPlansOf = Annotated[FloorPlanService, Depends(floor_plans_of)]
StoreId = Annotated[str, Path(min_length=1, max_length=256, description="The id of a registered store.")]
Match = Annotated[
    str | None, Header(max_length=100, description="The `ETag` of the floor plan as it was read; default: any.")
]


def _returns_plan(description: str) -> Responses:
    responses = returns(StoreFloorPlan, description=description)
    responses[HTTPStatus.OK]["headers"] = _ETAG
    return responses


def _expected(if_match: str | None) -> str | None:
    """The version that its author has seen; None: any."""
    if if_match is None or if_match.strip() == "*":
        return None
    found = _TAG.fullmatch(if_match.strip())
    return found[1] if found else _NO_VERSION


router = APIRouter(prefix="/v1", tags=["state"])
json_router = APIRouter(prefix="/v1", tags=["state"], route_class=BodyLimitRoute)


@router.get(
    "/stores/{store:path}/floor-plan/image",
    operation_id="get_floor_plan_image",
    response_class=Response,
    responses=or_not_modified({HTTPStatus.OK: {"description": "The image.", "content": _IMAGES, "headers": _ETAG}}),
)
async def get_floor_plan_image(
    store: StoreId, request: Request, answers: AnswersOf, floor_plans: FloorPlansOf, caller: Reader
) -> Response:
    """The image of a floor plan, byte for byte as it was sent."""
    owner = await answers.stores.registered(store, caller)
    tag = _tag(await floor_plans.read(owner))

    async def respond() -> Response:
        image = await floor_plans.image(owner)
        return Response(image.content, media_type=image.media_type, headers=_IMAGE_POLICY)

    return await conditional_response(request, tag, respond)


@router.put(
    "/stores/{store:path}/floor-plan/image",
    operation_id="upload_floor_plan_image",
    openapi_extra={"requestBody": {"required": True, "content": _IMAGES}},
    responses=_returns_plan("The floor plan with the new image."),
)
async def upload_floor_plan_image(  # noqa: PLR0913, PLR0917 - what FastAPI hands over
    store: StoreId,
    request: Request,
    answers: AnswersOf,
    floor_plans: FloorPlansOf,
    by: Configurer,
    if_match: Match = None,
) -> Response:
    """Give a store a floor plan, or its floor plan another image. Needs the scope `configure`; safe to repeat.

    The body is a PNG, JPEG or WebP image of at most 2 MB, with sides of 50 to 10,000 pixels and at most 25,000,000
    pixels in all. SVG is refused, because it can contain scripts. Zones that were drawn before stay where they are.
    """
    owner, seen = await answers.stores.registered(store, by), _expected(if_match)
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() not in MEDIA_TYPES:
        message = "A floor plan comes as `image/png`, `image/jpeg` or `image/webp`."
        raise UnsupportedBodyError(message, do="Say which one in `Content-Type`; an SVG has to be exported as PNG.")
    async with bodies_of(request).read(request, MOST_BYTES, SMALLER) as body:
        image = await asyncio.to_thread(read_image, body)
        saved = await floor_plans.save(owner, image=image, seen=seen)
    return _plan(owner, saved)


@router.get(
    "/stores/{store:path}/floor-plan", operation_id="get_floor_plan", responses=_returns_plan("The floor plan.")
)
async def get_floor_plan(store: StoreId, answers: AnswersOf, floor_plans: FloorPlansOf, caller: Reader) -> Response:
    """The floor plan of a store: the size and the address of its image, and the zones on it."""
    owner = await answers.stores.registered(store, caller)
    return _plan(owner, await floor_plans.read(owner))


@json_router.put(
    "/stores/{store:path}/floor-plan",
    operation_id="draw_floor_plan",
    responses=_returns_plan("The floor plan with its zones."),
)
async def draw_floor_plan(  # noqa: PLR0913, PLR0917 - what FastAPI hands over
    store: StoreId,
    body: ZonesEntry,
    answers: AnswersOf,
    floor_plans: FloorPlansOf,
    by: Configurer,
    if_match: Match = None,
) -> Response:
    """Draw the zones of a floor plan, in place of all former ones. Needs the scope `configure`; safe to repeat.

    Each zone has a `rectangle`, or a `polygon` of 3 to 64 corners, as fractions of the image, from its upper
    left corner. If the store has registered zones, only these can be drawn. The image is uploaded first.
    """
    owner, seen = await answers.stores.registered(store, by), _expected(if_match)
    return _plan(owner, await floor_plans.save(owner, zones=body.drawn(owner.terms.zones), seen=seen))


@router.delete(
    "/stores/{store:path}/floor-plan",
    operation_id="remove_floor_plan",
    status_code=HTTPStatus.NO_CONTENT,
)
async def remove_floor_plan(
    store: StoreId, answers: AnswersOf, floor_plans: FloorPlansOf, by: Configurer, if_match: Match = None
) -> Response:
    """Remove the floor plan of a store. Needs the scope `configure`. What was counted in its zones stays."""
    owner, seen = await answers.stores.registered(store, by), _expected(if_match)
    await floor_plans.remove(owner, seen=seen)
    return Response(status_code=HTTPStatus.NO_CONTENT)


router.routes.extend(json_router.routes)


def image_path(store: str) -> str:
    """The address of the image of a store's floor plan."""
    return f"/v1/stores/{quote(store, safe='')}/floor-plan/image"


def _tag(plan: FloorPlan) -> str:
    return f'"{plan.version}"'


def _plan(store: Store, plan: FloorPlan) -> Response:
    said = StoreFloorPlan(
        store=store.id,
        version=plan.version,
        saved_at=iso_instant(plan.saved_at),
        image=image_path(store.id),
        media_type=plan.media_type,
        bytes=plan.bytes,
        width=plan.width,
        height=plan.height,
        zones=[PlanZone(each.zone, each.corners) for each in plan.zones],
    )
    return Response(encode(said), media_type=JSON, headers={"ETag": _tag(plan), **CACHE_HEADERS})
