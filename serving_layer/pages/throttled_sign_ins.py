"""A quick refusal of wrong keys on the sign-in page, for addresses that have sent too many of them.

The whole page costs the process a millisecond and a half, so that a flood of wrong keys would take all of its time.
"""

from functools import cache
from typing import TYPE_CHECKING
from urllib.parse import parse_qs

from fastapi import Request
from fastapi.responses import HTMLResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from serving_layer.api.caller import client_of
from serving_layer.errors import InvalidApiKeyError, RateLimitedError
from serving_layer.http.problems import REFUSALS, headers_of
from serving_layer.pages.language import Language, language_of, use_language
from serving_layer.pages.login import LOGINS
from serving_layer.pages.rendering import ENVIRONMENT, HEADERS
from serving_layer.pages.routing import LOGIN, Form, UnsentForm

if TYPE_CHECKING:
    from serving_layer.keys.authenticator import Authenticator

MAX_BYTES, MAX_FIELDS = 4_096, 10
"""Of a form with a key alone. Other forms are left to the sign-in page."""


class ThrottledSignIns:
    """Middleware. Valid keys, and whatever else is no wrong key in a small form, are left to the sign-in page."""

    def __init__(self, app: ASGIApp, authenticator: "Authenticator") -> None:
        """`app`: the inner application. `authenticator`: knows the keys, and which addresses send wrong ones."""
        self._app, self._authenticator = app, authenticator

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse a wrong key, or pass the request on."""
        is_sign_in = scope["type"] == "http" and scope["path"] == LOGIN and scope["method"] == "POST"
        if not is_sign_in or not self._authenticator.throttle.seconds_to_wait(client_of(scope)):
            await self._app(scope, receive, send)
            return
        received = await _received(receive)
        body = b"".join(message.get("body", b"") for message in received)
        is_complete = received[-1]["type"] == "http.request" and not received[-1].get("more_body")
        refusal = await self._refusal(scope, body) if is_complete and len(body) <= MAX_BYTES else None
        await (refusal or self._app)(scope, _beginning_with(received, receive), send)

    async def _refusal(self, scope: Scope, body: bytes) -> HTMLResponse | None:
        """The page that refuses the key in a form; None if it is not refused here."""
        try:
            form = Form(parse_qs(body.decode(), max_num_fields=MAX_FIELDS))
            if UnsentForm.kept_in(form) is None:
                await self._authenticator.caller(f"Bearer {form.text('key')}", client_of(scope))
        except (ValueError, InvalidApiKeyError):
            return None
        except RateLimitedError as error:
            LOGINS.labels(error.code).inc()
            REFUSALS.labels(error.code).inc()
            language = language_of(Request(scope))
            headers = {**HEADERS, **headers_of(error), "Content-Language": language, "Vary": "Cookie, Accept-Language"}
            return HTMLResponse(_page(language, error.message, error.do), error.status, headers)
        return None


async def _received(receive: Receive) -> list[Message]:
    """The messages of a request, until its body is complete or too large."""
    found, size = [await receive()], 0
    while found[-1].get("more_body") and (size := size + len(found[-1].get("body", b""))) <= MAX_BYTES:
        found.append(await receive())
    return found


def _beginning_with(received: list[Message], receive: Receive) -> Receive:
    """What a request receives, from its first message on: these have been read already."""
    read = iter(received)

    async def receive_again() -> Message:
        return next(read, None) or await receive()

    return receive_again


@cache
def _page(language: Language, message: str, do: str) -> bytes:
    """The page in a language. There is one error, and so one page for each language."""
    with use_language(language):
        return ENVIRONMENT.get_template("refused.html").render(message=message, do=do).encode()
