"""The dispatcher as a process of the local stack: `python -m deploy.process.dispatcher`. Tells endpoints of alerts."""

import asyncio
import signal
from collections.abc import Sequence
from datetime import UTC, datetime

import httpx

from deploy.cassandra import session_of
from deploy.process.edge import Process
from deploy.settings import Settings
from master_dataset.consuming import Consuming, Limits
from master_dataset.endpoint import Endpoint
from master_dataset.endpoint_table import EndpointTable
from master_dataset.kafka import Topics
from speed_layer.webhooks.beginning import begin
from speed_layer.webhooks.delivery import Delivery
from speed_layer.webhooks.dispatcher import Dispatcher, group
from speed_layer.webhooks.sender import Sender, client
from speed_layer.webhooks.undelivered_table import UndeliveredTable

ALERTS = "alerts"


class Known:
    """The endpoints of the table, asked beside the event loop."""

    def __init__(self, table: EndpointTable) -> None:
        """`table` blocks."""
        self._table = table

    async def active(self) -> Sequence[Endpoint]:
        """Neither removed nor suspended."""
        found = await asyncio.to_thread(self._table.all)
        return [each.endpoint for each in found if each.suspended_at is None]

    async def suspend(self, endpoint: Endpoint, since: float) -> None:
        """It has failed since then."""
        await self.see(endpoint, since, 0)
        await asyncio.to_thread(self._table.suspend, endpoint.id, datetime.now(UTC))

    async def see(self, endpoint: Endpoint, failing_since: float | None, waiting: int) -> None:
        """How it is doing."""
        since = None if failing_since is None else datetime.fromtimestamp(failing_since, UTC)
        await asyncio.to_thread(self._table.see, endpoint.id, since, waiting, datetime.now(UTC))


class Making:
    """Makes the consumer group of an endpoint, which begins where the endpoint was made."""

    def __init__(self, settings: Settings, calling: httpx.AsyncClient) -> None:
        """`calling` calls them all."""
        self._settings, self._calling = settings, calling
        self._undelivered = UndeliveredTable(settings.master_uri)

    def consuming(self, endpoint: Endpoint) -> Consuming:
        """Not begun yet. KafkaException."""
        own = group(self._settings.kafka_bootstrap, endpoint)
        begin(own, ALERTS, Topics(self._settings.kafka_bootstrap).partitions(ALERTS), endpoint.made_ms)
        sender = Sender(endpoint, self._settings.allowed_networks, self._calling)
        limits = Limits(batch=endpoint.batch)
        return Consuming(own, [ALERTS], Delivery(endpoint, sender, self._undelivered), limits)


def run(process: Process, settings: Settings) -> None:
    """Tell them until the process is told to stop; it ends by itself only with an error."""
    asyncio.run(_run(process, settings))


async def _run(process: Process, settings: Settings) -> None:
    leaving = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, leaving.set)
    async with client() as calling:
        known = Known(EndpointTable(session_of(settings.cassandra_address)))
        dispatcher = Dispatcher(known, Making(settings, calling).consuming)
        process.show_metrics(settings.dispatcher_metrics_port)
        process.ready()
        await dispatcher.run(leaving)


if __name__ == "__main__":
    Process("dispatcher").main(run)
