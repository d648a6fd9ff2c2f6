"""A quick refusal of wrong keys on the sign-in page, for addresses that have sent too many of them.

The whole page costs the process more than a millisecond, so that whoever tries a thousand keys a second would take all
of its time.
"""

import asyncio
from functools import lru_cache
from typing import TYPE_CHECKING
from urllib.parse import parse_qs

from fastapi import Request
from fastapi.responses import HTMLResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from master_dataset.errors import GalateaError
from serving_layer.api.caller import client_of
from serving_layer.errors import InvalidApiKeyError, RateLimitedError
from serving_layer.http.load_shedding import slot_of
from serving_layer.http.problems import REFUSALS, headers_of
from serving_layer.pages.language import Language, language_of, use_language
from serving_layer.pages.login import LOGINS
from serving_layer.pages.rendering import ENVIRONMENT, HEADERS
from serving_layer.pages.routing import FORM_TYPE, LOGIN, Form, UnsentForm, content_type, is_same_origin, local_path

if TYPE_CHECKING:
    from serving_layer.keys.authenticator import Authenticator

MAX_BYTES, MAX_FIELDS = 4_096, 10
"""Of a form with a key alone. Other forms are left to the sign-in page."""
MAX_PAGES = 256
"""Pages that are kept, by language and where the visitor was going: programs that guess keys ask for the same one."""


class ThrottledSignIns:
    """Middleware. Valid keys, and whatever else is no wrong key in a small form, are left to the sign-in page."""

    def __init__(self, app: ASGIApp, authenticator: "Authenticator") -> None:
        """`app`: the inner application. `authenticator`: knows the keys, and which addresses send wrong ones."""
        self._app, self._authenticator = app, authenticator
        self._turns = asyncio.Lock()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse a wrong key, or pass the request on."""
        is_sign_in = scope["type"] == "http" and scope["path"] == LOGIN and scope["method"] == "POST"
        if not is_sign_in or not self._authenticator.throttle.seconds_to_wait(client_of(scope)):
            await self._app(scope, receive, send)
            return
        request = Request(scope)
        if not _is_small_form(request):
            await self._app(scope, receive, send)
            return
        message = await receive()
        refusal = None
        if not message.get("more_body"):
            await self._turn(scope)
            refusal = await self._refusal(request, message.get("body", b""))
        await (refusal or self._app)(scope, _beginning_with(message, receive), send)

    async def _turn(self, scope: Scope) -> None:
        """Return in a pass of the event loop in which no other refusal begins, so that answers wait for one at a time.

        Meanwhile, the request takes no slot from others.
        """
        slot = slot_of(scope)
        slot.release()
        try:
            async with self._turns:
                await asyncio.sleep(0)
        finally:
            slot.acquire()

    async def _refusal(self, request: Request, body: bytes) -> HTMLResponse | None:
        """The page that refuses the key in a form; None if it is not refused here."""
        try:
            form = Form(parse_qs(body.decode(), max_num_fields=MAX_FIELDS))
        except ValueError:
            return None
        if UnsentForm.kept_in(form) is not None:
            return None
        try:
            await self._authenticator.keys.caller(f"Bearer {form.text('key')}")
        except InvalidApiKeyError:
            error = self._authenticator.too_many_wrong_keys(client_of(request.scope))
            return None if error is None else _response(request, error, local_path(form.text("following")))
        except GalateaError:
            return None
        return None


def _is_small_form(request: Request) -> bool:
    length = request.headers.get("content-length", "")
    is_small = length.isdecimal() and int(length) <= MAX_BYTES and "expect" not in request.headers
    return is_small and content_type(request) == FORM_TYPE and is_same_origin(request)


def _beginning_with(message: Message, receive: Receive) -> Receive:
    """What a request receives, from its first message on, which has been read already."""
    read = [message]

    async def receive_again() -> Message:
        return read.pop() if read else await receive()

    return receive_again


def _response(request: Request, error: RateLimitedError, following: str) -> HTMLResponse:
    LOGINS.labels(error.code).inc()
    REFUSALS.labels(error.code).inc()
    language = language_of(request)
    page = _page(language, f"{error.message} {error.do}", following)
    headers = {**HEADERS, **headers_of(error), "Content-Language": language, "Vary": "Cookie, Accept-Language"}
    return HTMLResponse(page, error.status, headers)


@lru_cache(MAX_PAGES)
def _page(language: Language, why: str, following: str) -> bytes:
    with use_language(language):
        template = ENVIRONMENT.get_template("refused.html")
        return template.render(why=why, following=following, unsent=None).encode()
