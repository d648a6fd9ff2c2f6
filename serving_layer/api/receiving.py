"""The body of a request that brings events: of a known type, bounded, and there in time."""

import asyncio

from fastapi import Request
from starlette.requests import ClientDisconnect

from serving_layer.posted import MOST_SENT, Posted
from serving_layer.refusals import BodyTooLarge, BodyTooSlow, BodyUnreadable, UnsupportedBody

DEADLINE_SECONDS = 10.0
"""For the whole body."""
JSON, LINES = "application/json", "application/x-ndjson"
PLAIN, GZIP = "identity", "gzip"


async def received(request: Request) -> Posted:
    """The body as it was sent. BodyTooLarge, BodyTooSlow, BodyUnreadable, UnsupportedBody."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind not in {JSON, LINES}:
        raise UnsupportedBody(f"Events come as `{JSON}` or as `{LINES}`.", do="Say which one in `Content-Type`.")
    encoding = request.headers.get("content-encoding", PLAIN).strip().lower()
    if encoding not in {PLAIN, GZIP}:
        raise UnsupportedBody(f"A body comes as it is or as `{GZIP}`.", do=f"Compress it with `{GZIP}`, or not at all.")
    try:
        async with asyncio.timeout(DEADLINE_SECONDS):
            return Posted(await _body(request), encoding == GZIP, kind == LINES)
    except TimeoutError as error:
        message = f"The body of the request did not arrive within {DEADLINE_SECONDS:g} seconds."
        raise BodyTooSlow(message, do="Send fewer events in a request.") from error
    except ClientDisconnect as error:
        message = "The connection ended before the body of the request did."
        raise BodyUnreadable(message, do="Send the same again.") from error


async def _body(request: Request) -> bytes:
    """What the headers promise is refused before it is read, and whatever they promise no more is read."""
    promised = request.headers.get("content-length", "")
    read = bytearray()
    if promised.isdecimal() and int(promised[:20]) > MOST_SENT:
        raise _too_large()
    async for part in request.stream():
        read += part
        if len(read) > MOST_SENT:
            raise _too_large()
    return bytes(read)


def _too_large() -> BodyTooLarge:
    message = f"The body of the request is longer than {MOST_SENT:,} bytes."
    return BodyTooLarge(message, do=f"Send fewer events in a request, or compress it with `{GZIP}`.")
