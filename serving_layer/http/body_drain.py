"""Drain what a client still sends of a request body when the response is ready.

Closing a connection on which data still arrives resets it, and a reset may discard the response before it is read.
"""

import asyncio
from contextlib import suppress
from http import HTTPStatus

from starlette.types import ASGIApp, Message, Receive, Scope, Send

DRAIN_SECONDS = 1.0
DRAIN_BYTES = 4_000_000
BODY_HEADERS = frozenset({b"content-length", b"transfer-encoding"})
CLOSE = (b"connection", b"close")


class BodyDrain:
    """Middleware: drains the unread body before the response, and closes the connection if there is still more."""

    def __init__(self, app: ASGIApp) -> None:
        """`app`: the inner application."""
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, and drain its body before the response."""
        if scope["type"] != "http" or not has_body(scope):
            await self._app(scope, receive, send)
            return
        body = _Body(scope, receive)

        async def send_after_the_body(message: Message) -> None:
            if message["type"] == "http.response.start" and not body.is_complete:
                if message["status"] != HTTPStatus.REQUEST_TIMEOUT:
                    await body.drain()
                if not body.is_complete:
                    message["headers"] = [*(each for each in message["headers"] if each[0] != CLOSE[0]), CLOSE]
            await send(message)

        await self._app(scope, body.receive, send_after_the_body)


class _Body:
    def __init__(self, scope: Scope, receive: Receive) -> None:
        self._receive = receive
        # A client that sent `Expect: 100-continue` does not send the body before it is asked for.
        self._is_requested = all(name != b"expect" for name, _ in scope["headers"])
        self.is_complete = False

    async def receive(self) -> Message:
        self._is_requested = True
        message = await self._receive()
        self.is_complete = not message.get("more_body")
        return message

    async def drain(self) -> None:
        drained = 0
        with suppress(TimeoutError):
            async with asyncio.timeout(DRAIN_SECONDS):
                while self._is_requested and not self.is_complete and drained < DRAIN_BYTES:
                    drained += len((await self.receive()).get("body", b""))


def has_body(scope: Scope) -> bool:
    """Whether the headers announce a body."""
    return any(name in BODY_HEADERS and value != b"0" for name, value in scope["headers"])
