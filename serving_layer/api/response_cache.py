"""Questions that were asked before, word for word: dashboards ask the same again and again, and mostly nothing moved.

Such a question is neither routed nor read again. Who asks, how often they may and what the answer rests on are looked
at every time. Plain ASGI: it costs little.
"""

from collections.abc import Hashable, Iterable
from http import HTTPStatus
from typing import TYPE_CHECKING, NamedTuple, Self

from cachetools import LRUCache
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from master_dataset.errors import GalateaError
from serving_layer.api.caller import AUTHENTICATED_READER, READ, authorize
from serving_layer.api.conditional_requests import AnswerProvenance, requires_fresh
from serving_layer.caching import ANY, has, keep

if TYPE_CHECKING:
    from serving_layer.keys.authenticator import Authenticator
    from serving_layer.keys.key import Caller
    from serving_layer.query.service import QueryService

MOST_BYTES = 64 * 1024 * 1024
"""Of the responses that are kept; a body of JSON is the one that `Answers` keeps, so it is held once."""
MOST_QUESTIONS = 10_000
OVERHEAD = 2_000
"""Bytes of a response beside its body."""
EVENTS = "/v1/events/"
"""Nobody is told anything there that an answer rests on."""
Question = tuple[str, bytes]


_SAID_OF_NONE = frozenset({b"etag", b"cache-control", b"vary"})
"""What a response without a body says of the one that the caller has."""


class Kept(NamedTuple):
    """A response. `body` is None where only its tag was ever asked for. `route`: for who counts requests.

    `headers_of_none`: those of an answer to who has it already. `size`: bytes that count towards `MOST_BYTES`.
    """

    mark: Hashable
    tag: str
    route: object
    headers: list[tuple[bytes, bytes]]
    headers_of_none: list[tuple[bytes, bytes]]
    body: bytes | None
    size: int


class Sent(NamedTuple):
    """What a request says beside its question."""

    authorization: str | None
    known: list[str]
    has_wishes: bool

    @classmethod
    def of(cls, scope: Scope) -> Self:
        """`has_wishes`: there is more to it than an entity tag, so the route itself shall look."""
        authorization, known, has_wishes = None, [], False
        for name, value in scope["headers"]:
            if name == b"authorization" and authorization is None:
                authorization = value.decode("latin-1")
            elif name == b"if-none-match":
                known.append(value.decode("latin-1"))
            elif name == b"cache-control":
                has_wishes = has_wishes or requires_fresh(value.decode("latin-1"))
        return cls(authorization, known, has_wishes or ANY in known)


class ResponseCacheMiddleware:
    """Around the routes."""

    def __init__(self, app: ASGIApp) -> None:
        """`app`: everything inside."""
        self._app = app
        self._asked: LRUCache[Question, AnswerProvenance] = LRUCache(MOST_QUESTIONS)
        self._kept: LRUCache[tuple[Question, str], Kept] = LRUCache(MOST_BYTES, getsizeof=lambda kept: kept.size)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer what was asked before and is still so; pass everything else on."""
        if scope["type"] != "http" or scope["path"].startswith(EVENTS):
            await self._app(scope, receive, send)
            return
        question = (scope["path"], scope["query_string"])
        rests_on = self._asked.get(question) if scope["method"] == "GET" else None
        messages = None if rests_on is None else await self._found(question, rests_on, scope)
        if messages is None:
            await self._app(scope, receive, self._looking(question, scope, send))
            if "rests_on" not in scope.get("state", {}):
                scope["app"].state.answers.expire_snapshot()  # it may have told of a publication, or made one
            return
        for message in messages:
            await send(message)

    async def _found(self, question: Question, rests_on: AnswerProvenance, scope: Scope) -> Iterable[Message] | None:
        """What is still so, for whoever may see it. None: the route answers, or refuses in its own words."""
        sent, app = Sent.of(scope), scope["app"]
        if sent.has_wishes:
            return None
        authenticator: Authenticator = app.state.authenticator
        answers: QueryService = app.state.answers
        try:
            caller = scope[AUTHENTICATED_READER] = await authorize(scope, authenticator, sent.authorization, READ)
            moment = await answers.read_version(rests_on.ask)
        except GalateaError:
            return None
        kept = self._kept.get((question, caller.visibility_scope))
        if kept is None or kept.mark != moment.key:
            return None
        scope["route"] = kept.route
        if sent.known and has(sent.known, kept.tag):
            return _known(kept)
        return None if kept.body is None else _whole(kept, kept.body)

    def _looking(self, question: Question, scope: Scope, send: Send) -> Send:
        """`send`, which keeps what a route says of a question that may be asked again."""
        begun: Message | None = None

        async def look(message: Message) -> None:
            nonlocal begun
            if message["type"] == "http.response.start":
                begun = {"status": message["status"], "headers": message["headers"]}
            elif begun is not None and not message.get("more_body"):
                self._keep(question, scope, begun, message.get("body", b""))
                begun = None
            else:
                begun = None  # it comes in parts
            await send(message)

        return look

    def _keep(self, question: Question, scope: Scope, begun: Message, body: bytes) -> None:
        rests_on: AnswerProvenance | None = scope.get("state", {}).get("rests_on") if scope["method"] == "GET" else None
        caller: Caller | None = scope.get(AUTHENTICATED_READER)
        if rests_on is None or caller is None or begun["status"] not in (HTTPStatus.OK, HTTPStatus.NOT_MODIFIED):
            return
        mark, key, headers = rests_on.moment.key, (question, caller.visibility_scope), begun["headers"]
        is_whole = begun["status"] == HTTPStatus.OK
        before = self._kept.get(key)
        if not is_whole and before is not None and before.mark == mark:
            return
        tag = next(value.decode("latin-1") for name, value in headers if name == b"etag")
        keep(self._asked, question, rests_on)
        of_none = [each for each in headers if each[0] in _SAID_OF_NONE]
        size = len(body) + len(question[1]) + OVERHEAD
        kept = Kept(mark, tag, scope.get("route"), headers, of_none, body if is_whole else None, size)
        keep(self._kept, key, kept)


def _known(kept: Kept) -> Iterable[Message]:
    yield {"type": "http.response.start", "status": HTTPStatus.NOT_MODIFIED, "headers": kept.headers_of_none}
    yield {"type": "http.response.body", "body": b""}


def _whole(kept: Kept, body: bytes) -> Iterable[Message]:
    yield {"type": "http.response.start", "status": HTTPStatus.OK, "headers": kept.headers}
    yield {"type": "http.response.body", "body": body}
