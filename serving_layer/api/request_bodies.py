"""Request bodies: limited in bytes and seconds, and read only after the caller is authenticated."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import orjson
from fastapi import Request, Response
from fastapi.routing import APIRoute
from starlette.requests import ClientDisconnect
from starlette.types import Message

from serving_layer.api.caller import CALLER, authorize_once
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
    from serving_layer.keys.key import Caller

_STRANGERS = ""
"""Who holds the forms that need no key, such as those of the sign-in page. No tenant has this name."""


class BodyReader:
    """Reads request bodies within limits. One per process and event loop."""

    def __init__(self, limits: Limits) -> None:
        """`held` counts the bytes of all bodies that are arriving or in use.

        Those of one tenant have three quarters of what is allowed, as have those of everybody without a key together:
        whoever sends many bodies and never ends them keeps no other tenant's events out.
        """
        self.limits = limits
        self.held = 0
        self._of_holders: Counter[str] = Counter()
        self._most_of_holder = limits.bodies_bytes * 3 // 4

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
            TooBusyError: all bodies together have too many bytes, or those of the tenant.
        """
        read, holder = bytearray(), _holder(request)
        try:
            yield await self._read(request, read, most, do)
        finally:
            self.held -= len(read)
            if holder is not None:
                self._of_holders -= Counter({holder: len(read)})  # forgets who holds nothing

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
            self._hold(len(part), len(read), _holder(request))
            read += part
            if len(read) > most:
                raise _too_large(most, do)

    def _hold(self, size: int, before: int, holder: str | None) -> None:
        """Count a part of a body of which so many bytes came before. Raises TooBusyError if there is no room for it."""
        own = 0 if holder is None else self._of_holders[holder]
        is_only_one = own == before  # it always has room, however little that of a tenant is
        if self.held + size > self.limits.bodies_bytes or (own + size > self._most_of_holder and not is_only_one):
            raise TooBusyError("Too many request bodies are arriving.", do="Send the same again.")
        self.held += size
        if holder is not None:
            self._of_holders[holder] += size


def _holder(request: Request) -> str | None:
    """Whose share of memory the body of a request takes: a tenant, or strangers; None for keys of all tenants."""
    caller: Caller | None = request.scope.get(CALLER)
    return _STRANGERS if caller is None else caller.tenant


def bodies_of(request: Request) -> BodyReader:
    """The body reader of the app."""
    bodies: BodyReader = request.app.state.bodies
    return bodies


def _too_large(most: int, do: str) -> BodyTooLargeError:
    return BodyTooLargeError(f"The body of the request is longer than {most:,} bytes.", do=do)


Handler = Callable[[Request], Coroutine[Any, Any, Response]]


class BodyLimitRoute(APIRoute):
    """A route that authorizes and counts the caller before it reads the body, limits the body, and requires JSON.

    FastAPI itself would read the body first, and whoever sends broken ones would never be counted. Raises what
    `authorize` and `BodyReader.read` raise, and BadQuestionError.
    """

    most_bytes: int | None = None
    """None: `request_bytes` of Limits."""

    def get_route_handler(self) -> Handler:
        """Return FastAPI's handler, preceded by the checks."""
        handle, required = super().get_route_handler(), list(scopes(self.dependant))

        async def check_and_handle(request: Request) -> Response:
            authenticator: Authenticator = request.app.state.authenticator
            for scope in required:
                await authorize_once(request.scope, authenticator, request.headers.get("authorization"), scope)
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
