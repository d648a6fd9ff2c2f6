"""`/shared/{token}`: one page, read-only, for whoever has a share link (ADR 0059).

The page is rendered as for a reader who sees only its stores. Then everything is taken out that leads elsewhere: forms,
navigation, and links. Its script may ask REST what the page itself asked when it was rendered, and nothing else.
"""

import asyncio
import re
from collections.abc import Callable
from http import HTTPStatus
from typing import TYPE_CHECKING
from urllib.parse import quote
from weakref import WeakValueDictionary

from cachetools import LRUCache
from fastapi import Request, Response
from fastapi.responses import HTMLResponse
from starlette.requests import HTTPConnection
from starlette.types import Message, Scope

from master_dataset.errors import GalateaError
from serving_layer.api.caller import client_of, saved_of
from serving_layer.api.staleness import AT_LEAST_HEADER
from serving_layer.errors import ShareEndedError, UnknownShareError
from serving_layer.http.load_shedding import FRAMED_KEY, slot_of
from serving_layer.http.problems import HEADERS_OF, REFUSALS
from serving_layer.pages import language
from serving_layer.pages.rendering import POLICY, render
from serving_layer.pages.routing import page_router
from serving_layer.pages.sessions import SHARED_VISIT, SharedVisit
from serving_layer.saved.addresses import SHARED_PATH, parse_address
from serving_layer.saved.shares import ShareLink

if TYPE_CHECKING:
    from serving_layer.keys.authenticator import Authenticator

router = page_router()
METRICS = "/v1/metrics/"
QUERY_SECONDS = 900.0
"""How long after it was rendered a page may ask what it asked then: one that is open is rendered again and again."""
RENDER_SECONDS = 2.0
"""How often a process renders the page of a link to find out what it asks."""
MAX_LINKS, MAX_QUERIES = 1_000, 5_000
"""Of how many links a process knows what they ask, and how many queries of one."""
_WAYS_OUT = re.compile(r"<(form|nav)\b.*?</\1>", re.DOTALL)
_LINK = re.compile(r'<a\b(?![^>]*\shref="#)(?:[^>]*?(\sclass="[^"]*"))?[^>]*>(.*?)</a>', re.DOTALL)
_EMPTY = re.compile(r'<details class="data"><summary>[^<]*</summary>\s*</details>')
_OF_PAGE = frozenset({"content-type", "content-language"})
_OF_ROUTING = frozenset({"path_params", "endpoint", "route", "router"})
_OF_VISITOR = frozenset({b"host", b"accept-language"})
"""What the page may know of a visitor, beside the language that they chose."""


@router.get(f"{SHARED_PATH}{{token}}")
async def get_shared(request: Request, token: str) -> Response:
    """The page of a link, or why there is none: also in the frame of its origin, where nothing else would say it."""
    pages: SharedPages = request.app.state.shared_pages
    authenticator: Authenticator = request.app.state.authenticator
    origin = ""
    try:
        shares = (await saved_of(request)).shares
        link = await shares.find(token, client_of(request.scope))
        origin = link.origin if link.origin in shares.origins else ""
        shares.require_open(link)
        authenticator.rates.count(link.caller, "read")
        if end := authenticator.concurrency.enter(link.caller):
            slot_of(request.scope).on_end(end)
        response = await pages.page(request.scope, link)
    except GalateaError as error:
        response = _refused(request, error)
    return _guarded(request, response, origin)


def _refused(request: Request, error: GalateaError) -> Response:
    REFUSALS.labels(error.code).inc()
    has_ended = isinstance(error, ShareEndedError | UnknownShareError)
    values = {"message": error.message, "do": error.do, "has_ended": has_ended}
    page = render(request, "shared_ended.html", None, values, status=error.status)
    kept = {"Content-Language": page.headers["Content-Language"], **HEADERS_OF.get(error.status, {})}
    return HTMLResponse(without_ways_out(bytes(page.body).decode()), error.status, kept)


def _guarded(request: Request, response: Response, origin: str) -> Response:
    """With the headers of shared pages. `origin`: which may show it in a frame; empty for none."""
    response.headers["Content-Security-Policy"] = POLICY.format(frames=origin or "'none'", forms="'none'")
    response.headers["Referrer-Policy"] = "no-referrer"  # its address is a secret
    response.headers["X-Robots-Tag"] = "noindex, nofollow"
    response.headers["Cache-Control"] = "no-store"
    request.scope[FRAMED_KEY] = bool(origin)
    return response


class SharedPages:
    """Renders the pages of links, and knows what they ask REST. One per process and event loop."""

    def __init__(self, clock: Callable[[], float]) -> None:
        """`clock`: monotonic seconds."""
        self._clock = clock
        self._asked: LRUCache[str, LRUCache[str, float]] = LRUCache(MAX_LINKS)
        self._rendered_at: LRUCache[str, float] = LRUCache(MAX_LINKS)
        self._rendering: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def page(self, of: Scope, link: ShareLink) -> Response:
        """The page of a link as everybody who has it may see it.

        Args:
            of: ASGI scope of a request to the same application. Its query counts for nothing, nor do its cookies, but
                for the language that its visitor chose.
            link: which is open.
        """
        asked: set[str] = set()
        response = await _rendered(of, link, SharedVisit(link.caller, asked))
        now = self._clock()
        self._rendered_at[link.id] = now
        known: LRUCache[str, float] = self._asked.setdefault(link.id, LRUCache(MAX_QUERIES))
        known.update(dict.fromkeys(asked, now))
        return response

    async def admits(self, of: Scope, link: ShareLink) -> bool:
        """Whether the page of a link asks what the request with this ASGI scope asks.

        Another process may have rendered the page: one that does not know the queries renders it once, for all who ask
        meanwhile.
        """
        wanted = _queries_in(of)
        if not wanted or self._knows(link, wanted):
            return bool(wanted)
        rendering = self._rendering.setdefault(link.id, asyncio.Lock())  # gone when nobody waits for it any more
        async with rendering:
            is_recent = self._clock() - self._rendered_at.get(link.id, float("-inf")) < RENDER_SECONDS
            if not is_recent and not self._knows(link, wanted):
                await self.page(of, link)
        return self._knows(link, wanted)

    def _knows(self, link: ShareLink, wanted: set[str]) -> bool:
        known = self._asked.get(link.id)
        since = self._clock() - QUERY_SECONDS
        return known is not None and all(known.get(query, float("-inf")) >= since for query in wanted)


def _queries_in(of: Scope) -> set[str]:
    """The queries that a request asks, each by the address that it has alone; empty if it asks something else.

    A page demands no events. An answer to a demand has offsets, which count the records of other tenants too.
    """
    path: str = of["path"]
    if not path.startswith(METRICS) or AT_LEAST_HEADER in HTTPConnection(of).headers:
        return set()
    arguments = of["query_string"].decode("latin-1")
    return {f"{METRICS}{quote(metric, safe='')}?{arguments}" for metric in path.removeprefix(METRICS).split(",")}


async def _rendered(of: Scope, link: ShareLink, visit: SharedVisit) -> Response:
    """What the route of the page answers, without its ways out."""
    address = parse_address(link.address)
    inner = {name: value for name, value in of.items() if name not in _OF_ROUTING} | {
        "method": "GET",
        "path": address.decoded_path,
        "raw_path": address.path.encode(),
        "query_string": address.query.encode(),
        "headers": _headers_of(of),
        "state": {},
        SHARED_VISIT: visit,
    }
    messages: list[Message] = []

    async def send(message: Message) -> None:
        messages.append(message)

    await of["app"].router(inner, _nothing_more, send)
    start, *parts = messages
    page = b"".join(part.get("body", b"") for part in parts).decode()
    kept = {
        name.decode("latin-1"): value.decode("latin-1")
        for name, value in start["headers"]
        if name.decode("latin-1").lower() in _OF_PAGE
    }
    return HTMLResponse(without_ways_out(page), HTTPStatus(start["status"]), kept)


def _headers_of(of: Scope) -> list[tuple[bytes, bytes]]:
    kept = [each for each in of["headers"] if each[0] in _OF_VISITOR]
    chosen = HTTPConnection(of).cookies.get(language.COOKIE)
    return [*kept, (b"cookie", f"{language.COOKIE}={chosen}".encode())] if chosen in language.LANGUAGES else kept


async def _nothing_more() -> Message:
    return {"type": "http.request", "body": b"", "more_body": False}


def without_ways_out(page: str) -> str:
    """A page of ours without forms, navigation and links to other pages.

    Everything that comes from elsewhere is escaped in our pages, so `<` always begins a tag of a template.
    """
    return _EMPTY.sub("", _LINK.sub(_as_text, _WAYS_OUT.sub("", page)))


def _as_text(link: re.Match[str]) -> str:
    return f"<span{link[1] or ''}>{link[2]}</span>"
