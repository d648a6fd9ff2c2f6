"""A page's script asks `/v1` as the visitor of the page: the cookie of a session stands for the header of its key.

For reading alone: what changes something needs the header itself, or a form of a page. Plain ASGI: it costs little.
"""

from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Receive, Scope, Send

from serving_layer.pages.sessions import COOKIE, Sessions

READS = frozenset({"GET", "HEAD"})


class CookieKey:
    """Around the routes. A header of the request's own is never touched."""

    def __init__(self, app: ASGIApp, sessions: Sessions) -> None:
        """`app`: everything inside."""
        self._app, self._sessions = app, sessions

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, with the header that its cookie stands for."""
        if scope["type"] == "http" and scope["method"] in READS and scope["path"].startswith("/v1/"):
            self._translate(scope)
        await self._app(scope, receive, send)

    def _translate(self, scope: Scope) -> None:
        if all(name != b"cookie" for name, _ in scope["headers"]):
            return
        asked = HTTPConnection(scope)
        session = self._sessions.of(asked.cookies.get(COOKIE))
        if session and "authorization" not in asked.headers:
            scope["headers"] = [*scope["headers"], (b"authorization", session.authorization.encode())]
