"""The dispatcher as a process of the local stack: `python -m deploy.services.dispatcher`. Tells endpoints of alerts.

One works at a time: what it writes of an endpoint is all that there is to say, and only it keeps what was refused.
"""

import asyncio
import signal
import ssl

import httpx

from deploy.cassandra import session_of
from deploy.services.leader_election import SECONDS, Turn
from deploy.services.runner import Process
from deploy.settings import Settings
from deploy.webhooks.endpoints import KeptEndpoints
from master_dataset.kafka.consumer import Consuming, Limits
from master_dataset.kafka.topics import Topics
from master_dataset.lease import Lease
from master_dataset.webhooks.endpoint_table import EndpointTable
from speed_layer.webhooks.beginning import begin
from speed_layer.webhooks.delivery import Delivery
from speed_layer.webhooks.dispatcher import Dispatcher, group
from speed_layer.webhooks.sender import Sender, client
from speed_layer.webhooks.telling import Telling
from speed_layer.webhooks.undelivered_table import UndeliveredTable
from speed_layer.webhooks.wanted import Wanted
from views.alerts.alert import TOPIC


class Making:
    """Makes what calls an endpoint, which begins where the endpoint was made."""

    def __init__(self, settings: Settings, trust: ssl.SSLContext) -> None:
        """`trust`: whose certificates are good."""
        self._settings, self._trust = settings, trust
        self._undelivered = UndeliveredTable(settings.master_uri)

    def telling(self, wanted: Wanted) -> Telling:
        """Not begun yet. KafkaException, BrokerUnavailable, PlaceLost."""
        endpoint, bootstrap = wanted.endpoint, self._settings.kafka_bootstrap
        own = group(bootstrap, endpoint)
        begin(own, TOPIC, Topics(bootstrap).partitions(TOPIC), endpoint.made_ms, has_begun=wanted.has_begun)
        sender = Sender(endpoint, self._settings.allowed_networks, client(self._trust))
        delivery = Delivery(endpoint, sender, self._undelivered)
        return Telling(sender, delivery, Consuming(own, [TOPIC], delivery, Limits(batch=endpoint.batch)))


def run(process: Process, settings: Settings) -> None:
    """Tell them until the process is told to stop; it ends by itself only with an error."""
    asyncio.run(_run(process, settings))


async def _run(process: Process, settings: Settings) -> None:
    leaving = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, leaving.set)
    session = session_of(settings.cassandra_address)
    endpoints, making = KeptEndpoints(EndpointTable(session)), Making(settings, httpx.create_ssl_context())

    async def working(ending: asyncio.Event) -> None:
        await Dispatcher(endpoints, making.telling, settings.webhook_suspend_hours * 3600).run(ending)

    process.show_metrics(settings.dispatcher_metrics_port)
    process.ready()
    await Turn(Lease(session, "dispatcher", SECONDS)).work(leaving, working)


if __name__ == "__main__":
    Process("dispatcher").main(run)
