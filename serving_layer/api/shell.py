"""Around every request: how many may be in flight, and headers for browsers to obey. Plain ASGI: it costs little."""

from http import HTTPStatus

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from serving_layer.api.problems import problem
from serving_layer.refusals import TooBusy

IN_FLIGHT = 256
HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"content-security-policy", b"default-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"),
    (b"cache-control", b"no-store"),
)


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

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], *HEADERS]
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
        self._in_flight += 1
        try:
            await self._app(scope, receive, send_with_headers)
        finally:
            self._in_flight -= 1
