"""Test calls of webhooks: what a real call would come to, told to whoever asks."""

import ssl
import time
from uuid import uuid4

import orjson

from deploy.webhooks.settings import Networks
from master_dataset.kafka.consumer import Again, Done, Refused, Verdict
from master_dataset.webhooks.endpoint import Endpoint
from serving_layer.errors import TooBusy
from serving_layer.responses.webhooks import TrialOutcome, WebhookTrial
from speed_layer.webhooks.address import Resolve
from speed_layer.webhooks.sender import Sender, client

AT_ONCE = 4
"""Test calls of a process: each lasts ten seconds at most."""
BODY = orjson.dumps({"alerts": [], "test": True})
_OUTCOMES: dict[type[Verdict], TrialOutcome] = {Done: "done", Again: "failed", Refused: "refused"}


class TryingWebhooks:
    """Trying. Bound by everything that bounds a real call."""

    def __init__(self, networks: Networks, trust: ssl.SSLContext, resolving: Resolve | None = None) -> None:
        """`networks`: may be called though they are not public. `trust`: whose certificates are good."""
        self._allowed, self._trust, self._resolving = networks, trust, resolving
        self._under_way = 0

    async def call(self, endpoint: Endpoint) -> WebhookTrial:
        """Call it once. TooBusy."""
        if self._under_way >= AT_ONCE:
            raise TooBusy(f"{AT_ONCE} test calls are under way already.", do="Ask again in some seconds.")
        self._under_way += 1
        try:
            async with Sender(endpoint, self._allowed, client(self._trust), self._resolving) as sender:
                began = time.monotonic()
                verdict = await sender.call(BODY, f"test-{uuid4().hex}")
                took = int((time.monotonic() - began) * 1000)
        finally:
            self._under_way -= 1
        sentence = None if isinstance(verdict, Done) else verdict.why
        return WebhookTrial(_OUTCOMES[type(verdict)], sender.status, sentence, took)
