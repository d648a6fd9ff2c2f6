"""The body of a request that brings events: of a known type, and compressed in a known way."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import Request

from serving_layer.api.bodies import bodies_of
from serving_layer.errors import UnsupportedBody
from serving_layer.ingest.body import Posted

JSON, LINES = "application/json", "application/x-ndjson"
PLAIN, GZIP = "identity", "gzip"
FEWER = f"Send fewer events in a request, or compress it with `{GZIP}`."


@asynccontextmanager
async def received(request: Request) -> AsyncIterator[Posted]:
    """Inside, the body as it was sent. UnsupportedBody, and whatever Bodies refuses."""
    kind = _said(request, "content-type", "").partition(";")[0].strip()
    if kind not in {JSON, LINES}:
        raise UnsupportedBody(f"Events come as `{JSON}` or as `{LINES}`.", do="Say which one in `Content-Type`.")
    encoding = _said(request, "content-encoding", PLAIN)
    if encoding not in {PLAIN, GZIP}:
        raise UnsupportedBody(f"A body comes as it is or as `{GZIP}`.", do=f"Compress it with `{GZIP}`, or not at all.")
    bodies = bodies_of(request)
    async with bodies.whole(request, bodies.limits.body_bytes, FEWER) as body:
        yield Posted(body, encoding == GZIP, kind == LINES)


def _said(request: Request, name: str, unless: str) -> str:
    """A field that comes twice says what both say (RFC 9110, 5.3), not what the first one does."""
    return ", ".join(request.headers.getlist(name) or [unless]).strip().lower()
