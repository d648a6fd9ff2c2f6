"""Styles and scripts, read once from beside this file. Pages load nothing from anywhere else.

`/static/...`: the assets. Whoever may see a page or not: they say nothing.
"""

import hashlib
import mimetypes
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

from fastapi import APIRouter, Response
from starlette.exceptions import HTTPException

FOLDER = Path(__file__).parent / "static"
TYPES = {".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8", ".svg": "image/svg+xml"}
DIGITS = 12


class Asset(NamedTuple):
    """`version`: of its content, so that a browser may keep it for ever under an address that names it."""

    body: bytes
    media_type: str
    version: str


@cache
def assets() -> Mapping[str, Asset]:
    """By path below `/static/`. A name that is not among them is nothing that could be read."""
    files = sorted(path for path in FOLDER.rglob("*") if path.is_file())
    return {path.relative_to(FOLDER).as_posix(): _read(path) for path in files}


def address(name: str) -> str:
    """Where a page finds it."""
    return f"/static/{name}?v={assets()[name].version}"


def _read(path: Path) -> Asset:
    body = path.read_bytes()
    media_type = TYPES.get(path.suffix) or mimetypes.guess_type(path.name)[0] or "text/plain; charset=utf-8"
    return Asset(body, media_type, hashlib.sha256(body).hexdigest()[:DIGITS])


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
