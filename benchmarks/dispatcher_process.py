"""Delivers to one endpoint as the dispatcher does.

`python -m benchmarks.dispatcher_process BOOTSTRAP TOPIC URL ENDPOINT BATCH`
"""

import asyncio
import sys
from collections.abc import Mapping
from ipaddress import ip_network

import httpx

from master_dataset.kafka.connection import KafkaConnection
from master_dataset.kafka.consumer import ConsumerLimits, ConsumerRecord, KeyedConsumer
from master_dataset.secrets_key import SecretsKey
from master_dataset.webhooks.endpoint import Endpoint
from speed_layer.webhooks.client import WebhookClient, http_client
from speed_layer.webhooks.delivery import Delivery
from speed_layer.webhooks.dispatcher import group
from speed_layer.webhooks.endpoint_worker import EndpointWorker
from views.alerts.signatures import AlertSignatures

TENANT = "default"


class Nowhere:
    """Undelivered: nothing is refused here."""

    async def keep(self, _: Endpoint, record: ConsumerRecord, why: str) -> None:
        """RuntimeError, which ends the run."""
        raise RuntimeError(f"{record.offset} was refused: {why}")


class NothingSigned:
    """FirstSigned: every record counts."""

    def read(self) -> Mapping[tuple[str, int], int]:
        """Nothing."""
        return {}

    def write(self, topic: str, partition: int, offset: int) -> None:
        """RuntimeError, which ends the run."""
        raise RuntimeError(f"{topic}/{partition} begins at {offset}")


async def deliver(kafka: KafkaConnection, topic: str, url: str, id_: str, batch: int) -> None:
    """Until the process is ended."""
    endpoint = Endpoint(id_, TENANT, url, "secret", batch)
    sender = WebhookClient(endpoint, [ip_network("127.0.0.0/8")], http_client(httpx.create_ssl_context()))
    signatures = AlertSignatures(SecretsKey(SecretsKey.new_text()), NothingSigned())
    delivery = Delivery(endpoint, sender, Nowhere(), signatures)
    settings = {**group(kafka, endpoint), "session.timeout.ms": 6000}
    await EndpointWorker(
        sender, delivery, KeyedConsumer(settings, [topic], delivery, ConsumerLimits(batch=batch))
    ).run()


if __name__ == "__main__":
    where, of, to, named, most = sys.argv[1:6]
    asyncio.run(deliver(KafkaConnection(where), of, to, named, int(most)))
