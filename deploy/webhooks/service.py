"""Test calls of webhooks: what a real call would come to, told to whoever asks.

What may be done with webhooks, wired from settings: for REST and for the command line.
"""

import ssl
import time
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING
from uuid import uuid4

import httpx
import orjson

from deploy.cassandra import session_of
from deploy.sections import Networks
from deploy.webhooks.endpoints import AsyncEndpoints
from master_dataset.kafka.consumer import Done, HandlerResult, Reject, Retry
from master_dataset.webhooks.endpoint import Endpoint
from master_dataset.webhooks.endpoint_table import EndpointTable
from serving_layer.errors import TooBusyError
from serving_layer.responses.webhooks import TrialOutcome, WebhookTrial
from serving_layer.webhooks.service import WebhookService
from speed_layer.webhooks.client import Resolve, WebhookClient, http_client

if TYPE_CHECKING:
    from deploy.settings import Settings

AT_ONCE = 4
"""Test calls of a process: each lasts ten seconds at most."""
BODY = orjson.dumps({"alerts": [], "test": True})
_OUTCOMES: dict[type[HandlerResult], TrialOutcome] = {Done: "done", Retry: "failed", Reject: "refused"}


class WebhookTester:
    """Trying. Bound by everything that bounds a real call."""

    def __init__(self, networks: Networks, trust: ssl.SSLContext, resolving: Resolve | None = None) -> None:
        """`networks`: may be called though they are not public. `trust`: whose certificates are good."""
        self._allowed, self._trust, self._resolving = networks, trust, resolving
        self._under_way = 0

    async def call(self, endpoint: Endpoint) -> WebhookTrial:
        """Call it once. TooBusyError."""
        if self._under_way >= AT_ONCE:
            raise TooBusyError(f"{AT_ONCE} test calls are under way already.", do="Ask again in some seconds.")
        self._under_way += 1
        try:
            async with WebhookClient(endpoint, self._allowed, http_client(self._trust), self._resolving) as sender:
                began = time.monotonic()
                verdict = await sender.call(BODY, f"test-{uuid4().hex}")
                took = int((time.monotonic() - began) * 1000)
        finally:
            self._under_way -= 1
        sentence = None if isinstance(verdict, Done) else verdict.why
        return WebhookTrial(_OUTCOMES[type(verdict)], sender.status, sentence, took)


def webhooks_of(settings: "Settings") -> WebhookService:
    """Of this deployment."""
    keeper = AsyncEndpoints(EndpointTable(session_of(settings.cassandra.address)))
    trying = WebhookTester(settings.webhooks.allowed_networks, httpx.create_ssl_context())
    allowed = settings.webhooks.allowed_networks
    return WebhookService(keeper, trying, settings.webhooks.per_tenant, partial(datetime.now, UTC), allowed)
