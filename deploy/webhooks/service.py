"""The webhook service for REST and the command line, built from the settings, with its test calls."""

import ssl
import time
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING
from uuid import uuid4

import httpx
import orjson

from deploy.cassandra import session_of
from deploy.secrets_key import secrets_key_of
from deploy.sections import Networks
from deploy.webhooks.endpoints import AsyncEndpoints
from master_dataset.kafka.consumer import Done, HandlerResult, Reject, Retry
from master_dataset.webhooks.endpoint import Endpoint
from master_dataset.webhooks.endpoint_table import EndpointTable
from serving_layer.fair_semaphore import BoundedFairSemaphore, FairSemaphore
from serving_layer.responses.webhooks import TrialOutcome, WebhookTrial
from serving_layer.webhooks.service import WebhookService
from speed_layer.webhooks.client import Resolve, WebhookClient, http_client

if TYPE_CHECKING:
    from deploy.settings import Settings

MAX_TEST_CALLS, MAX_OF_TENANT, MAX_WAITING = 4, 2, 8
"""Concurrent test calls of a process and of one tenant, and how many of a tenant may be in progress or waiting.

Each takes ten seconds at most.
"""
BODY = orjson.dumps({"alerts": [], "test": True})
_OUTCOMES: dict[type[HandlerResult], TrialOutcome] = {Done: "done", Retry: "failed", Reject: "refused"}


class WebhookTester:
    """Makes test calls, under the same limits as real calls."""

    def __init__(self, networks: Networks, trust: ssl.SSLContext, resolving: Resolve | None = None) -> None:
        """`networks`: may be called though they are not public. `trust`: the accepted authorities."""
        self._allowed, self._trust, self._resolving = networks, trust, resolving
        self._places = BoundedFairSemaphore(FairSemaphore(MAX_TEST_CALLS, MAX_OF_TENANT), MAX_WAITING, "test calls")

    async def call(self, endpoint: Endpoint) -> WebhookTrial:
        """Call the endpoint once, when its tenant is next. TooBusyError."""
        async with (
            self._places.hold(endpoint.tenant),
            WebhookClient(endpoint, self._allowed, http_client(self._trust), self._resolving) as client,
        ):
            began = time.monotonic()
            result = await client.call(BODY, f"test-{uuid4().hex}")
            took = int((time.monotonic() - began) * 1000)
        sentence = None if isinstance(result, Done) else result.why
        return WebhookTrial(_OUTCOMES[type(result)], client.status, sentence, took)


def webhooks_of(settings: "Settings") -> WebhookService:
    """The webhook service of this deployment."""
    session = session_of(settings.cassandra.address)
    endpoints = AsyncEndpoints(EndpointTable(session, secrets_key_of(settings)))
    tester = WebhookTester(settings.webhooks.allowed_networks, httpx.create_ssl_context())
    allowed = settings.webhooks.allowed_networks
    return WebhookService(endpoints, tester, settings.webhooks.per_tenant, partial(datetime.now, UTC), allowed)
