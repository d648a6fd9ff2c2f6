"""Wrong keys of an address that has sent too many are refused without the whole page; valid keys still sign in."""

from typing import TYPE_CHECKING, Any

import pytest
from fastapi.responses import PlainTextResponse
from starlette.types import Message, Receive, Scope, Send

from serving_layer.keys.throttle import WrongKeyThrottle
from serving_layer.pages import login
from serving_layer.pages.routing import LOGIN
from serving_layer.pages.throttled_sign_ins import MAX_BYTES, ThrottledSignIns
from tests.support import World, event_loop
from tests.support.world_api import Asking
from tests.support.world_clients import Browsing

if TYPE_CHECKING:
    from serving_layer.keys.authenticator import Authenticator

LIMIT = 3


@pytest.fixture
def asking() -> Asking:
    """A process that allows three wrong keys a minute."""
    asking = Asking(World())
    authenticator: Authenticator = asking.app.state.authenticator
    object.__setattr__(authenticator, "throttle", WrongKeyThrottle(LIMIT, clock=lambda: 1000.0))
    return asking


@pytest.fixture
def throttled(asking: Asking) -> Browsing:
    """A browser at an address that has sent so many."""
    browsing = Browsing(asking)
    assert {browsing.sign_in(f"wrong {n}").status_code for n in range(LIMIT)} == {401}
    return browsing


def test_a_wrong_key_is_refused_without_the_whole_page(throttled: Browsing, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(login, "read_form", None)  # the page cannot answer

    refused = throttled.sign_in("wrong")

    assert refused.status_code == 429
    assert refused.headers["retry-after"] == "60"
    assert "default-src 'self'" in refused.headers["content-security-policy"]
    assert refused.headers["x-content-type-options"] == "nosniff"
    assert "Wait a minute, then send a valid key." in refused.text


def test_it_is_refused_in_the_language_of_the_visitor(throttled: Browsing) -> None:
    for language, words in (("de", "Anmelden"), ("en", "Sign in"), ("de", "Anmelden")):
        refused = throttled.response(
            "POST",
            LOGIN,
            {"Accept-Language": language, "Content-Type": "application/x-www-form-urlencoded"},
            content="key=wrong",
        )

        assert (refused.status_code, refused.headers["content-language"]) == (429, language)
        assert f"<h1>{words}</h1>" in refused.text


def test_a_valid_key_still_signs_in(throttled: Browsing, asking: Asking) -> None:
    assert throttled.sign_in("wrong").status_code == 429
    assert throttled.sign_in(asking.keys.make("default")).status_code == 303


class Page:
    """Where requests go that are not refused, and what it received."""

    def __init__(self, asking: Asking) -> None:
        self.bodies: list[bytes] = []
        self._app = ThrottledSignIns(self._answer, asking.app.state.authenticator)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        body, more = b"", True
        while more:
            message = await receive()
            body, more = body + message.get("body", b""), message.get("more_body", False)
        self.bodies.append(body)
        await PlainTextResponse("the page", 401)(scope, receive, send)

    def status(self, *parts: bytes, **scope: Any) -> int:
        """The status of a request whose body arrives in these parts."""
        waiting, sent = list(parts), list[int]()

        async def receive() -> Message:
            return {"type": "http.request", "body": waiting.pop(0), "more_body": bool(waiting)}

        async def send(message: Message) -> None:
            if message["type"] == "http.response.start":
                sent.append(message["status"])

        of = {"type": "http", "method": "POST", "path": LOGIN, "headers": [], "client": ("127.0.0.1", 1), **scope}
        event_loop.run(self._app(of, receive, send))
        [status] = sent
        return status


@pytest.mark.usefixtures("throttled")
@pytest.mark.parametrize(
    "parts",
    [
        (b"key=wrong&unsent_path=%2Falerts%2Frules&unsent.name=x",),
        (b"key=wrong&following=%2F", b"a" * MAX_BYTES),
        (b"key=wrong&following=%2F", b"a" * MAX_BYTES, b"b", b"c"),
        (b"key=wrong" + b"&a=1" * 20,),
        (b"\xff=\xff",),
    ],
)
def test_any_other_form_is_left_to_the_page_as_it_is(asking: Asking, parts: tuple[bytes, ...]) -> None:
    page = Page(asking)

    assert page.status(*parts) == 401
    assert page.bodies == [b"".join(parts)]


@pytest.mark.usefixtures("throttled")
def test_a_form_in_parts_and_one_without_a_key_are_refused(asking: Asking) -> None:
    assert Page(asking).status(b"") == 429
    assert Page(asking).status(b"ke", b"y=wrong", b"") == 429


@pytest.mark.usefixtures("throttled")
@pytest.mark.parametrize("scope", [{"path": "/"}, {"method": "GET"}, {"client": ("192.0.2.1", 1)}, {"client": None}])
def test_other_requests_and_other_addresses_are_not_refused(asking: Asking, scope: dict[str, Any]) -> None:
    assert Page(asking).status(b"key=wrong", **scope) == 401
