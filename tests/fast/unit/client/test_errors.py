"""Why there is no answer, as errors; what is asked again, and what never is; and where the key is not."""

import asyncio
import logging
from pathlib import Path
from types import SimpleNamespace

import httpx
import pytest
import stamina

from galatea.client import AsyncClient, Client
from galatea.client.errors import (
    AccessDeniedError,
    ClientError,
    InvalidResponseError,
    NotFoundError,
    RateLimitedError,
    ResponseError,
    UnavailableError,
    UnreachableError,
)
from tests.support import World
from tests.support.world_api import OPERATOR_KEY, Asking
from tests.support.world_clients import answering, client

KEY = "galatea_0123_secret"


class ScriptedServer:
    """Answers with one response after another, the last one from then on, and keeps what was asked."""

    def __init__(self, *responses: httpx.Response | Exception) -> None:
        self.responses = [*responses]
        self.requests: list[httpx.Request] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        found = self.responses.pop(0) if len(self.responses) > 1 else self.responses[0]
        if isinstance(found, Exception):
            raise found
        return httpx.Response(found.status_code, headers=found.headers, content=found.content)


def problem(status: int, code: str, **headers: str) -> httpx.Response:
    said = {"code": code, "title": "It is so.", "detail": "Do this.", "type": f"https://x/{code}", "status": status}
    headers_sent = {name.replace("_", "-"): text for name, text in headers.items()}
    return httpx.Response(status, json=said, headers={"content-type": "application/problem+json"} | headers_sent)


STORES = httpx.Response(200, json={"stores": []})


def test_an_unknown_metric_is_not_there_and_says_what_to_do() -> None:
    with pytest.raises(NotFoundError) as refused:
        client(Asking(World())).metric("net_sale", start="2026-11-17", end="2026-11-18")

    said = refused.value
    assert (said.status, said.code, said.title) == (404, "unknown_name", "There is no metric `net_sale`.")
    assert said.detail == "Did you mean `net_sales`?"
    assert said.type.endswith("/problems/unknown_name")
    assert str(said) == f"{said.title} {said.detail}"


@pytest.mark.parametrize("key", [None, "wrong"])
def test_a_key_that_is_missing_or_wrong_is_refused(key: str | None) -> None:
    with pytest.raises(AccessDeniedError) as refused:
        client(Asking(World()), key).recompute(reason="a test")

    assert refused.value.code == ("key_wrong" if key else "key_missing")


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (403, AccessDeniedError),
        (410, NotFoundError),
        (422, ResponseError),
        (429, RateLimitedError),
        (503, UnavailableError),
    ],
)
def test_each_refusal_has_its_class(status: int, kind: type[ResponseError]) -> None:
    with stamina.set_testing(True), pytest.raises(kind) as refused:
        answering(ScriptedServer(problem(status, "so_it_is"))).stores()

    assert type(refused.value) is kind


def test_a_temporary_failure_is_retried_and_answered() -> None:
    server = ScriptedServer(
        problem(503, "too_busy", retry_after="2"), problem(429, "too_often"), httpx.ReadError("gone"), STORES
    )

    with stamina.set_testing(True, attempts=4):
        found = answering(server).stores()

    assert (found, len(server.requests)) == ((), 4)


def test_the_client_that_awaits_asks_again_too() -> None:
    server = ScriptedServer(problem(503, "too_busy", retry_after="2"), STORES)

    async def ask() -> object:
        async with AsyncClient("http://galatea", transport=httpx.MockTransport(server)) as connection:
            return await connection.stores()

    with stamina.set_testing(True, attempts=4):
        assert asyncio.run(ask()) == ()
    assert len(server.requests) == 2


def test_the_pause_is_the_one_that_the_api_asks_for(monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[float] = []
    monkeypatch.setattr("tenacity.nap.time", SimpleNamespace(sleep=waited.append))  # others sleep, too

    answering(ScriptedServer(problem(503, "too_busy", retry_after="7"), STORES)).stores()

    assert waited == [7.0]


def test_nobody_stands_still_for_as_long_as_an_hour() -> None:
    server = ScriptedServer(problem(503, "too_busy", retry_after="3600"))

    with pytest.raises(UnavailableError) as refused:
        answering(server).stores()

    assert (refused.value.retry_after, len(server.requests)) == (3600.0, 1)


def test_a_wrong_request_is_not_retried() -> None:
    server = ScriptedServer(problem(422, "bad_question"))

    with stamina.set_testing(True, attempts=4), pytest.raises(ResponseError):
        answering(server).stores()

    assert len(server.requests) == 1


def test_a_recompute_is_never_sent_twice() -> None:
    server = ScriptedServer(problem(503, "airflow_unavailable", retry_after="1"))

    with stamina.set_testing(True, attempts=4), pytest.raises(UnavailableError):
        answering(server).recompute(reason="a test")

    assert len(server.requests) == 1


def test_nobody_there_is_unreachable() -> None:
    with stamina.set_testing(True), pytest.raises(UnreachableError, match="ConnectError"):
        Client("http://127.0.0.1:1").stores()


def test_a_redirect_is_not_followed() -> None:
    server = ScriptedServer(httpx.Response(302, headers={"location": "http://elsewhere/v1/stores"}))

    with pytest.raises(ResponseError) as refused:
        answering(server, KEY).stores()

    assert (refused.value.code, len(server.requests)) == ("http_302", 1)


@pytest.mark.parametrize("body", [b"<html>", b"[]", b'{"stores": 3}'])
def test_what_is_no_answer_of_the_api_is_unreadable(body: bytes) -> None:
    server = ScriptedServer(httpx.Response(200, content=body, headers={"content-type": "text/html"}))

    with pytest.raises(InvalidResponseError, match="/v1/stores"):
        answering(server).stores()


def test_what_a_newer_api_says_beside_is_no_reason_to_fail() -> None:
    said = {"stores": [{"id": "1", "timezone": "UTC", "new": 1}], "new": 2}

    assert answering(ScriptedServer(httpx.Response(200, json=said))).stores()[0].id == "1"


def test_the_key_is_in_the_header_and_in_no_text(
    caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    server = ScriptedServer(problem(503, "too_busy"))
    connection = answering(server, KEY)

    with stamina.set_testing(True, attempts=2), pytest.raises(ClientError) as refused:
        connection.stores()

    assert {request.headers["authorization"] for request in server.requests} == {f"Bearer {KEY}"}
    shown = f"{connection!r} {refused.value!r} {refused.value} {caplog.text} {capsys.readouterr()}"
    assert KEY not in f"{shown} {server.requests[0].url}"


@pytest.mark.parametrize("url", ["localhost:8000", "ftp://galatea", "http://", "galatea"])
def test_an_invalid_address_is_rejected_before_any_request(url: str) -> None:
    with pytest.raises(ValueError, match="is no address"):
        Client(url)


@pytest.mark.parametrize(
    ("said", "seconds"),
    [
        ({"retry_after": "7"}, 7.0),
        ({"retry_after": "Sun, 22 Nov 2026 12:00:40 GMT", "date": "Sun, 22 Nov 2026 12:00:00 GMT"}, 40.0),
        ({"retry_after": "Sun, 22 Nov 2026 11:00:00 GMT", "date": "Sun, 22 Nov 2026 12:00:00 GMT"}, 0.0),
        ({"retry_after": "soon"}, None),
        ({}, None),
    ],
)
def test_when_to_ask_again_is_read_in_both_of_its_forms(said: dict[str, str], seconds: float | None) -> None:
    with stamina.set_testing(True), pytest.raises(UnavailableError) as refused:
        answering(ScriptedServer(problem(503, "too_busy", **said))).stores()

    assert refused.value.retry_after == seconds


def test_a_password_in_the_address_is_not_shown() -> None:
    assert "secret" not in repr(Client("http://anna:secret@galatea"))


def test_a_key_is_read_from_its_file(tmp_path: Path) -> None:
    file = tmp_path / "operator.key"
    file.write_text(f"{OPERATOR_KEY}\n")
    seen = ScriptedServer(STORES)

    Client("http://galatea", key_file=file, transport=httpx.MockTransport(seen)).stores()

    assert seen.requests[0].headers["authorization"] == f"Bearer {OPERATOR_KEY}"


@pytest.mark.parametrize("key", ["", "two\nlines", "kľúč"])
def test_what_can_be_no_key_is_refused_and_not_quoted(key: str) -> None:
    with pytest.raises(ValueError, match="the key is empty, or has characters") as refused:
        Client(key=key)

    assert not key or key not in str(refused.value)


def test_a_key_and_a_file_of_one_are_too_much(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="leave one out"):
        Client(key=KEY, key_file=tmp_path / "key")
