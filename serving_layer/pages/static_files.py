"""`/static/...`: the assets. Whoever may see a page or not: they say nothing."""

from fastapi import APIRouter, Response
from starlette.exceptions import HTTPException

from serving_layer.pages.assets import assets

router = APIRouter(include_in_schema=False)
KEPT = "public, max-age=31536000, immutable"


@router.get("/static/{name:path}")
async def get_asset(name: str, v: str = "") -> Response:
    """Kept for ever by whoever asked for the version that there is."""
    asset = assets().get(name)
    if asset is None:
        raise HTTPException(404)
    headers = {"Cache-Control": KEPT if v == asset.version else "no-cache"}
    return Response(asset.body, media_type=asset.media_type, headers=headers)
