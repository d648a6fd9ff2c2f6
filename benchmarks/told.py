"""One endpoint is told, as the dispatcher does it: `python -m benchmarks.told BOOTSTRAP TOPIC URL ENDPOINT BATCH`."""

import asyncio
import sys
from ipaddress import ip_network

import httpx

from master_dataset.kafka.consumer import Consuming, Limits, Record
from master_dataset.webhooks.endpoint import Endpoint
from speed_layer.webhooks.client import Sender, client
from speed_layer.webhooks.delivery import Delivery
from speed_layer.webhooks.dispatcher import group
from speed_layer.webhooks.endpoint_worker import Telling

TENANT = "default"


class Nowhere:
    """Undelivered: nothing is refused here."""

    async def keep(self, _: Endpoint, record: Record, why: str) -> None:
        """RuntimeError, which ends the run."""
        raise RuntimeError(f"{record.offset} was refused: {why}")


async def told(bootstrap: str, topic: str, url: str, id_: str, batch: int) -> None:
    """Until the process is ended."""
    endpoint = Endpoint(id_, TENANT, url, "secret", batch)
    sender = Sender(endpoint, [ip_network("127.0.0.0/8")], client(httpx.create_ssl_context()))
    delivery = Delivery(endpoint, sender, Nowhere())
    settings = {**group(bootstrap, endpoint), "session.timeout.ms": 6000}
    await Telling(sender, delivery, Consuming(settings, [topic], delivery, Limits(batch=batch))).run()


if __name__ == "__main__":
    where, of, to, named, most = sys.argv[1:6]
    asyncio.run(told(where, of, to, named, int(most)))
