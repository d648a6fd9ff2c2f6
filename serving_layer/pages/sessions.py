"""Sign-in sessions of browsers: an API key that was pasted once, behind a cookie, for every api process.

A browser cannot send a key in a header when it follows a link, so the cookie of a session stands for that header.

A session is stored under a digest of its cookie, with its key encrypted by a secret that only the cookie gives. So a
process needs no secret of its own to read the sessions of others, and whoever reads the table can sign in nowhere.

A key has at most so many sessions, of all processes together: another one ends the oldest of that key, and of no other.
"""

import hashlib
import hmac
import re
import secrets
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from typing import NamedTuple, Protocol

from cachetools import LRUCache
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from fastapi import Request, Response
from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Receive, Scope, Send

from master_dataset.errors import CassandraUnavailableError
from serving_layer.api.caller import SESSION_EXISTS, client_of
from serving_layer.errors import InvalidApiKeyError, RateLimitedError
from serving_layer.http.problems import problem
from serving_layer.keys.authenticator import Authenticator, refuse_anonymous_through_proxy
from serving_layer.keys.key import Caller
from serving_layer.keys.throttle import LookupThrottle

COOKIE, ENCRYPTED_COOKIE = "galatea_session", "__Host-galatea_session"
"""Over HTTP, and where the browser comes by HTTPS: browsers take the latter from this host alone, and encrypted."""
LIFETIME_SECONDS = 8 * 3600
REFRESH_SECONDS = 2.0
"""How long a session may be used in one process after it ended in another."""
MAX_SESSIONS, MAX_SESSIONS_OF_KEY = 10_000, 100
"""Sessions that a process keeps in memory, and those of one key, in memory and stored; it reads others again."""
MAX_ENDED_AT_ONCE = 100
"""Sessions of one key that one sign-in ends: usually one."""
MAX_UNKNOWN, UNKNOWN_SECONDS = 10_000, 60.0
"""Ids without a session that a process remembers, and for how long: nobody can begin a session with one of them."""
UNKNOWN_PER_MINUTE = 30
"""Ids without a session of one address, in one process; then few are looked up at once."""
_ID = re.compile(r"[\w-]{43}", re.ASCII)
_NONCE_BYTES = 12


@dataclass(frozen=True)
class Session:
    """`id`: the value of the cookie. `key`: as it was pasted; checked at every request, so both end together."""

    id: str = field(repr=False)
    key: str = field(repr=False)
    ends_at: datetime

    @property
    def authorization(self) -> str:
        """The `Authorization` header with the key."""
        return f"Bearer {self.key}"

    @property
    def token(self) -> str:
        """The CSRF token that its forms bring back, the same in every process."""
        return _derived(self.id, b"form").hex()


class StoredSession(NamedTuple):
    """A session at rest. `sealed`: the key, encrypted with a secret that only the cookie gives."""

    sealed: bytes
    ends_at: datetime


class SessionPlace(NamedTuple):
    """Where a session is stored. `owner`: a digest of its key, by which its other sessions are found."""

    owner: bytes
    ends_at: datetime
    digest: bytes


class SessionStore(Protocol):
    """Where all processes keep sessions. Every method raises CassandraUnavailableError."""

    async def put(self, place: SessionPlace, sealed: bytes, seconds: int) -> None:
        """Keep a session for so many seconds."""

    async def get(self, digest: bytes) -> StoredSession | None:
        """None if there is none of this digest, or not any more."""

    async def of_owner(self, owner: bytes, most: int) -> Sequence[SessionPlace]:
        """At most so many sessions of a key, those that end last first."""

    async def remove(self, place: SessionPlace) -> None:
        """End a session; nothing happens if there is none."""


class SessionCache:
    """The sessions that one process has in memory, each with the time when it was read.

    Whoever begins many sessions with a key takes their places from the sessions of that key: if there is no room, the
    key with the most sessions gives up the one that was used longest ago.
    """

    def __init__(self, most: int = MAX_SESSIONS, most_of_key: int = MAX_SESSIONS_OF_KEY) -> None:
        """`most`: sessions of all keys. `most_of_key`: of one key."""
        self._most, self._most_of_key = most, most_of_key
        self._known: dict[bytes, tuple[float, Session]] = {}
        self._of_keys: dict[str, OrderedDict[bytes, None]] = {}

    def __len__(self) -> int:
        """How many sessions are in memory."""
        return len(self._known)

    def get(self, digest: bytes) -> tuple[float, Session] | None:
        """When the session of this digest was read, and the session; None if it is not in memory."""
        known = self._known.get(digest)
        if known is not None:
            self._of_keys[known[1].key].move_to_end(digest)
        return known

    def put(self, digest: bytes, read_at: float, session: Session) -> None:
        """Keep a session that was read at this time."""
        if digest not in self._known:
            own = self._of_keys.get(session.key)
            if own is not None and len(own) >= self._most_of_key:
                self._remove_oldest(session.key)
            elif len(self._known) >= self._most:
                largest = max(self._of_keys, key=lambda key: (len(self._of_keys[key]), key == session.key))
                self._remove_oldest(largest)
        self._known[digest] = read_at, session
        of_key = self._of_keys.setdefault(session.key, OrderedDict())
        of_key[digest] = None
        of_key.move_to_end(digest)

    def remove(self, digest: bytes) -> None:
        """Forget a session; nothing happens if it is not in memory."""
        known = self._known.pop(digest, None)
        if known is None:
            return
        of_key = self._of_keys[known[1].key]
        del of_key[digest]
        if not of_key:
            del self._of_keys[known[1].key]

    def _remove_oldest(self, key: str) -> None:
        self.remove(next(iter(self._of_keys[key])))


class Sessions:
    """The sessions of all processes, as one of them sees them. Belongs to one event loop."""

    def __init__(self, store: SessionStore, clock: Callable[[], float], now: Callable[[], datetime]) -> None:
        """`clock`: monotonic seconds, for refreshes. `now`: by which sessions end."""
        self._store, self._clock, self._now = store, clock, now
        self._known = SessionCache()
        self._unknown: LRUCache[bytes, float] = LRUCache(MAX_UNKNOWN)
        self._lookups = LookupThrottle("sessions", UNKNOWN_PER_MINUTE, clock)

    async def begin(self, key: str) -> Session:
        """Start a session with an id that cannot be guessed. CassandraUnavailableError if it cannot be stored."""
        session = Session(secrets.token_urlsafe(32), key, self._now() + timedelta(seconds=LIFETIME_SECONDS))
        place = _place(session)
        await self._store.put(place, _seal(session.id, key), LIFETIME_SECONDS)
        self._known.put(place.digest, self._clock(), session)
        stored = await self._store.of_owner(place.owner, MAX_SESSIONS_OF_KEY + MAX_ENDED_AT_ONCE)
        for oldest in stored[MAX_SESSIONS_OF_KEY:]:
            if oldest.digest != place.digest:  # of those that began at the same moment, any may be listed last
                await self._remove(oldest)
        return session

    async def of(self, id_: str | None, client: str = "") -> Session | None:
        """The session of a cookie; None if there is none or it has ended.

        A session that this process knows goes on while the store does not answer: operators need its pages just then.

        Args:
            id_: the value of the cookie, from anybody, so it may be anything; None if the request has none.
            client: address of whoever sends it.

        Raises:
            RateLimitedError: there is no such session, as of too many other ids from this address, or too many wait.
            CassandraUnavailableError: this process does not know the session, and the store does not answer.
        """
        if not id_ or not _ID.fullmatch(id_):
            return None
        digest = _digest(id_)
        known = self._known.get(digest)
        session = await (self._first_read(id_, digest, client) if known is None else self._current(*known))
        return session if session is not None and self._now() < session.ends_at else None

    async def exists(self, session: Session) -> bool:
        """Whether a session that was found before has neither been ended nor expired.

        It goes on while the store does not answer, as of `of`, but only if this process still has it in memory.

        Raises:
            CassandraUnavailableError: the process does not know, and the store does not answer.
        """
        digest = _digest(session.id)
        known = self._known.get(digest)
        found = await (self._read(session.id, digest) if known is None else self._current(*known))
        return found is not None and self._now() < found.ends_at

    async def _first_read(self, id_: str, digest: bytes, client: str) -> Session | None:
        asked_at = self._unknown.get(digest)
        if asked_at is not None and self._clock() - asked_at < UNKNOWN_SECONDS:
            return None
        if asked_at is None:
            session = await self._lookups.look_up(client, lambda: self._read(id_, digest))
        else:  # a browser that was left open sends the same one again and again
            session = await self._read(id_, digest)
        if session is None:
            self._unknown[digest] = self._clock()
        return session

    async def _current(self, read_at: float, session: Session) -> Session | None:
        if self._clock() - read_at < REFRESH_SECONDS:
            return session
        try:
            return await self._read(session.id, _digest(session.id))
        except CassandraUnavailableError:
            return session

    async def _read(self, id_: str, digest: bytes) -> Session | None:
        began = self._clock()
        stored = await self._store.get(digest)
        key = None if stored is None else _opened(id_, stored.sealed)
        if stored is None or key is None:
            self._known.remove(digest)
            return None
        session = Session(id_, key, stored.ends_at)
        self._known.put(digest, began, session)
        return session

    async def end(self, session: Session) -> None:
        """End a session, here at once and elsewhere within `REFRESH_SECONDS`. CassandraUnavailableError."""
        await self._remove(_place(session))

    async def _remove(self, place: SessionPlace) -> None:
        self._known.remove(place.digest)
        await self._store.remove(place)
        self._known.remove(place.digest)  # what was read meanwhile may be from before


def _derived(id_: str, purpose: bytes) -> bytes:
    return hmac.digest(id_.encode(), purpose, hashlib.sha256)


def _place(session: Session) -> SessionPlace:
    return SessionPlace(hashlib.sha256(session.key.encode()).digest(), session.ends_at, _digest(session.id))


def _digest(id_: str) -> bytes:
    return _derived(id_, b"row")


def _seal(id_: str, key: str) -> bytes:
    nonce = secrets.token_bytes(_NONCE_BYTES)
    return nonce + AESGCM(_derived(id_, b"key")).encrypt(nonce, key.encode(), None)


def _opened(id_: str, sealed: bytes) -> str | None:
    """The key; None if something else than a process of ours has written it."""
    try:
        opened = AESGCM(_derived(id_, b"key")).decrypt(sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:], None)
        return opened.decode()
    except (InvalidTag, ValueError):
        return None


SHARED_VISIT = "galatea.shared_visit"
"""Key of the ASGI scope: the `SharedVisit` of a page that is rendered for a share link."""


@dataclass(frozen=True)
class SharedVisit:
    """Whoever has a share link looks at its page. `asked`: collects the addresses in REST of the page's queries."""

    caller: Caller
    asked: set[str]


@dataclass(frozen=True)
class Visitor:
    """Who looks at a page: a caller with or without a session."""

    caller: Caller
    session: Session | None

    @property
    def token(self) -> str:
        """The CSRF token of their forms; empty without a session, which a form cannot misuse."""
        return self.session.token if self.session else ""

    @property
    def authorization(self) -> str | None:
        """The `Authorization` header of the visitor's key; None without a session."""
        return self.session.authorization if self.session else None

    @property
    def is_operator(self) -> bool:
        """Whether the pages of operators are open to them."""
        return self.caller.is_operator

    @property
    def may_configure(self) -> bool:
        """Whether they can change what belongs to their tenant, such as alert rules."""
        return self.caller.may_configure


def session_cookie(request: HTTPConnection) -> str | None:
    """The id of a session that the request brings; None if it brings none.

    Another host of the same domain can set the cookie without the prefix, so it never counts beside the other or over
    HTTPS. A proxy that encrypts and is not named looks like HTTP.
    """
    if ENCRYPTED_COOKIE in request.cookies or request.url.scheme == "https":
        return request.cookies.get(ENCRYPTED_COOKIE)
    return request.cookies.get(COOKIE)


def forget_session(request: HTTPConnection, response: Response) -> None:
    """Let the browser delete its session cookies."""
    for name in (COOKIE, ENCRYPTED_COOKIE):
        if name in request.cookies:
            is_secure = name == ENCRYPTED_COOKIE
            response.delete_cookie(name, path="/", secure=is_secure, httponly=True, samesite="strict")


async def visitor_of(request: Request) -> Visitor:
    """The visitor of a request. For the page of a share link, cookies count for nothing.

    Raises:
        ApiKeyMissingError: there is no session, and nothing is shown without a key, or not through an unknown proxy.
        InvalidApiKeyError: the key of the session is not valid any more; the session ends.
        RateLimitedError: as of `Sessions.of`.
        CassandraUnavailableError: the session cannot be read.
    """
    shared: SharedVisit | None = request.scope.get(SHARED_VISIT)
    if shared is not None:
        return Visitor(shared.caller, None)
    authenticator: Authenticator = request.app.state.authenticator
    sessions: Sessions = request.app.state.sessions
    session = await sessions.of(session_cookie(request), client_of(request.scope))
    if session is None:
        refuse_anonymous_through_proxy(request.scope, None)
    try:
        caller = await authenticator.keys.caller(session.authorization if session else None)
    except InvalidApiKeyError:
        if session:
            await sessions.end(session)
        raise
    return Visitor(caller, session)


class SessionAuthorization:
    """ASGI middleware that lets the scripts of pages read `/v1`: the session cookie becomes the header of its key.

    For reading only: a request that changes something needs the header itself, or the form of a page. A header that
    the request brings is never replaced. Routes whose answers go on for long ask `SESSION_EXISTS` meanwhile.
    """

    METHODS = frozenset({"GET", "HEAD"})

    def __init__(self, app: ASGIApp, sessions: Sessions) -> None:
        """`app`: everything inside."""
        self._app, self._sessions = app, sessions

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, with the header if its cookie stands for one."""
        if scope["type"] == "http" and scope["method"] in self.METHODS and scope["path"].startswith("/v1/"):
            try:
                await self._authorize(scope)
            except (CassandraUnavailableError, RateLimitedError) as error:  # handlers of errors are further inside
                await problem(error.status, error.code, error.message, error.do)(scope, receive, send)
                return
        await self._app(scope, receive, send)

    async def _authorize(self, scope: Scope) -> None:
        names = [name for name, _ in scope["headers"]]
        if b"cookie" not in names or b"authorization" in names:
            return
        session = await self._sessions.of(session_cookie(HTTPConnection(scope)), client_of(scope))
        if session:
            scope["headers"] = [*scope["headers"], (b"authorization", session.authorization.encode())]
            scope[SESSION_EXISTS] = partial(self._sessions.exists, session)
