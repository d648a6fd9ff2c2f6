"""Around every request: how many may be in flight, and headers for browsers to obey. Plain ASGI: it costs little."""

from http import HTTPStatus

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from serving_layer.api.headers import HEADERS
from serving_layer.api.problems import problem
from serving_layer.refusals import TooBusy

IN_FLIGHT = 256
EVENTS = b"text/event-stream"


class Shell:
    """The outermost layer of the app but for Starlette's own error page."""

    def __init__(self, app: ASGIApp) -> None:
        """`app`: everything inside."""
        self._app = app
        self._in_flight = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, unless there are too many."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        is_counted = False

        async def send_with_headers(message: Message) -> None:
            nonlocal is_counted
            if message["type"] == "http.response.start":
                own = {name.lower(): value for name, value in message["headers"]}
                message["headers"] = [*message["headers"], *(each for each in HEADERS if each[0] not in own)]
                if is_counted and own.get(b"content-type", b"").startswith(EVENTS):
                    is_counted, self._in_flight = False, self._in_flight - 1  # it lasts, and `Live` bounds how many
            await send(message)

        if self._in_flight >= IN_FLIGHT:
            refused = problem(
                HTTPStatus.SERVICE_UNAVAILABLE,
                TooBusy.code,
                f"{IN_FLIGHT} requests are in flight already.",
                "Ask again.",
            )
            await refused(scope, receive, send_with_headers)
            return
        is_counted, self._in_flight = True, self._in_flight + 1
        try:
            await self._app(scope, receive, send_with_headers)
        finally:
            self._in_flight -= is_counted
