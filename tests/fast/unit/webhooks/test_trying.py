"""A test call returns what a real one would result in, whatever the receiver does."""

import asyncio
import ssl
from collections.abc import Sequence
from ipaddress import ip_network

import pytest

from deploy.webhooks.service import MAX_WAITING, WebhookTester
from master_dataset.webhooks.endpoint import Endpoint
from serving_layer.errors import TooBusyError
from serving_layer.responses.webhooks import WebhookTrial
from speed_layer.webhooks.client import Resolve
from tests.support.webhook_receivers import Behaviour, answers, listening

FAR = f"Mon, 01 Jan {'9' * 20} 00:00:00 GMT"
LOOPBACK = [ip_network("127.0.0.1/32")]


async def here(_: str, __: int) -> Sequence[str]:
    return ["127.0.0.1"]


async def breaking(_: str, __: int) -> Sequence[str]:
    raise ZeroDivisionError


def trial(behaviour: Behaviour, resolving: Resolve = here) -> WebhookTrial:
    async def work() -> WebhookTrial:
        async with listening(behaviour) as receiver:
            trying = WebhookTester(LOOPBACK, ssl.create_default_context(), resolving)
            return await trying.call(Endpoint("e1", "acme", f"http://shop.example:{receiver.port}/", "secret"))

    return asyncio.run(work())


@pytest.mark.parametrize(
    ("behaviour", "resolving", "outcome", "status", "why"),
    [
        (answers(204), here, "done", 204, None),
        (answers(404), here, "refused", 404, "the endpoint answered 404"),
        (answers(503, Retry_After=FAR), here, "failed", 503, "the endpoint answered 503"),
        (answers(204), breaking, "failed", None, "the connection failed: ZeroDivisionError"),
    ],
)
def test_the_outcome_of_a_call_is_returned_and_never_raised(
    behaviour: Behaviour, resolving: Resolve, outcome: str, status: int | None, why: str | None
) -> None:
    found = trial(behaviour, resolving)

    assert (found.outcome, found.status, found.sentence) == (outcome, status, why)


def test_test_calls_of_a_tenant_whose_receiver_hangs_leave_places_for_others() -> None:
    entered, released = asyncio.Event(), asyncio.Event()

    async def hanging(_: str, __: int) -> Sequence[str]:
        entered.set()
        await released.wait()
        return ["127.0.0.1"]

    async def resolving(host: str, port: int) -> Sequence[str]:
        return await (hanging if host == "hangs.example" else here)(host, port)

    async def work() -> tuple[WebhookTrial, str]:
        async with listening(answers(204)) as receiver:
            tester = WebhookTester(LOOPBACK, ssl.create_default_context(), resolving)
            stuck = Endpoint("e1", "acme", f"http://hangs.example:{receiver.port}/", "secret")
            held = [asyncio.ensure_future(tester.call(stuck)) for _ in range(MAX_WAITING)]
            await entered.wait()
            try:
                with pytest.raises(TooBusyError) as refused:
                    await tester.call(stuck)
                other = Endpoint("e2", "other", f"http://shop.example:{receiver.port}/", "secret")
                return await tester.call(other), refused.value.message
            finally:
                released.set()
                await asyncio.gather(*held)

    found, refused = asyncio.run(work())

    assert found.outcome == "done"
    assert refused == f"{MAX_WAITING} test calls are in progress or waiting."
