"""How many requests there were, and how long they took, by route and status. Never by store, tenant or caller."""

import time

from prometheus_client import Histogram
from starlette.types import ASGIApp, Message, Receive, Scope, Send

SECONDS = Histogram(
    "galatea_request_seconds",
    "Duration of a request, until its whole answer is handed over.",
    ("route", "status"),
    buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10),
)
NO_ROUTE = "none"
"""A path that is nobody's, or a request that was refused before it reached one."""


class Requests:
    """The outermost layer of the app. Plain ASGI: it costs little."""

    def __init__(self, app: ASGIApp) -> None:
        """`app`: everything inside."""
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on and count it; one that ends without an answer counts as 500."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        status, began = 500, time.perf_counter()

        async def send_and_look(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, send_and_look)
        finally:
            route = getattr(scope.get("route"), "path", NO_ROUTE)
            SECONDS.labels(route, str(status)).observe(time.perf_counter() - began)
