"""Deliveries to one endpoint of the tenant acme, in this process or, so that it can be killed, in one of its own.

`python -m tests.world.webhooks BOOTSTRAP TOPIC URL ENDPOINT`
"""

import asyncio
import sys
import threading
from ipaddress import ip_network
from typing import Any, Self
from uuid import uuid4

import orjson

from master_dataset.consuming import Consuming, Limits, Record
from master_dataset.endpoint import Endpoint
from speed_layer.webhooks.delivery import Delivery
from speed_layer.webhooks.dispatcher import group
from speed_layer.webhooks.sender import Sender, client

LIMITS = Limits(batch=10, longest_wait=0.2)


def group_of(bootstrap: str, id_: str) -> dict[str, Any]:
    """Settings of the group of an endpoint of this id."""
    return group(bootstrap, Endpoint(id_, "acme", "http://127.0.0.1/", "secret"))


class Told:
    """Inside, an endpoint is told. `undelivered`: (store, why) of what it refused."""

    def __init__(self, bootstrap: str, topic: str, url: str, id_: str | None = None) -> None:
        self._endpoint = Endpoint(id_ or uuid4().hex, "acme", url, "secret")
        self._settings = {**group_of(bootstrap, self._endpoint.id), "session.timeout.ms": 6000}
        self._topic = topic
        self.undelivered: list[tuple[str, str]] = []
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=lambda: self._loop.run_until_complete(self.run()))
        self._consuming: Consuming | None = None

    async def keep(self, _: Endpoint, record: Record, why: str) -> None:
        self.undelivered.append((orjson.loads(record.value)["store"], why))

    async def run(self) -> None:
        async with client() as calling:
            sender = Sender(self._endpoint, [ip_network("127.0.0.0/8")], calling)
            taker = Delivery(self._endpoint, sender, self)
            self._consuming = Consuming(self._settings, [self._topic], taker, LIMITS)
            await self._consuming.run()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        assert self._consuming is not None
        self._loop.call_soon_threadsafe(self._consuming.stop)
        self._thread.join()
        self._loop.close()


if __name__ == "__main__":
    asyncio.run(Told(*sys.argv[1:5]).run())
