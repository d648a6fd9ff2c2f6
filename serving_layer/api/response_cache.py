"""Cache of whole responses: dashboards repeat the same request over and over, and mostly nothing has changed.

A repeated request is neither routed nor parsed again. Authentication, rate limits and the version of the data are
checked every time. Plain ASGI for speed.
"""

from collections.abc import Hashable, Iterable
from http import HTTPStatus
from typing import TYPE_CHECKING, NamedTuple, Self

from cachetools import LRUCache
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from master_dataset.errors import GalateaError
from serving_layer.api.caller import AUTHORIZED, READ, authorize_once
from serving_layer.api.conditional_requests import AnswerProvenance, requires_fresh
from serving_layer.caching import ANY, if_none_match, keep
from serving_layer.saved.shares import token_in

if TYPE_CHECKING:
    from serving_layer.keys.authenticator import Authenticator
    from serving_layer.keys.key import Caller
    from serving_layer.service import QueryService
    from serving_layer.service import Request as AnswerRequest

MAX_BYTES = 64 * 1024 * 1024
"""Of all cached responses. JSON bodies are the same objects that `QueryService` caches, so they are held once."""
MAX_REQUEST_BYTES, REQUEST_FACTOR = 32 * 1024 * 1024, 16
"""Of all requests that are known by their addresses, and how many times as much memory as its query string each needs:
short ids take the most."""
OVERHEAD_BYTES = 2_000
"""Of a cached response or request, in addition to its body or query string."""
EVENTS = "/v1/events/"
"""Sending events never changes what a cached response depends on."""
_NOT_MODIFIED_HEADERS = frozenset({b"etag", b"cache-control", b"vary"})

Url = tuple[str, bytes]
"""Path and query string."""


class CachedResponse(NamedTuple):
    """A response. `body` is None if only its tag was ever requested. `route` is for the request metrics.

    `key`: of the version of the data. `size`: bytes that count towards `MAX_BYTES`.
    """

    key: Hashable
    tag: str
    route: object
    headers: list[tuple[bytes, bytes]]
    body: bytes | None
    size: int

    def whole(self, body: bytes) -> Iterable[Message]:
        """The ASGI messages of the complete response."""
        yield {"type": "http.response.start", "status": HTTPStatus.OK, "headers": self.headers}
        yield {"type": "http.response.body", "body": body}

    def not_modified(self) -> Iterable[Message]:
        """The ASGI messages of a response without a body."""
        headers = [each for each in self.headers if each[0] in _NOT_MODIFIED_HEADERS]
        yield {"type": "http.response.start", "status": HTTPStatus.NOT_MODIFIED, "headers": headers}
        yield {"type": "http.response.body", "body": b""}


class RequestHeaders(NamedTuple):
    """The headers that matter for the cache. `bypass`: the route itself has to handle the request."""

    authorization: str | None
    if_none_match: list[str]
    bypass: bool

    @classmethod
    def of(cls, scope: Scope) -> Self:
        """Read them from the ASGI scope."""
        authorization, if_none_match, bypass = None, [], False
        for name, value in scope["headers"]:
            if name == b"authorization" and authorization is None:
                authorization = value.decode("latin-1")
            elif name == b"if-none-match":
                if_none_match.append(value.decode("latin-1"))
            elif name == b"cache-control":
                bypass = bypass or requires_fresh(value.decode("latin-1"))
            elif name == b"galatea-at-least":
                bypass = True
        return cls(authorization, if_none_match, bypass or ANY in if_none_match)


class _Known(NamedTuple):
    """The request that an address asks. `size`: bytes that count towards `MAX_REQUEST_BYTES`."""

    request: "AnswerRequest"
    size: int


class ResponseCacheMiddleware:
    """Responds from the cache while the data is unchanged, and caches the responses of routes that allow it.

    A route allows it by leaving its `AnswerProvenance` in the state of the request.
    """

    def __init__(self, app: ASGIApp) -> None:
        """`app`: the inner application."""
        self._app = app
        self._requests: LRUCache[Url, _Known] = LRUCache(MAX_REQUEST_BYTES, getsizeof=lambda known: known.size)
        self._responses: LRUCache[tuple[Url, str], CachedResponse] = LRUCache(
            MAX_BYTES, getsizeof=lambda cached: cached.size
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Respond from the cache, or pass the request on."""
        if scope["type"] != "http" or scope["path"].startswith(EVENTS):
            await self._app(scope, receive, send)
            return
        url = (scope["path"], scope["query_string"])
        known = self._requests.get(url) if scope["method"] == "GET" else None
        messages = None if known is None else await self._cached(url, known.request, scope)
        if messages is None:
            await self._app(scope, receive, self._caching(url, scope, send))
            if "provenance" not in scope.get("state", {}):
                scope["app"].state.answers.expire_snapshot()  # it may have shown a publication, or made one
            return
        for message in messages:
            await send(message)

    async def _cached(self, url: Url, request: "AnswerRequest", scope: Scope) -> Iterable[Message] | None:
        """The current response for this caller. None: the route has to respond, or to report the error."""
        headers, app = RequestHeaders.of(scope), scope["app"]
        if headers.bypass or token_in(headers.authorization) is not None:  # the route knows what a shared page may ask
            return None
        authenticator: Authenticator = app.state.authenticator
        answers: QueryService = app.state.answers
        try:
            caller = await authorize_once(scope, authenticator, headers.authorization, READ)
            version = await answers.read_version(request, caller)
        except GalateaError:
            return None
        cached = self._responses.get((url, caller.visibility_scope))
        if cached is None or cached.key != version.key:
            return None
        scope["route"] = cached.route
        if headers.if_none_match and if_none_match(headers.if_none_match, cached.tag):
            return cached.not_modified()
        return None if cached.body is None else cached.whole(cached.body)

    def _caching(self, url: Url, scope: Scope, send: Send) -> Send:
        """Wrap `send` so that the response is cached if it comes in one part."""
        start: Message | None = None

        async def send_and_cache(message: Message) -> None:
            nonlocal start
            if message["type"] == "http.response.start":
                start = {"status": message["status"], "headers": message["headers"]}
            elif start is not None and not message.get("more_body"):
                self._put(url, scope, start, message.get("body", b""))
                start = None
            else:
                start = None  # the response comes in parts
            await send(message)

        return send_and_cache

    def _put(self, url: Url, scope: Scope, start: Message, body: bytes) -> None:
        state = scope.get("state", {}) if scope["method"] == "GET" else {}
        provenance: AnswerProvenance | None = state.get("provenance")
        caller: Caller | None = scope.get(AUTHORIZED, {}).get(READ)
        if provenance is None or caller is None or start["status"] not in (HTTPStatus.OK, HTTPStatus.NOT_MODIFIED):
            return
        key, place = provenance.version.key, (url, caller.visibility_scope)
        is_whole = start["status"] == HTTPStatus.OK
        known = self._responses.get(place)
        if not is_whole and known is not None and known.key == key:
            return
        tag = next(value.decode("latin-1") for name, value in start["headers"] if name == b"etag")
        keep(self._requests, url, _Known(provenance.request, len(url[1]) * REQUEST_FACTOR + OVERHEAD_BYTES))
        size = len(body) + len(url[1]) + OVERHEAD_BYTES
        response = CachedResponse(key, tag, scope.get("route"), start["headers"], body if is_whole else None, size)
        keep(self._responses, place, response)
