"""What an endpoint is sent, and what each of its answers means."""

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Callable, Sequence
from ipaddress import ip_network

import httpx
import pytest

from master_dataset.kafka.consumer import Done, HandlerResult, Reject, Retry
from master_dataset.webhooks.endpoint import Endpoint
from speed_layer.webhooks import client as sending
from speed_layer.webhooks.client import Resolve, Resolver, WebhookClient, http_client
from speed_layer.webhooks.signature import signed_headers
from tests.support.alert_topic import record

NOW = 1_800_000_000.0
ENDPOINT = Endpoint("e1", "acme", "https://shop.example:8443/alerts?of=galatea", "secret")
RECORDS = [record("acme", "1", number) for number in (7, 8)]
Answer = Callable[[httpx.Request], httpx.Response]


async def public(_: str, __: int) -> Sequence[str]:
    return ["93.184.216.34"]


class Empty(httpx.AsyncByteStream):
    """A body that has not been read yet, as it comes over a connection."""

    async def __aiter__(self) -> AsyncIterator[bytes]:
        yield b"thanks"


def said(status: int, headers: dict[str, str] | None = None) -> httpx.Response:
    return httpx.Response(status, headers=headers, stream=Empty())


def verdict(
    answer: Answer, endpoint: Endpoint = ENDPOINT, ids: Sequence[str] = ("a7", "a8"), resolving: Resolve = public
) -> HandlerResult:
    async def call() -> HandlerResult:
        async with httpx.AsyncClient(transport=httpx.MockTransport(answer)) as http_client:
            sender = WebhookClient(endpoint, [ip_network("10.0.0.0/8")], http_client, resolving, lambda: NOW)
            return await sender.send(RECORDS[: len(ids)], ids)

    return asyncio.run(call())


def test_alerts_are_sent_signed_to_the_address_that_was_looked_at_under_the_name_that_was_meant() -> None:
    seen: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        return said(204)

    assert verdict(answer) == Done()

    (request,) = seen
    assert str(request.url) == "https://93.184.216.34:8443/alerts?of=galatea"
    assert request.headers["host"] == "shop.example:8443"
    assert request.extensions["sni_hostname"] == "shop.example"
    assert json.loads(request.content) == {"alerts": [json.loads(each.value) for each in RECORDS]}
    expected = signed_headers("secret", request.headers["webhook-id"], int(NOW), request.content)
    assert {name: request.headers[name] for name in expected} == expected


def test_the_same_alerts_have_the_same_key_and_one_alone_has_its_own_id() -> None:
    keys: list[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        keys.append(request.headers["idempotency-key"])
        return said(200)

    for ids in (("a7",), ("a7", "a8"), ("a7", "a8"), ("a7", "a9")):
        verdict(answer, ids=ids)

    assert keys[0] == "a7"
    assert keys[1] == keys[2] != keys[3]


@pytest.mark.parametrize("status", [200, 201, 202, 204, 299])
def test_it_is_done_when_the_endpoint_says_so(status: int) -> None:
    assert verdict(lambda _: said(status)) == Done()


@pytest.mark.parametrize("status", [408, 425, 429, 500, 502, 503, 504, 599])
def test_what_may_pass_is_tried_again(status: int) -> None:
    assert isinstance(verdict(lambda _: said(status)), Retry)


@pytest.mark.parametrize("status", [301, 302, 307, 308, 400, 401, 403, 404, 410, 413, 422])
def test_what_would_come_again_is_refused_and_no_redirect_is_followed(status: int) -> None:
    requests: list[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        requests.append(request.url.path)
        return said(status, {"Location": "http://169.254.169.254/"})

    assert verdict(answer) == Reject(f"the endpoint answered {status}")
    assert requests == ["/alerts"]


@pytest.mark.parametrize(
    ("wish", "after"),
    [
        ("17", 17.0),
        ("Fri, 15 Jan 2027 08:00:10 GMT", 10.0),
        ("soon", None),
        ("-5", None),
        ("", None),
        ("9" * 30, 999999999.0),
    ],
)
def test_an_endpoint_may_say_when_to_retry(wish: str, after: float | None) -> None:
    assert verdict(lambda _: said(429, {"Retry-After": wish})) == Retry("the endpoint answered 429", after)


def test_a_lost_connection_may_pass() -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("refused", request=request)

    assert verdict(answer) == Retry("the call failed: ConnectError")


def test_a_call_that_breaks_as_nobody_foresaw_is_that_calls_own_affair() -> None:
    def answer(_: httpx.Request) -> httpx.Response:
        raise ZeroDivisionError("https://shop.example/a-secret-path")

    assert verdict(answer) == Retry("the connection failed: ZeroDivisionError")


def test_a_call_that_is_given_up_is_no_failure_of_the_endpoint() -> None:
    def answer(_: httpx.Request) -> httpx.Response:
        raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        verdict(answer)


def test_an_endpoint_that_never_answers_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sending, "DEADLINE_SECONDS", 0.01)

    async def never(_: str, __: int) -> Sequence[str]:
        await asyncio.sleep(60)
        return []

    assert verdict(lambda _: said(200), resolving=never) == Retry("no answer in 0.01 s")


def test_of_an_answer_without_end_only_the_beginning_is_read() -> None:
    read: list[int] = []

    class Endless(httpx.AsyncByteStream):
        async def __aiter__(self) -> AsyncIterator[bytes]:
            while True:
                read.append(1)
                yield b"x" * 10_000

    assert verdict(lambda _: httpx.Response(200, stream=Endless())) == Done()
    assert len(read) <= 8


def test_a_name_that_is_private_unknown_or_none_is_not_called_and_all_of_them_look_the_same() -> None:
    called: list[httpx.Request] = []

    async def private(_: str, __: int) -> Sequence[str]:
        return ["192.168.0.1"]

    async def lost(_: str, __: int) -> Sequence[str]:
        raise OSError("no such name")

    def answer(request: httpx.Request) -> httpx.Response:
        called.append(request)
        return said(200)

    odd = Endpoint("e1", "acme", f"https://{'a' * 64}.example/", "secret")
    verdicts = [
        verdict(answer, resolving=private),
        verdict(answer, resolving=lost),
        verdict(answer, odd, resolving=Resolver()),
    ]

    assert verdicts == [Retry("the host of the address does not resolve to public addresses")] * 3
    assert called == []


def test_what_is_not_encrypted_is_sent_within_allowed_networks_alone() -> None:
    plain = Endpoint("e1", "acme", "http://shop.example/", "secret")

    async def own(_: str, __: int) -> Sequence[str]:
        return ["10.1.2.3"]

    assert verdict(lambda _: said(200), plain, resolving=own) == Done()
    assert isinstance(verdict(lambda _: said(200), plain), Reject)


def test_a_bad_certificate_is_reported_with_its_defect() -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        wrong = ssl.SSLCertVerificationError(1, "certificate verify failed")
        wrong.verify_message = "certificate has expired"
        raise httpx.ConnectError("failed", request=request) from wrong

    assert verdict(answer) == Retry("the certificate is not valid: certificate has expired")


def test_what_an_answer_wants_to_be_kept_is_not_sent_with_the_next_call() -> None:
    sent: list[str | None] = []

    def answer(request: httpx.Request) -> httpx.Response:
        sent.append(request.headers.get("Cookie"))
        return said(200, {"Set-Cookie": f"n{len(sent)}=1; Path=/"})

    async def call() -> None:
        async with http_client(ssl.create_default_context()) as made:
            made._transport = httpx.MockTransport(answer)  # noqa: SLF001 - all else is as in production
            sender = WebhookClient(ENDPOINT, [], made, public)
            for _ in range(3):
                await sender.call(b"{}", "key")

    asyncio.run(call())

    assert sent == [None, None, None]


def test_the_status_of_the_last_answer_is_known_and_that_there_was_none() -> None:
    answers: list[httpx.Response | httpx.ConnectError] = [said(503), httpx.ConnectError("refused")]

    def answer(_: httpx.Request) -> httpx.Response:
        first = answers.pop(0)
        if isinstance(first, httpx.Response):
            return first
        raise first

    async def call() -> list[tuple[int | None, float | None]]:
        async with httpx.AsyncClient(transport=httpx.MockTransport(answer)) as made:
            sender = WebhookClient(ENDPOINT, [], made, public, lambda: NOW)
            known = [(sender.status, sender.answered_at)]
            for _ in range(2):
                await sender.call(b"{}", "key")
                known.append((sender.status, sender.answered_at))
        return known

    assert asyncio.run(call()) == [(None, None), (503, NOW), (None, NOW)]


def test_when_an_address_does_not_answer_the_next_call_goes_to_the_names_next_one_and_stays_there() -> None:
    async def two(_: str, __: int) -> Sequence[str]:
        return ["93.184.216.34", "1.1.1.1"]

    called: list[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        called.append(request.url.host)
        if request.url.host == "93.184.216.34":
            raise httpx.ConnectError("refused")
        return said(200)

    async def call() -> None:
        async with httpx.AsyncClient(transport=httpx.MockTransport(answer)) as made:
            sender = WebhookClient(ENDPOINT, [], made, two, lambda: NOW)
            for _ in range(3):
                await sender.call(b"{}", "key")

    asyncio.run(call())

    assert called == ["93.184.216.34", "1.1.1.1", "1.1.1.1"]
