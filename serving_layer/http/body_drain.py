"""What a request still sends when its answer is ready: it is read and thrown away for a moment, so that it is heard.

A server that closes a connection on which something still comes resets it, and a reset may take the answer with it.
"""

import asyncio
from contextlib import suppress
from http import HTTPStatus

from starlette.types import ASGIApp, Message, Receive, Scope, Send

SECONDS = 1.0
MOST_BYTES = 4_000_000
BODY = frozenset({b"content-length", b"transfer-encoding"})
CLOSE = (b"connection", b"close")


class BodyDrain:
    """Around every request that has a body. What it was not read of ends the connection behind the answer."""

    def __init__(self, app: ASGIApp) -> None:
        """`app`: everything inside."""
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on."""
        if scope["type"] != "http" or not has_body(scope):
            await self._app(scope, receive, send)
            return
        body = _Body(scope, receive)

        async def send_behind_the_body(message: Message) -> None:
            if message["type"] == "http.response.start" and not body.is_whole:
                if message["status"] != HTTPStatus.REQUEST_TIMEOUT:
                    await body.throw_away()
                if not body.is_whole:
                    message["headers"] = [*(each for each in message["headers"] if each[0] != CLOSE[0]), CLOSE]
            await send(message)

        await self._app(scope, body.receive, send_behind_the_body)


class _Body:
    def __init__(self, scope: Scope, receive: Receive) -> None:
        self._receive = receive
        # Whoever waits to be asked for a body has not sent it yet.
        self._is_asked_for = all(name != b"expect" for name, _ in scope["headers"])
        self.is_whole = False

    async def receive(self) -> Message:
        self._is_asked_for = True
        message = await self._receive()
        self.is_whole = not message.get("more_body")
        return message

    async def throw_away(self) -> None:
        thrown = 0
        with suppress(TimeoutError):
            async with asyncio.timeout(SECONDS):
                while self._is_asked_for and not self.is_whole and thrown < MOST_BYTES:
                    thrown += len((await self.receive()).get("body", b""))


def has_body(scope: Scope) -> bool:
    """Whether its headers announce one."""
    return any(name in BODY and value != b"0" for name, value in scope["headers"])
