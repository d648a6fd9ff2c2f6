"""Load shedding: reject requests above a limit of concurrent requests, and add security headers to responses.

A request counts only while the process works on it: not while its body arrives, and not once its response has begun.
Slow senders and slow readers therefore take no slot from others.
"""

from collections.abc import Callable, MutableMapping
from http import HTTPStatus
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from serving_layer.errors import TooBusyError
from serving_layer.http.body_drain import has_body
from serving_layer.http.problems import SECURITY_HEADERS, problem

SLOT_KEY = "galatea.slot"
FRAMED_KEY = "galatea.framed"
"""Key of the ASGI scope: pages of other origins may show the response in a frame, as its own policy says."""


class InFlight:
    """The requests in progress. One per process and event loop."""

    def __init__(self, max_requests: int) -> None:
        """`max_requests`: above it, new requests are rejected."""
        self.max_requests = max_requests
        self.now = 0

    @property
    def is_full(self) -> bool:
        """Whether another request would be one too many."""
        return self.now >= self.max_requests


class RequestSlot:
    """The slot of one request, from its arrival until its response begins."""

    __slots__ = ("_callbacks", "_has_ended", "_held", "_in_flight")

    def __init__(self, in_flight: InFlight) -> None:
        """Acquire a slot."""
        self._in_flight, self._held, self._has_ended = in_flight, 0, False
        self._callbacks: list[Callable[[int], None]] = []
        self.acquire()

    def acquire(self) -> None:
        """Work begins or continues."""
        if not self._held and not self._has_ended:
            self._held = 1
            self._in_flight.now += 1

    def release(self) -> None:
        """Work pauses until the client sends more."""
        self._in_flight.now -= self._held
        self._held = 0

    def on_end(self, callback: Callable[[int], None]) -> None:
        """Call this with the status when the response begins; with 500 if there will be none."""
        self._callbacks.append(callback)

    def end(self, status: int = 500) -> None:
        """The response begins, or there will be none."""
        self.release()
        self._has_ended = True
        while self._callbacks:
            self._callbacks.pop()(status)


def slot_of(scope: MutableMapping[str, Any]) -> RequestSlot:
    """The slot of the request with this ASGI scope."""
    slot: RequestSlot = scope[SLOT_KEY]
    return slot


class LoadSheddingMiddleware:
    """Plain ASGI for speed; inside of `RequestMetrics` and `BodyDrain` only."""

    def __init__(self, app: ASGIApp, in_flight: InFlight) -> None:
        """`app`: the inner application."""
        self._app = app
        self._in_flight = in_flight

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or respond with 503 if there are too many."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        if self._in_flight.is_full:
            title = f"{self._in_flight.max_requests} requests are already in progress."
            rejection = problem(HTTPStatus.SERVICE_UNAVAILABLE, TooBusyError.code, title, "Try again.")
            rejection.raw_headers.extend(SECURITY_HEADERS)
            await rejection(scope, receive, send)
            return
        slot = scope[SLOT_KEY] = RequestSlot(self._in_flight)

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                slot.end(message["status"])
                own = {name.lower() for name, _ in message["headers"]}
                if scope.get(FRAMED_KEY):  # it cannot name origins, and would forbid all of them
                    own.add(b"x-frame-options")
                message["headers"] = [*message["headers"], *(each for each in SECURITY_HEADERS if each[0] not in own)]
            await send(message)

        async def receive_without_slot() -> Message:
            slot.release()
            try:
                return await receive()
            finally:
                slot.acquire()

        try:
            await self._app(scope, receive_without_slot if has_body(scope) else receive, send_with_headers)
        finally:
            slot.end()
