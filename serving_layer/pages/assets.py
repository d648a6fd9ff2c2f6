"""`/static/...`: styles and scripts. Pages load nothing from anywhere else, and assets are open to everybody."""

import hashlib
import mimetypes
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

from fastapi import APIRouter, Response
from starlette.exceptions import HTTPException

FOLDER = Path(__file__).parent / "static"
MEDIA_TYPES = {".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8", ".svg": "image/svg+xml"}
VERSION_DIGITS = 12
CACHE_FOREVER = "public, max-age=31536000, immutable"

router = APIRouter(include_in_schema=False)


class Asset(NamedTuple):
    """`version`: a hash of the content. Browsers can cache an address that names it for ever."""

    body: bytes
    media_type: str
    version: str


@cache
def assets() -> Mapping[str, Asset]:
    """All assets by their path below `/static/`, read once. No other file can be requested."""
    files = sorted(path for path in FOLDER.rglob("*") if path.is_file())
    return {path.relative_to(FOLDER).as_posix(): _read(path) for path in files}


def address(name: str) -> str:
    """Where a page finds an asset."""
    return f"/static/{name}?v={assets()[name].version}"


@router.get("/static/{name:path}")
async def get_asset(name: str, v: str = "") -> Response:
    """An asset, to be cached for ever if `v` is its version."""
    asset = assets().get(name)
    if asset is None:
        raise HTTPException(404)
    headers = {"Cache-Control": CACHE_FOREVER if v == asset.version else "no-cache"}
    return Response(asset.body, media_type=asset.media_type, headers=headers)


def _read(path: Path) -> Asset:
    body = path.read_bytes()
    media_type = MEDIA_TYPES.get(path.suffix) or mimetypes.guess_type(path.name)[0] or "text/plain; charset=utf-8"
    return Asset(body, media_type, hashlib.sha256(body).hexdigest()[:VERSION_DIGITS])
