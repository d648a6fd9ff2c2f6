"""Wrong keys of an address that has sent too many are refused without the whole page; valid keys still sign in."""

import asyncio
import re
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from fastapi.responses import PlainTextResponse
from starlette.types import Message, Receive, Scope, Send

from master_dataset.errors import CassandraUnavailableError
from serving_layer.http.load_shedding import SLOT_KEY, InFlight, RequestSlot
from serving_layer.keys.throttle import WrongKeyThrottle
from serving_layer.pages.routing import FORM_TYPE, LOGIN
from serving_layer.pages.throttled_sign_ins import MAX_BYTES, ThrottledSignIns
from tests.support import World, event_loop
from tests.support.world_api import Asking
from tests.support.world_clients import Browsing, listening

if TYPE_CHECKING:
    from serving_layer.keys.authenticator import Authenticator

LIMIT = 3
HOST = "galatea.example"


@pytest.fixture
def seconds() -> list[float]:
    """What the clock of the throttle shows."""
    return [1000.0]


@pytest.fixture
def asking(seconds: list[float]) -> Asking:
    """A process that allows three wrong keys a minute, and an address that has sent so many."""
    asking = Asking(World())
    throttle = WrongKeyThrottle(LIMIT, clock=lambda: seconds[0])
    for _ in range(LIMIT):
        throttle.count("127.0.0.1")
    object.__setattr__(asking.app.state.authenticator, "throttle", throttle)
    return asking


class Page:
    """Where requests go that are not refused, what it received, and the last response."""

    def __init__(self, asking: Asking) -> None:
        self.bodies: list[bytes] = []
        self.text, self.headers = "", dict[str, str]()
        self.in_flight = InFlight(10)
        self._app = ThrottledSignIns(self._answer, asking.app.state.authenticator)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        body, more = b"", True
        while more:
            message = await receive()
            body, more = body + message.get("body", b""), message.get("more_body", False)
        self.bodies.append(body)
        await PlainTextResponse("the page", 401)(scope, receive, send)

    def status(self, *parts: bytes, headers: dict[str, str] | None = None, **scope: Any) -> int:
        """The status of a form of a browser whose body arrives in these parts. `headers`: replace some of its own."""
        return event_loop.run(self.response(*parts, headers=headers, **scope))

    async def response(self, *parts: bytes, headers: dict[str, str] | None = None, **scope: Any) -> int:
        """Its status, in an event loop that runs."""
        waiting, sent = list(parts), list[int]()
        length = str(sum(map(len, parts)))
        fields = {"host": HOST, "origin": f"http://{HOST}", "content-type": FORM_TYPE, "content-length": length}
        pairs = [(name.encode(), value.encode()) for name, value in (fields | (headers or {})).items() if value]

        async def receive() -> Message:
            return {"type": "http.request", "body": waiting.pop(0), "more_body": bool(waiting)}

        async def send(message: Message) -> None:
            if message["type"] == "http.response.start":
                sent.append(message["status"])
                slot.end(message["status"])
                self.headers = {name.decode(): value.decode() for name, value in message["headers"]}
            else:
                self.text += message["body"].decode()

        of = {"type": "http", "method": "POST", "path": LOGIN, "scheme": "http", "server": (HOST, 80)}
        slot = RequestSlot(self.in_flight)
        own = {
            SLOT_KEY: slot,
            "headers": pairs,
            "client": ("127.0.0.1", 1),
            "query_string": b"",
            **scope,
        }
        await self._app({**of, **own}, receive, send)
        [status] = sent
        return status


def test_an_origin_that_is_no_address_is_left_to_the_sign_in_page(asking: Asking) -> None:
    page = Page(asking)

    assert page.status(b"key=wrong", headers={"origin": "http://["}) == 401
    assert page.bodies == [b"key=wrong"]


def test_a_wrong_key_is_refused_without_the_whole_page_and_can_be_corrected(asking: Asking) -> None:
    page = Page(asking)

    assert page.status(b"key=wrong&following=%2Fstores%3Fq%3D%22") == 429
    assert page.bodies == []
    assert page.headers["retry-after"] == "60"
    assert "default-src 'self'" in page.headers["content-security-policy"]
    assert "Wait a minute, then send a valid key." in page.text
    assert re.search(
        r'<form method="post" action="/login">\s*<input[^>]* name="following" value="/stores\?q=&#34;">', page.text
    )


def test_a_foreign_address_is_not_followed(asking: Asking) -> None:
    page = Page(asking)

    assert page.status(b"key=wrong&following=https%3A%2F%2Fevil.example%2F") == 429
    assert "evil" not in page.text


@pytest.mark.parametrize(("language", "words"), [("de", "Anmelden"), ("en", "Sign in")])
def test_it_is_refused_in_the_language_of_the_visitor(asking: Asking, language: str, words: str) -> None:
    page = Page(asking)

    assert page.status(b"key=wrong", headers={"accept-language": language}) == 429
    assert (page.headers["content-language"], f"<h1>{words}</h1>" in page.text) == (language, True)


def test_a_server_refuses_a_wrong_key_and_accepts_a_valid_one(asking: Asking) -> None:
    with listening(asking.app) as url:
        said = [
            httpx.post(f"{url}{LOGIN}", data={"key": key}, headers={"Origin": url}, trust_env=False)
            for key in ("wrong", asking.keys.make("default"))
        ]

    assert [each.status_code for each in said] == [429, 303]
    assert "<nav" not in said[0].text
    assert said[0].headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize(
    ("parts", "headers"),
    [
        ((b"key=", b"wrong"), {}),
        ((b"key=wrong&unsent_path=%2Falerts%2Frules&unsent.name=x",), {}),
        ((b"key=wrong&following=%2F" + b"a" * MAX_BYTES,), {}),
        ((b"key=wrong" + b"&a=1" * 20,), {}),
        ((b"\xff=\xff",), {}),
        ((b"key=wrong",), {"content-type": "application/json"}),
        ((b"key=wrong",), {"content-length": ""}),
        ((b"key=wrong",), {"expect": "100-continue"}),
        ((b"key=wrong",), {"origin": ""}),
        ((b"key=wrong",), {"origin": "http://evil.example"}),
    ],
)
def test_any_other_form_is_left_to_the_page_as_it_is(
    asking: Asking, parts: tuple[bytes, ...], headers: dict[str, str]
) -> None:
    page = Page(asking)

    assert page.status(*parts, headers=headers) == 401
    assert page.bodies == [b"".join(parts)]


@pytest.mark.parametrize("scope", [{"path": "/"}, {"method": "GET"}, {"client": ("192.0.2.1", 1)}, {"client": None}])
def test_other_requests_and_other_addresses_are_left_to_the_page(asking: Asking, scope: dict[str, Any]) -> None:
    assert Page(asking).status(b"key=wrong", **scope) == 401


def test_without_cassandra_the_page_says_so(asking: Asking, monkeypatch: pytest.MonkeyPatch) -> None:
    async def fails(_: object, _authorization: str) -> None:
        raise CassandraUnavailableError("Cassandra does not respond.", do="galatea status")

    authenticator: Authenticator = asking.app.state.authenticator
    monkeypatch.setattr(type(authenticator.keys), "caller", fails)

    assert Page(asking).status(b"key=wrong") == 401
    assert Browsing(asking).sign_in("wrong").status_code == 503


def test_a_key_is_left_to_the_page_to_count_if_the_minute_ends_while_it_arrives(
    asking: Asking, seconds: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    authenticator: Authenticator = asking.app.state.authenticator
    known = authenticator.keys.caller

    async def later(authorization: str | None) -> Any:
        seconds[0] += 60
        return await known(authorization)

    monkeypatch.setattr(authenticator.keys, "caller", later)

    assert Page(asking).status(b"key=wrong") == 401
    for _ in range(LIMIT - 1):
        authenticator.throttle.count("127.0.0.1")
    assert authenticator.throttle.seconds_to_wait("127.0.0.1") == 0


def test_refusals_begin_one_after_another_and_take_no_slots_while_they_wait(
    asking: Asking, monkeypatch: pytest.MonkeyPatch
) -> None:
    page, forms, passes = Page(asking), 5, 0
    begun, held = list[int](), list[int]()
    keys = asking.app.state.authenticator.keys
    known = keys.caller

    async def noted(authorization: str | None) -> Any:
        begun.append(passes)
        held.append(page.in_flight.now)
        return await known(authorization)

    async def all_of_them() -> list[int]:
        nonlocal passes
        responses = asyncio.gather(*(page.response(b"key=wrong") for _ in range(forms)))
        while not responses.done():
            passes += 1
            await asyncio.sleep(0)
        return await responses

    monkeypatch.setattr(keys, "caller", noted)

    assert event_loop.run(all_of_them()) == [429] * forms
    assert len(set(begun)) == forms
    assert held == [1] * forms
