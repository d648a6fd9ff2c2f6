"""Around every request: how many may be in flight, and headers for browsers to obey. Plain ASGI: it costs little."""

from http import HTTPStatus

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from serving_layer.api.headers import HEADERS
from serving_layer.api.in_flight import PLACE, InFlight, Place
from serving_layer.api.problems import problem
from serving_layer.errors import TooBusy
from serving_layer.http.body_drain import has_body


class Shell:
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
            refused = problem(HTTPStatus.SERVICE_UNAVAILABLE, TooBusy.code, title, "Ask again.")
            refused.raw_headers.extend(HEADERS)
            await refused(scope, receive, send)
            return
        place = scope[PLACE] = Place(self._in_flight)

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                place.end(message["status"])
                own = {name.lower() for name, _ in message["headers"]}
                message["headers"] = [*message["headers"], *(each for each in HEADERS if each[0] not in own)]
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
