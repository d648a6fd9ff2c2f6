"""Deliveries to one endpoint of the tenant acme, in this process or, so that it can be killed, in one of its own.

`python -m tests.support.webhooks BOOTSTRAP TOPIC URL ENDPOINT`
"""

import asyncio
import sys
import threading
from ipaddress import ip_network
from typing import Any, Self
from uuid import uuid4

import httpx
import orjson

from master_dataset.kafka.connection import KafkaConnection
from master_dataset.kafka.consumer import ConsumerLimits, ConsumerRecord, KeyedConsumer
from master_dataset.webhooks.endpoint import Endpoint, EndpointState
from speed_layer.webhooks.client import WebhookClient, http_client
from speed_layer.webhooks.delivery import Delivery, Place
from speed_layer.webhooks.dispatcher import group
from speed_layer.webhooks.endpoint_worker import EndpointWorker
from tests.support.alert_signatures import signatures_of

LIMITS = ConsumerLimits(batch=10, longest_wait=0.2)
LOOPBACK = [ip_network("127.0.0.0/8")]


def group_of(kafka: KafkaConnection, id_: str) -> dict[str, Any]:
    """Settings of the group of an endpoint of this id."""
    return group(kafka, Endpoint(id_, "acme", "http://127.0.0.1/", "secret"))


class RunningEndpoint:
    """Delivers alerts to an endpoint while the block runs. `undelivered`: (store, why) of rejected ones."""

    def __init__(
        self, kafka: KafkaConnection, topic: str, url: str, id_: str | None = None, limits: ConsumerLimits = LIMITS
    ) -> None:
        self._endpoint = Endpoint(id_ or uuid4().hex, "acme", url, "secret")
        self._settings = {**group_of(kafka, self._endpoint.id), "session.timeout.ms": 6000}
        self._topic, self._limits = topic, limits
        self.undelivered: list[tuple[str, str]] = []
        self.refused: list[ConsumerRecord] = []
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=lambda: self._loop.run_until_complete(self.run()))
        self._worker: EndpointWorker | None = None

    async def keep(self, _: Endpoint, record: ConsumerRecord, why: str) -> None:
        self.undelivered.append((orjson.loads(record.value)["store"], why))
        self.refused.append(record)

    async def run(self) -> None:
        sender = WebhookClient(self._endpoint, LOOPBACK, http_client(httpx.create_ssl_context()))
        delivery = Delivery(self._endpoint, sender, self, signatures_of())
        self._worker = EndpointWorker(
            sender, delivery, KeyedConsumer(self._settings, [self._topic], delivery, self._limits)
        )
        await self._worker.run()

    def state(self) -> EndpointState:
        """How it is doing, asked in its own loop."""

        async def current() -> EndpointState:
            return self.worker.state(self.worker.failing_since)

        return asyncio.run_coroutine_threadsafe(current(), self._loop).result()

    def skip(self, *places: Place) -> None:
        """As the dispatcher hands it on."""
        self._loop.call_soon_threadsafe(self.worker.skip, places)

    @property
    def worker(self) -> EndpointWorker:
        assert self._worker is not None
        return self._worker

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self.worker.stop)
        self._thread.join()
        self._loop.close()


if __name__ == "__main__":
    where, of, to, named = sys.argv[1:5]
    asyncio.run(RunningEndpoint(KafkaConnection(where), of, to, named).run())
