"""The webhook dispatcher process: `python -m deploy.services.dispatcher`."""

import asyncio
import signal
import ssl
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Protocol

import httpx
import structlog

from deploy.cassandra import FAILURES, session_of
from deploy.services.runner import Process
from deploy.settings import Settings
from deploy.webhooks.endpoints import AsyncEndpoints
from master_dataset.cassandra_tables import Lease
from master_dataset.errors import UpkeepRunsError
from master_dataset.kafka.consumer import ConsumerLimits, KeyedConsumer
from master_dataset.kafka.topics import Topics
from master_dataset.webhooks.endpoint_table import EndpointTable
from speed_layer.webhooks.client import WebhookClient, http_client
from speed_layer.webhooks.delivery import Delivery, UndeliveredTable
from speed_layer.webhooks.dispatcher import Dispatcher, group
from speed_layer.webhooks.endpoint_worker import DesiredEndpoint, EndpointWorker
from speed_layer.webhooks.start_position import commit_start_positions
from views.alerts.alert import ALERTS_TOPIC

SECONDS = 12
"""How long the lease outlives its holder: about as long as a group of consumers misses a member that was killed."""
RENEW_SECONDS = 3.0

log = structlog.get_logger()


class Held(Protocol):
    """Lease."""

    def take(self) -> None:
        """UpkeepRunsError if somebody else holds it."""

    def renew(self) -> None:
        """UpkeepRunsError if it was lost."""

    def give_back(self) -> None:
        """Another may take it at once."""


class Turn:
    """Belongs to one event loop."""

    def __init__(self, lease: Held) -> None:
        """`lease` blocks."""
        self._lease = lease

    async def work(self, leaving: asyncio.Event, working: Callable[[asyncio.Event], Awaitable[None]]) -> None:
        """Work whenever it is its turn, until told to leave. What `working` raises, which ends by its event."""
        is_told = False
        while not leaving.is_set():
            if await self._asked(self._lease.take, unknown=False):
                await self._work(leaving, working)
                is_told = False
            elif not is_told:
                log.info("turn.waits")
                is_told = True
            with suppress(TimeoutError):
                await asyncio.wait_for(leaving.wait(), RENEW_SECONDS)

    async def _work(self, leaving: asyncio.Event, working: Callable[[asyncio.Event], Awaitable[None]]) -> None:
        ending = asyncio.Event()
        task, left = asyncio.ensure_future(working(ending)), asyncio.ensure_future(leaving.wait())
        try:
            while not (task.done() or left.done()) and await self._is_ours():
                await asyncio.wait({task, left}, timeout=RENEW_SECONDS, return_when=asyncio.FIRST_COMPLETED)
        finally:
            ending.set()
            left.cancel()
            try:
                await task
            finally:
                await self._asked(self._lease.give_back, unknown=False)

    async def _is_ours(self) -> bool:
        """One that has lapsed is taken again. While nobody says whose it is, all goes on as it was."""
        renewed = await self._asked(self._lease.renew, unknown=True)
        return renewed or await self._asked(self._lease.take, unknown=True)

    async def _asked(self, question: Callable[[], None], *, unknown: bool) -> bool:
        try:
            await asyncio.to_thread(question)
        except UpkeepRunsError:
            return False
        except FAILURES as error:
            log.warning("turn.not_known", why=type(error).__name__)
            return unknown
        return True


class Making:
    """Makes what calls an endpoint, which begins where the endpoint was made."""

    def __init__(self, settings: Settings, trust: ssl.SSLContext) -> None:
        """`trust`: whose certificates are good."""
        self._settings, self._trust = settings, trust
        self._undelivered = UndeliveredTable(settings.paths.master_uri)

    def telling(self, wanted: DesiredEndpoint) -> EndpointWorker:
        """Not begun yet. KafkaException, BrokerUnavailableError, PlaceLost."""
        endpoint, bootstrap = wanted.endpoint, self._settings.kafka.bootstrap
        own = group(bootstrap, endpoint)
        commit_start_positions(
            own, ALERTS_TOPIC, Topics(bootstrap).partitions(ALERTS_TOPIC), endpoint.made_ms, has_begun=wanted.has_begun
        )
        sender = WebhookClient(endpoint, self._settings.webhooks.allowed_networks, http_client(self._trust))
        delivery = Delivery(endpoint, sender, self._undelivered)
        return EndpointWorker(
            sender, delivery, KeyedConsumer(own, [ALERTS_TOPIC], delivery, ConsumerLimits(batch=endpoint.batch))
        )


def run(process: Process, settings: Settings) -> None:
    """Tell them until the process is told to stop; it ends by itself only with an error."""
    asyncio.run(_run(process, settings))


async def _run(process: Process, settings: Settings) -> None:
    leaving = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, leaving.set)
    session = session_of(settings.cassandra.address)
    endpoints, making = AsyncEndpoints(EndpointTable(session)), Making(settings, httpx.create_ssl_context())

    async def working(ending: asyncio.Event) -> None:
        await Dispatcher(endpoints, making.telling, settings.webhooks.suspend_hours * 3600).run(ending)

    process.show_metrics(settings.webhooks.metrics_port)
    process.ready()
    await Turn(Lease(session, "dispatcher", SECONDS)).work(leaving, working)


if __name__ == "__main__":
    Process("dispatcher").main(run)
