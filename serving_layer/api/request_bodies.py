"""Request bodies: limited in bytes and seconds, and read only after the caller is authenticated."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import orjson
from fastapi import Request, Response
from fastapi.routing import APIRoute
from starlette.requests import ClientDisconnect
from starlette.types import Message

from serving_layer.api.limits import Limits
from serving_layer.api.openapi import scopes
from serving_layer.errors import (
    BadQuestionError,
    BodyTooLargeError,
    BodyTooSlowError,
    BodyUnreadableError,
    TooBusyError,
)

if TYPE_CHECKING:
    from serving_layer.keys.authenticator import Authenticator


class BodyReader:
    """One per process and event loop. A body is read only once its caller is known."""

    def __init__(self, limits: Limits) -> None:
        """`held`: bytes of all bodies that are arriving or worked on."""
        self.limits = limits
        self.held = 0

    @asynccontextmanager
    async def whole(self, request: Request, most: int, do: str) -> AsyncIterator[bytes]:
        """Inside, the body; `most` bytes of it. BodyTooLargeError, BodyTooSlowError, BodyUnreadableError, TooBusyError.

        `do`: what a caller does whose body is too large.
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
        """What the headers promise is refused before it is read, and whatever they promise no more is read."""
        promised = request.headers.get("content-length", "")
        if promised.isdecimal() and int(promised[:20]) > most:
            raise _too_large(most, do)
        async for part in request.stream():
            if self.held + len(part) > self.limits.bodies_bytes:
                raise TooBusyError("Too many bodies of requests are arriving.", do="Send the same again.")
            read += part
            self.held += len(part)
            if len(read) > most:
                raise _too_large(most, do)


def bodies_of(request: Request) -> BodyReader:
    """Those that the app was made with."""
    bodies: BodyReader = request.app.state.bodies
    return bodies


def _too_large(most: int, do: str) -> BodyTooLargeError:
    return BodyTooLargeError(f"The body of the request is longer than {most:,} bytes.", do=do)


Handler = Callable[[Request], Coroutine[Any, Any, Response]]


class BodyLimitRoute(APIRoute):
    """A route that reads so much of a body at most, and of whoever may ask. Raises what `BodyReader` raises; BadQuestionError.

    FastAPI itself would read a body first and ask who sends it then.
    """

    most_bytes: int | None = None
    """None: `question_bytes` of Limits."""

    def get_route_handler(self) -> Handler:
        """The usual handler, behind one that counts and looks whether it is JSON at all."""
        handle, asked = super().get_route_handler(), list(scopes(self.dependant))

        async def counted(request: Request) -> Response:
            authenticator: Authenticator = request.app.state.authenticator
            for scope in asked:
                await authenticator.identify(request.headers.get("authorization"), scope)
            bodies = bodies_of(request)
            most = self.most_bytes or bodies.limits.question_bytes
            async with bodies.whole(request, most, "Ask in several requests.") as body:
                refuse_no_json(body)

            async def again() -> Message:
                return {"type": "http.request", "body": body, "more_body": False}

            return await handle(Request(request.scope, again))

        return counted


def refuse_no_json(body: bytes) -> None:
    """BadQuestionError."""
    try:
        orjson.loads(body or b"null")
    except orjson.JSONDecodeError as error:
        raise BadQuestionError(
            f"The body of the request is no JSON: {error}.", do="Send one object as JSON."
        ) from error
