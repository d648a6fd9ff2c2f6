"""Request bodies: limited in bytes and seconds, and read only after the caller is authenticated."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import orjson
from fastapi import Request, Response
from fastapi.routing import APIRoute
from starlette.requests import ClientDisconnect
from starlette.types import Message

from serving_layer.api.caller import client_of
from serving_layer.api.openapi import scopes
from serving_layer.errors import (
    BadQuestionError,
    BodyTooLargeError,
    BodyTooSlowError,
    BodyUnreadableError,
    TooBusyError,
    UnsupportedBodyError,
)
from serving_layer.limits import Limits

if TYPE_CHECKING:
    from serving_layer.keys.authenticator import Authenticator


class BodyReader:
    """Reads request bodies within limits. One per process and event loop."""

    def __init__(self, limits: Limits) -> None:
        """`held` counts the bytes of all bodies that are arriving or in use."""
        self.limits = limits
        self.held = 0

    @asynccontextmanager
    async def read(self, request: Request, most: int, do: str) -> AsyncIterator[bytes]:
        """Read the body, and count its bytes as held until the block ends.

        Args:
            request: whose body is read.
            most: bytes that the body may have.
            do: what a caller can do whose body is too large.

        Raises:
            BodyTooLargeError: the body has more bytes.
            BodyTooSlowError: it did not arrive in time.
            BodyUnreadableError: the connection ended before.
            TooBusyError: all bodies together have too many bytes.
        """
        read = bytearray()
        try:
            yield await self._read(request, read, most, do)
        finally:
            self.held -= len(read)

    async def _read(self, request: Request, read: bytearray, most: int, do: str) -> bytes:
        seconds = self.limits.receive_seconds
        try:
            async with asyncio.timeout(seconds):
                await self._read_parts(request, read, most, do)
        except TimeoutError as error:
            message = f"The body of the request did not arrive within {seconds:g} seconds."
            raise BodyTooSlowError(message, do="Send less in a request.") from error
        except ClientDisconnect as error:
            message = "The connection ended before the body of the request did."
            raise BodyUnreadableError(message, do="Send the same again.") from error
        return bytes(read)

    async def _read_parts(self, request: Request, read: bytearray, most: int, do: str) -> None:
        """Reject a body that is too large by its headers before reading it, and never read more than the limit."""
        declared = request.headers.get("content-length", "")
        if declared.isdecimal() and int(declared[:20]) > most:
            raise _too_large(most, do)
        async for part in request.stream():
            if self.held + len(part) > self.limits.bodies_bytes:
                raise TooBusyError("Too many request bodies are arriving.", do="Send the same again.")
            read += part
            self.held += len(part)
            if len(read) > most:
                raise _too_large(most, do)


def bodies_of(request: Request) -> BodyReader:
    """The body reader of the app."""
    bodies: BodyReader = request.app.state.bodies
    return bodies


def _too_large(most: int, do: str) -> BodyTooLargeError:
    return BodyTooLargeError(f"The body of the request is longer than {most:,} bytes.", do=do)


Handler = Callable[[Request], Coroutine[Any, Any, Response]]


class BodyLimitRoute(APIRoute):
    """A route that authenticates the caller before it reads the body, limits the body, and requires JSON.

    FastAPI itself would read the body first. Raises what `BodyReader.read` raises, and BadQuestionError.
    """

    most_bytes: int | None = None
    """None: `request_bytes` of Limits."""

    def get_route_handler(self) -> Handler:
        """Return FastAPI's handler, preceded by the checks."""
        handle, required = super().get_route_handler(), list(scopes(self.dependant))

        async def check_and_handle(request: Request) -> Response:
            authenticator: Authenticator = request.app.state.authenticator
            for scope in required:
                await authenticator.identify(request.headers.get("authorization"), scope, client_of(request.scope))
            bodies = bodies_of(request)
            most = self.most_bytes or bodies.limits.request_bytes
            async with bodies.read(request, most, "Use several requests.") as body:
                _require_json(body)

            async def replay_body() -> Message:
                return {"type": "http.request", "body": body, "more_body": False}

            return await handle(Request(request.scope, replay_body))

        return check_and_handle


def _require_json(body: bytes) -> None:
    """Raise BadQuestionError if the body is not JSON."""
    try:
        orjson.loads(body or b"null")
    except orjson.JSONDecodeError as error:
        raise BadQuestionError(f"The request body is not JSON: {error}.", do="Send one object as JSON.") from error


MAX_FILE_BYTES = 8_000_000
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
    async with bodies_of(request).read(request, MAX_FILE_BYTES, do) as body:
        yield body
