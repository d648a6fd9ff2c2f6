"""Load shedding: how many requests are in progress at once, and what each of them holds."""

from collections.abc import Callable, MutableMapping
from http import HTTPStatus
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from serving_layer.api.problems import SECURITY_HEADERS, problem
from serving_layer.errors import TooBusyError
from serving_layer.http.body_drain import has_body

SLOT_KEY = "galatea.place"


class InFlight:
    """Of one process and event loop. `now`: how many there are."""

    def __init__(self, most: int) -> None:
        """`most`: beyond it a request that comes is refused."""
        self.most = most
        self.now = 0

    @property
    def is_full(self) -> bool:
        """Whether another one is too many."""
        return self.now >= self.most


class RequestSlot:
    """What one request holds until its answer begins."""

    __slots__ = ("_ends", "_held", "_is_over", "_of")

    def __init__(self, of: InFlight) -> None:
        """Takes it."""
        self._of, self._held, self._is_over = of, 0, False
        self._ends: list[Callable[[int], None]] = []
        self.take()

    def take(self) -> None:
        """Work begins, or goes on."""
        if not self._held and not self._is_over:
            self._held = 1
            self._of.now += 1

    def leave(self) -> None:
        """The client is waited for."""
        self._of.now -= self._held
        self._held = 0

    def until_the_end(self, end: Callable[[int], None]) -> None:
        """Do this, with the status of the answer, when that begins; with 500 when there will be none."""
        self._ends.append(end)

    def end(self, status: int = 500) -> None:
        """The answer begins, or there will be none."""
        self.leave()
        self._is_over = True
        while self._ends:
            self._ends.pop()(status)


def slot_of(scope: MutableMapping[str, Any]) -> RequestSlot:
    """That of a request, by its ASGI scope."""
    place: RequestSlot = scope[SLOT_KEY]
    return place


class LoadSheddingMiddleware:
    """The outermost layer of the app but for those that count, and for Starlette's own error page."""

    def __init__(self, app: ASGIApp, in_flight: InFlight) -> None:
        """`app`: everything inside."""
        self._app = app
        self._in_flight = in_flight

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, unless there are too many."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        if self._in_flight.is_full:
            title = f"{self._in_flight.most} requests are in flight already."
            refused = problem(HTTPStatus.SERVICE_UNAVAILABLE, TooBusyError.code, title, "Ask again.")
            refused.raw_headers.extend(SECURITY_HEADERS)
            await refused(scope, receive, send)
            return
        place = scope[SLOT_KEY] = RequestSlot(self._in_flight)

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                place.end(message["status"])
                own = {name.lower() for name, _ in message["headers"]}
                message["headers"] = [*message["headers"], *(each for each in SECURITY_HEADERS if each[0] not in own)]
            await send(message)

        async def receive_without_place() -> Message:
            place.leave()
            try:
                return await receive()
            finally:
                place.take()

        try:
            await self._app(scope, receive_without_place if has_body(scope) else receive, send_with_headers)
        finally:
            place.end()
