"""A test call returns what a real one would result in, whatever the receiver does."""

import asyncio
import ssl
from collections.abc import Sequence
from ipaddress import ip_network

import pytest

from deploy.webhooks.service import WebhookTester
from master_dataset.webhooks.endpoint import Endpoint
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
