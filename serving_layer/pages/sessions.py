"""Sign-in sessions of browsers: an API key that was pasted once, behind a cookie. Kept in memory only.

A browser cannot send a key in a header when it follows a link, so the cookie of a session stands for that header.
"""

import hashlib
import hmac
import secrets
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from fastapi import Request
from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Receive, Scope, Send

from serving_layer.errors import InvalidApiKeyError
from serving_layer.keys.key import Caller

if TYPE_CHECKING:
    from serving_layer.keys.authenticator import Authenticator

COOKIE = "galatea_session"
LIFETIME_SECONDS = 8 * 3600
MAX_SESSIONS = 10_000
"""Beyond that the oldest session ends."""


@dataclass(frozen=True)
class Session:
    """`key`: as it was pasted. It is checked at every request, so the session ends when the key does."""

    id: str
    key: str = field(repr=False)
    ends_at: float

    @property
    def authorization(self) -> str:
        """The `Authorization` header with the key."""
        return f"Bearer {self.key}"


class Sessions:
    """The sessions of this process; another process asks for the key again."""

    def __init__(self, clock: Callable[[], float]) -> None:
        """`clock`: monotonic seconds."""
        self._clock = clock
        self._secret = secrets.token_bytes(32)
        self._sessions: dict[str, Session] = {}

    def begin(self, key: str) -> Session:
        """Start a session with an id that cannot be guessed."""
        self._drop_ended()
        while len(self._sessions) >= MAX_SESSIONS:
            del self._sessions[next(iter(self._sessions))]
        session = Session(secrets.token_urlsafe(32), key, self._clock() + LIFETIME_SECONDS)
        self._sessions[session.id] = session
        return session

    def of(self, id_: str | None) -> Session | None:
        """The session of a cookie; None if there is none or it has ended."""
        session = self._sessions.get(id_ or "")
        return session if session and self._clock() < session.ends_at else None

    def end(self, session: Session) -> None:
        """Forget a session and its key."""
        self._sessions.pop(session.id, None)

    def token(self, session: Session | None) -> str:
        """The CSRF token that forms of a session bring back; for forms without a session, that of the process."""
        return hmac.new(self._secret, (session.id if session else "").encode(), hashlib.sha256).hexdigest()

    def _drop_ended(self) -> None:
        now = self._clock()
        for ended in [each for each in self._sessions.values() if each.ends_at <= now]:
            del self._sessions[ended.id]


@dataclass(frozen=True)
class Visitor:
    """Who looks at a page: a caller with or without a session. `token`: the CSRF token of their forms."""

    caller: Caller
    session: Session | None
    token: str

    @property
    def authorization(self) -> str | None:
        """The `Authorization` header of the visitor's key; None without a session."""
        return self.session.authorization if self.session else None

    @property
    def is_operator(self) -> bool:
        """Whether the pages of operators are open to them."""
        return "operate" in self.caller.scopes and self.caller.sees_all

    @property
    def may_configure(self) -> bool:
        """Whether they can change what belongs to their tenant, such as alert rules."""
        return "configure" in self.caller.scopes or self.is_operator


async def visitor_of(request: Request) -> Visitor:
    """The visitor of a request.

    Raises:
        ApiKeyMissingError: nothing is shown without a key, and there is no session.
        InvalidApiKeyError: the key of the session is not valid any more; the session ends.
    """
    authenticator: Authenticator = request.app.state.authenticator
    sessions: Sessions = request.app.state.sessions
    session = sessions.of(request.cookies.get(COOKIE))
    try:
        caller = await authenticator.keys.caller(session.authorization if session else None)
    except InvalidApiKeyError:
        if session:
            sessions.end(session)
        raise
    return Visitor(caller, session, sessions.token(session))


class SessionAuthorization:
    """ASGI middleware that lets the scripts of pages read `/v1`: the session cookie becomes the header of its key.

    For reading only: a request that changes something needs the header itself, or the form of a page. A header that
    the request brings is never replaced.
    """

    METHODS = frozenset({"GET", "HEAD"})

    def __init__(self, app: ASGIApp, sessions: Sessions) -> None:
        """`app`: everything inside."""
        self._app, self._sessions = app, sessions

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, with the header if its cookie stands for one."""
        if scope["type"] == "http" and scope["method"] in self.METHODS and scope["path"].startswith("/v1/"):
            self._authorize(scope)
        await self._app(scope, receive, send)

    def _authorize(self, scope: Scope) -> None:
        if all(name != b"cookie" for name, _ in scope["headers"]):
            return
        connection = HTTPConnection(scope)
        session = self._sessions.of(connection.cookies.get(COOKIE))
        if session and "authorization" not in connection.headers:
            scope["headers"] = [*scope["headers"], (b"authorization", session.authorization.encode())]
