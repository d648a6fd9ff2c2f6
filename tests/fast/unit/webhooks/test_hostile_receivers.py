"""Receivers that do their worst: each comes to a dead letter or to another try, in order, within bounded memory, and
the endpoint beside it does not notice.
"""

import asyncio
import ssl
import tracemalloc
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from ipaddress import ip_network

import pytest

from master_dataset.kafka.consumer import ConsumerLimits, ConsumerRecord, HandlerResult, KeyedConsumer, Retry, key_queue
from master_dataset.webhooks.endpoint import Endpoint, Network
from speed_layer.webhooks import client as sending
from speed_layer.webhooks.client import Resolve, WebhookClient, http_client
from speed_layer.webhooks.delivery import Delivery
from speed_layer.webhooks.endpoint_worker import EndpointWorker
from tests.support.alert_signatures import signatures_of
from tests.support.alert_topic import alert
from tests.support.memory_topic import TOPIC, Driver, Message
from tests.support.webhook_receivers import (
    Behaviour,
    Receiver,
    answers,
    authority,
    continues,
    drips,
    drops,
    floods,
    floods_continues,
    floods_headers,
    hangs,
    listening,
    one_long_header,
    resets,
    talks_nonsense,
)

ALERTS, PATIENCE = 12, 60.0
LOOPBACK = (ip_network("127.0.0.1/32"),)
MB = 1_000_000
WELL = answers(204)
NAME = "shop.example"
FAR = f"Mon, 01 Jan {'9' * 20} 00:00:00 GMT"
REFUSED = [
    ("a redirect", answers(302, Location="http://169.254.169.254/latest"), "the endpoint answered 302"),
    ("a redirect to nowhere", answers(302, Location="h:0"), "the endpoint answered 302"),
    ("a redirect to itself", answers(307, Location="/"), "the endpoint answered 307"),
    ("not found", answers(404), "the endpoint answered 404"),
    ("gone", answers(410), "the endpoint answered 410"),
    ("cannot be read", answers(422), "the endpoint answered 422"),
]
AGAIN = [
    ("no answer", hangs, "no answer in 0.4 s"),
    ("byte by byte", drips, "no answer in 0.4 s"),
    ("in a moment, for ever", continues, "no answer in 0.4 s"),
    ("in a moment, a million times", floods_continues, "the call failed: RemoteProtocolError"),
    ("headers without end", floods_headers, "the call failed: RemoteProtocolError"),
    ("a header without end", one_long_header, "the call failed: RemoteProtocolError"),
    ("a reset in the middle", resets, "the call failed: ReadError"),
    ("no HTTP", talks_nonsense, "the call failed: RemoteProtocolError"),
    ("time-out", answers(408), "the endpoint answered 408"),
    ("too early", answers(425), "the endpoint answered 425"),
    ("too many", answers(429, Retry_After="0"), "the endpoint answered 429"),
    ("a date beyond all dates", answers(503, Retry_After=FAR), "the endpoint answered 503"),
    ("broken", answers(500), "the endpoint answered 500"),
    ("away", answers(503), "the endpoint answered 503"),
]


async def here(_: str, __: int) -> Sequence[str]:
    return ["127.0.0.1"]


@dataclass
class Kept:
    """Where the refused are kept."""

    dead_letters: list[tuple[int, str]] = field(default_factory=list)

    async def keep(self, _: Endpoint, record: ConsumerRecord, why: str) -> None:
        self.dead_letters.append((record.offset, why))


@dataclass
class Outcome:
    """One endpoint at work over alerts that are there already."""

    worker: EndpointWorker
    kept: Kept
    driver: Driver


@asynccontextmanager
async def outcome_of(
    url: str,
    tenant: str = "acme",
    resolving: Resolve = here,
    allowed: Sequence[Network] = LOOPBACK,
    trust: ssl.SSLContext | None = None,
) -> AsyncIterator[Outcome]:
    """Delivers the alerts of that tenant, which are mixed with those of another, while the block runs."""
    endpoint, kept = Endpoint("e1", tenant, url, "secret"), Kept()
    owners = ("acme", "globex")
    messages = [
        Message(0, number * 2 + at, owner, alert(owner, owner, number).to_json())
        for number in range(ALERTS)
        for at, owner in enumerate(owners)
    ]
    driver = Driver(messages)
    sender = WebhookClient(endpoint, allowed, http_client(trust or ssl.create_default_context()), resolving)
    delivery = Delivery(endpoint, sender, kept, signatures_of())
    limits = ConsumerLimits(batch=4, longest_wait=0.02, leave=0.1)
    worker = EndpointWorker(sender, delivery, KeyedConsumer({}, [TOPIC], delivery, limits, driver))
    running = asyncio.ensure_future(worker.run())
    try:
        yield Outcome(worker, kept, driver)
    finally:
        worker.stop()
        await running


async def until(done: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not done():  # noqa: ASYNC110 - what is waited for has no event
            await asyncio.sleep(0.005)


def numbers(receiver: Receiver) -> list[int]:
    """Of the alerts, in the order in which each came for the first time."""
    return list(dict.fromkeys(number for call in receiver.calls for number in call.numbers))


@pytest.fixture(autouse=True)
def _short_deadline(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    """Short where nothing but the deadline ends a call; other calls may take longer on a busy machine."""
    of = getattr(request.node, "callspec", None)
    ends_itself = of is not None and not str(of.params.get("why", "no answer")).startswith("no answer")
    monkeypatch.setattr(sending, "DEADLINE_SECONDS", 20.0 if ends_itself else 0.4)


@pytest.mark.parametrize(("behaviour", "why"), [each[1:] for each in REFUSED], ids=[each[0] for each in REFUSED])
def test_what_would_come_again_becomes_a_dead_letter_in_order_and_nobody_is_called_elsewhere(
    behaviour: Behaviour, why: str
) -> None:
    async def work() -> tuple[Kept, Receiver]:
        async with listening(behaviour) as receiver, outcome_of(f"http://{NAME}:{receiver.port}/") as one:
            await until(lambda: len(one.kept.dead_letters) == ALERTS)
        return one.kept, receiver

    kept, receiver = asyncio.run(work())

    assert kept.dead_letters == [(number * 2, why) for number in range(ALERTS)]
    assert numbers(receiver) == list(range(ALERTS))


@pytest.mark.parametrize(("behaviour", "why"), [each[1:] for each in AGAIN], ids=[each[0] for each in AGAIN])
def test_what_may_pass_is_tried_again_with_the_same_key_and_all_follows_in_order_when_it_has(
    behaviour: Behaviour, why: str
) -> None:
    async def work() -> tuple[Kept, Receiver, int, str]:
        async with listening(behaviour) as receiver, outcome_of(f"http://{NAME}:{receiver.port}/") as one:
            await until(lambda: len(receiver.calls) >= 3)
            await until(lambda: bool(one.worker.state(None).blocking))
            said = one.worker.state(None).blocking[0].why
            tries = len(receiver.calls)
            receiver.behaviour = WELL
            await until(lambda: len(numbers(receiver)) == ALERTS)
        return one.kept, receiver, tries, said

    kept, receiver, tries, said = asyncio.run(work())

    first = alert("acme", "acme", 0).alert_id
    assert {(call.key, *call.numbers) for call in receiver.calls[:tries]} == {(first, 0)}
    assert numbers(receiver) == list(range(ALERTS))
    assert (said, kept.dead_letters) == (why, [])


@pytest.mark.parametrize(
    "behaviour", [each[1] for each in (*AGAIN, *REFUSED)], ids=[each[0] for each in (*AGAIN, *REFUSED)]
)
def test_the_endpoint_of_another_tenant_gets_everything_meanwhile(behaviour: Behaviour) -> None:
    async def work() -> Receiver:
        async with (
            listening(behaviour) as hostile,
            listening(WELL) as well,
            outcome_of(f"http://{NAME}:{hostile.port}/"),
        ):
            await until(lambda: bool(hostile.calls))
            async with outcome_of(f"http://{NAME}:{well.port}/", "globex"):
                await until(lambda: len(numbers(well)) == ALERTS)
        return well

    well = asyncio.run(work())

    assert numbers(well) == list(range(ALERTS))
    assert {call.key for call in well.calls if len(call.numbers) == 1} <= {
        alert("globex", "globex", number).alert_id for number in range(ALERTS)
    }


def test_of_an_answer_of_gigabytes_only_the_beginning_is_read_and_it_counts() -> None:
    async def work() -> Receiver:
        async with listening(floods) as receiver, outcome_of(f"http://{NAME}:{receiver.port}/"):
            await until(lambda: len(numbers(receiver)) == ALERTS)
        return receiver

    receiver = asyncio.run(work())

    assert numbers(receiver) == list(range(ALERTS))
    assert receiver.sent < 40 * MB * len(receiver.calls)  # what buffers of the system hold


@pytest.mark.parametrize("behaviour", [floods, floods_headers, one_long_header, drips, continues])
def test_whatever_is_answered_a_call_takes_a_few_mb_at_most(behaviour: Behaviour) -> None:
    async def work() -> int:
        async with listening(behaviour) as receiver, outcome_of(f"http://{NAME}:{receiver.port}/"):
            await until(lambda: len(receiver.calls) >= 1)
            before, _ = tracemalloc.get_traced_memory()
            tracemalloc.reset_peak()
            await until(lambda: len(receiver.calls) >= 4)
            return tracemalloc.get_traced_memory()[1] - before

    tracemalloc.start()
    try:
        grown = asyncio.run(work())
    finally:
        tracemalloc.stop()

    assert grown < 4 * MB


@pytest.mark.parametrize(
    ("serving", "why"),
    [
        (authority().serving("other.example"), "certificate is not valid for"),
        (authority().serving(NAME, is_expired=True), "certificate has expired"),
        (authority().serving(NAME, is_own=True), "self-signed certificate"),
    ],
    ids=["wrong name", "expired", "self-signed"],
)
def test_an_endpoint_with_a_bad_certificate_gets_nothing_and_is_retried_until_it_is_valid(
    serving: ssl.SSLContext, why: str
) -> None:
    async def work() -> tuple[Receiver, str]:
        trust = authority().trust
        async with listening(WELL, serving) as bad, outcome_of(f"https://{NAME}:{bad.port}/", trust=trust) as one:
            await until(lambda: bool(one.worker.state(None).blocking))
            return bad, one.worker.state(None).blocking[0].why

    bad, said = asyncio.run(work())

    assert bad.calls == []
    assert said.startswith("the certificate is not valid: ")
    assert why in said.replace("self signed", "self-signed")


def test_an_endpoint_with_a_valid_certificate_of_its_name_gets_everything() -> None:
    async def work() -> Receiver:
        serving = authority().serving(NAME)
        url = f"https://{NAME}"
        async with listening(WELL, serving) as well, outcome_of(f"{url}:{well.port}/", trust=authority().trust):
            await until(lambda: len(numbers(well)) == ALERTS)
        return well

    assert numbers(asyncio.run(work())) == list(range(ALERTS))


def test_a_name_that_stands_for_a_private_address_is_not_called_and_waits_like_one_that_is_unknown() -> None:
    async def private(_: str, __: int) -> Sequence[str]:
        return ["127.0.0.1"]

    async def unknown(_: str, __: int) -> Sequence[str]:
        raise OSError("no such name")

    async def work(resolving: Resolve) -> tuple[Kept, Receiver, str]:
        async with (
            listening(WELL) as receiver,
            outcome_of(f"https://{NAME}:{receiver.port}/", "acme", resolving, ()) as one,
        ):
            await until(lambda: bool(one.worker.state(None).blocking))
            return one.kept, receiver, one.worker.state(None).blocking[0].why

    for resolving in (private, unknown):
        kept, receiver, why = asyncio.run(work(resolving))

        assert why == "the host of the address does not resolve to public addresses"
        assert (kept.dead_letters, receiver.calls) == ([], [])


def test_a_name_that_says_something_else_a_moment_later_leads_no_call_elsewhere() -> None:
    requested: list[str] = []

    async def rebinding(host: str, _: int) -> Sequence[str]:
        requested.append(host)
        return ["127.0.0.1"] if len(requested) % 2 else ["169.254.169.254"]

    async def work() -> tuple[Kept, Receiver]:
        async with (
            listening(WELL) as receiver,
            outcome_of(f"http://{NAME}:{receiver.port}/", resolving=rebinding) as one,
        ):
            await until(lambda: len(numbers(receiver)) == ALERTS)
        return one.kept, receiver

    kept, receiver = asyncio.run(work())

    calls = len(receiver.calls)
    refused = len(requested) - calls
    assert abs(calls - refused) <= 1  # asked once for each call, and what it said held for that call
    assert numbers(receiver) == list(range(ALERTS))
    assert kept.dead_letters == []


def test_what_is_not_encrypted_is_never_sent_to_the_internet() -> None:
    async def public(_: str, __: int) -> Sequence[str]:
        return ["93.184.216.34"]

    async def work() -> Kept:
        async with outcome_of("http://shop.example/", resolving=public) as one:
            await until(lambda: len(one.kept.dead_letters) == ALERTS)
        return one.kept

    assert {why for _, why in asyncio.run(work()).dead_letters} == {
        "the address does not use https, and is not in an allowed network"
    }


def test_a_receiver_that_has_taken_a_call_and_drops_its_answer_gets_the_same_key_again_and_can_know_it() -> None:
    flaky = 0

    async def every_other(receiver: Receiver, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal flaky
        flaky += 1
        await (drops if flaky % 2 else WELL)(receiver, reader, writer)

    async def work() -> tuple[Kept, Receiver]:
        async with listening(every_other) as receiver, outcome_of(f"http://{NAME}:{receiver.port}/") as one:
            await until(lambda: len(numbers(receiver)) == ALERTS and len(receiver.calls) % 2 == 0)
        return one.kept, receiver

    kept, receiver = asyncio.run(work())

    for dropped, again in zip(receiver.calls[::2], receiver.calls[1::2], strict=True):
        assert again == dropped
    assert any(len(call.numbers) > 1 for call in receiver.calls)
    assert numbers(receiver) == list(range(ALERTS))
    assert kept.dead_letters == []


@pytest.mark.parametrize(
    ("behaviour", "may_have_it"),
    [
        (hangs, True),
        (drips, True),
        (resets, True),
        (drops, True),
        (talks_nonsense, True),
        (answers(500), True),
        (answers(504), True),
        (answers(408), False),
        (answers(425), False),
        (answers(429), False),
    ],
)
def test_fewer_at_once_may_help_whoever_was_sent_a_call_and_could_not_cope(
    behaviour: Behaviour, *, may_have_it: bool
) -> None:
    async def work() -> HandlerResult:
        async with listening(behaviour) as receiver:
            endpoint = Endpoint("e1", "acme", f"http://{NAME}:{receiver.port}/", "secret")
            async with WebhookClient(endpoint, LOOPBACK, http_client(ssl.create_default_context()), here) as sender:
                return await sender.call(b'{"alerts": []}', "a1")

    verdict = asyncio.run(work())

    assert isinstance(verdict, Retry)
    assert verdict.fewer is may_have_it


def test_fewer_at_once_help_nobody_who_was_not_reached() -> None:
    async def work() -> list[HandlerResult]:
        async with listening(WELL) as receiver:
            port = receiver.port
        gone = Endpoint("e1", "acme", f"http://{NAME}:{port}/", "secret")
        async with listening(WELL, authority().serving("other.example")) as receiver:
            other = Endpoint("e1", "acme", f"https://{NAME}:{receiver.port}/", "secret")
            found = []
            for endpoint in (gone, other):
                async with WebhookClient(endpoint, LOOPBACK, http_client(authority().trust), here) as sender:
                    found.append(await sender.call(b'{"alerts": []}', "a1"))
            return found

    assert [isinstance(each, Retry) and each.fewer for each in asyncio.run(work())] == [False, False]


@pytest.mark.parametrize(("said", "waits"), [("7", 7.0), ("3600", 3600.0), ("3601", 3600.0), ("999999", 3600.0)])
def test_a_wish_to_be_left_alone_is_honoured_up_to_an_hour(
    said: str, waits: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    waited: list[float] = []

    def noted(tries: int, most: float, requested: float | None = None) -> float:
        if requested is not None:  # a call that ran out of time on a busy machine has no wish
            waited.append(seconds(tries, most, requested))
        return 0.0

    seconds = key_queue.backoff_seconds
    monkeypatch.setattr(key_queue, "backoff_seconds", noted)

    async def work() -> None:
        async with listening(answers(503, Retry_After=said)) as receiver, outcome_of(f"http://{NAME}:{receiver.port}/"):
            await until(lambda: len(waited) >= 2)

    asyncio.run(work())

    assert set(waited) == {waits}
