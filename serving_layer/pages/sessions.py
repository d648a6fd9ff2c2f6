"""Who is signed in with a browser, which cannot send a key in a header when a link is followed. In memory alone.

Who looks at a page: a caller, by the key of a session or by none.

A page's script asks `/v1` as the visitor of the page: the cookie of a session stands for the header of its key.

For reading alone: what changes something needs the header itself, or a form of a page. Plain ASGI: it costs little.
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

HOURS = 8
SECONDS = HOURS * 3600
MOST = 10_000
"""How many are kept; beyond that the oldest ends."""
COOKIE = "galatea_session"


@dataclass(frozen=True)
class Session:
    """`key`: as it was pasted. It is asked again at every request, so a session ends with it."""

    id: str
    key: str = field(repr=False)
    ends_at: float

    @property
    def authorization(self) -> str:
        """The header that the key would be sent in."""
        return f"Bearer {self.key}"


class Sessions:
    """Of one process: whoever signed in at another one signs in again."""

    def __init__(self, clock: Callable[[], float]) -> None:
        """`clock`: monotonic seconds."""
        self._clock = clock
        self._secret = secrets.token_bytes(32)
        self._kept: dict[str, Session] = {}

    def begin(self, key: str) -> Session:
        """A new one, under an id that nobody can guess."""
        self._drop_ended()
        while len(self._kept) >= MOST:
            del self._kept[next(iter(self._kept))]
        session = Session(secrets.token_urlsafe(32), key, self._clock() + SECONDS)
        self._kept[session.id] = session
        return session

    def of(self, id_: str | None) -> Session | None:
        """The session of a cookie; None if there is none, or none any more."""
        session = self._kept.get(id_ or "")
        return session if session and self._clock() < session.ends_at else None

    def end(self, session: Session) -> None:
        """Forget it and its key."""
        self._kept.pop(session.id, None)

    def token(self, session: Session | None) -> str:
        """What a form of this session must bring back (CSRF); of a form without a session, that of the process."""
        return hmac.new(self._secret, (session.id if session else "").encode(), hashlib.sha256).hexdigest()

    def _drop_ended(self) -> None:
        now = self._clock()
        for each in [each for each in self._kept.values() if each.ends_at <= now]:
            del self._kept[each.id]


@dataclass(frozen=True)
class Visitor:
    """`token`: what its forms bring back."""

    caller: Caller
    session: Session | None
    token: str

    @property
    def authorization(self) -> str | None:
        """The header that the visitor's key would be sent in."""
        return self.session.authorization if self.session else None

    @property
    def is_operator(self) -> bool:
        """Whether pages that change something are shown."""
        return "operate" in self.caller.scopes and self.caller.sees_all

    @property
    def may_configure(self) -> bool:
        """Whether forms are shown that change what is the tenant's own."""
        return "configure" in self.caller.scopes or self.is_operator


async def visitor_of(request: Request) -> Visitor:
    """Who asks. ApiKeyMissingError where nothing is shown without a key, InvalidApiKeyError when the key of a session has ended."""
    gate: Authenticator = request.app.state.gate
    sessions: Sessions = request.app.state.sessions
    session = sessions.of(request.cookies.get(COOKIE))
    try:
        caller = await gate.keys.caller(session.authorization if session else None)
    except InvalidApiKeyError:
        if session:
            sessions.end(session)
        raise
    return Visitor(caller, session, sessions.token(session))


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
