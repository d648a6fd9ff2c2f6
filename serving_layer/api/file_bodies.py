"""Request bodies that are files: CSV with a header, or JSON Lines, as the commands that load files read them."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from fastapi import Request

from serving_layer.api.request_bodies import bodies_of
from serving_layer.errors import UnsupportedBodyError

MAX_BODY_BYTES = 8_000_000
"""Larger files are loaded with the command, or in several requests."""
CSV, LINES = "text/csv", "application/x-ndjson"
_FILE = {"type": "string", "description": "CSV with a header, or a JSON object on each line."}
FILE_BODY: Mapping[str, object] = {"required": True, "content": {CSV: {"schema": _FILE}, LINES: {"schema": _FILE}}}
"""The body of such a request in OpenAPI."""


@asynccontextmanager
async def file_body(request: Request, kind: str) -> AsyncIterator[bytes]:
    """Read a file from the body of a request, and count its bytes as held until the block ends.

    Args:
        request: whose body is read.
        kind: what is in the file, such as `products`: also the name of the command that loads it.

    Raises:
        UnsupportedBodyError: the body is neither CSV nor JSON Lines.
        BodyTooLargeError: it has more than 8 MB. For other errors see `BodyReader.read`.
    """
    said = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if said not in {CSV, LINES}:
        message = f"{kind.capitalize()} come as `{CSV}` or as `{LINES}`."
        raise UnsupportedBodyError(message, do="Say which one in `Content-Type`.")
    do = f"Use `galatea {kind} load`, or several requests without `replace`."
    async with bodies_of(request).read(request, MAX_BODY_BYTES, do) as body:
        yield body
