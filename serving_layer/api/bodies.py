"""Bodies of requests while they arrive: each bounded in bytes and in seconds, all together in memory."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import Request
from starlette.requests import ClientDisconnect

from serving_layer.api.limits import Limits
from serving_layer.errors import BodyTooLarge, BodyTooSlow, BodyUnreadable, TooBusy


class Bodies:
    """One per process and event loop. A body is read only once its caller is known."""

    def __init__(self, limits: Limits) -> None:
        """`held`: bytes of all bodies that are arriving or worked on."""
        self.limits = limits
        self.held = 0

    @asynccontextmanager
    async def whole(self, request: Request, most: int, do: str) -> AsyncIterator[bytes]:
        """Inside, the body; `most` bytes of it. BodyTooLarge, BodyTooSlow, BodyUnreadable, TooBusy.

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
            raise BodyTooSlow(message, do="Send less in a request.") from error
        except ClientDisconnect as error:
            message = "The connection ended before the body of the request did."
            raise BodyUnreadable(message, do="Send the same again.") from error
        return bytes(read)

    async def _read_parts(self, request: Request, read: bytearray, most: int, do: str) -> None:
        """What the headers promise is refused before it is read, and whatever they promise no more is read."""
        promised = request.headers.get("content-length", "")
        if promised.isdecimal() and int(promised[:20]) > most:
            raise _too_large(most, do)
        async for part in request.stream():
            if self.held + len(part) > self.limits.bodies_bytes:
                raise TooBusy("Too many bodies of requests are arriving.", do="Send the same again.")
            read += part
            self.held += len(part)
            if len(read) > most:
                raise _too_large(most, do)


def bodies_of(request: Request) -> Bodies:
    """Those that the app was made with."""
    bodies: Bodies = request.app.state.bodies
    return bodies


def _too_large(most: int, do: str) -> BodyTooLarge:
    return BodyTooLarge(f"The body of the request is longer than {most:,} bytes.", do=do)
