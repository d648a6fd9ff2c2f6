"""The webhook dispatcher process: `python -m deploy.services.dispatcher`.

One dispatcher works at a time, so that its record of each endpoint is complete; others wait for the lease.
"""

import asyncio
import signal
import ssl
from collections.abc import Awaitable, Callable
from contextlib import suppress

import httpx
import structlog

from deploy.backup.mark import refuse_unfinished_restore
from deploy.cassandra import session_of
from deploy.secrets_key import alert_signatures_of, secrets_key_of
from deploy.services.runner import Process
from deploy.services.shared_work import ExclusiveLease
from deploy.settings import Settings
from deploy.webhooks.endpoints import AsyncEndpoints
from master_dataset.cassandra_tables import CASSANDRA_UNAVAILABLE, Lease, has_lease
from master_dataset.errors import DependencyUnavailableError
from master_dataset.kafka.consumer import ConsumerLimits, KeyedConsumer
from master_dataset.kafka.topics import Topics
from master_dataset.webhooks.endpoint_table import EndpointTable
from speed_layer.webhooks.client import WebhookClient, http_client
from speed_layer.webhooks.delivery import Delivery, UndeliveredTable
from speed_layer.webhooks.dispatcher import Dispatcher, group
from speed_layer.webhooks.endpoint_worker import DesiredEndpoint, EndpointWorker
from speed_layer.webhooks.start_position import commit_start_positions
from views.alerts.alert import ALERTS_TOPIC
from views.alerts.signatures import AlertSignatures

LEASE_SECONDS = 12
"""How long the lease outlives its holder: about as long as a consumer group takes to notice a killed member."""
RENEW_SECONDS = 3.0
REFRESH_SECONDS = 10.0

log = structlog.get_logger()


class LeaderElection:
    """Runs work in one of several processes. Use it in one event loop."""

    def __init__(self, lease: ExclusiveLease) -> None:
        """`lease` is what the leader holds."""
        self._lease = lease

    async def work(self, leaving: asyncio.Event, working: Callable[[asyncio.Event], Awaitable[None]]) -> None:
        """Run `working` whenever this process is the leader, until `leaving` is set.

        `working` has to end soon after its event is set; what it raises is raised here.
        """
        is_logged = False
        while not leaving.is_set():
            if await self._holds(self._lease.take, if_unknown=False):
                await self._work(leaving, working)
                is_logged = False
            elif not is_logged:
                log.info("leader_election.waiting")
                is_logged = True
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
                await self._holds(self._lease.release, if_unknown=False)

    async def _is_ours(self) -> bool:
        """Renew the lease, or take it again if it has lapsed. While Cassandra does not respond, work continues."""
        renewed = await self._holds(self._lease.renew, if_unknown=True)
        return renewed or await self._holds(self._lease.take, if_unknown=True)

    async def _holds(self, operation: Callable[[], None], *, if_unknown: bool) -> bool:
        """Whether this process holds the lease after `operation`."""
        try:
            return await asyncio.to_thread(has_lease, operation)
        except CASSANDRA_UNAVAILABLE as error:
            log.warning("leader_election.lease_unknown", error=type(error).__name__)
            return if_unknown


class WorkerFactory:
    """Makes the worker of each webhook endpoint."""

    def __init__(self, settings: Settings, trust: ssl.SSLContext, signatures: AlertSignatures) -> None:
        """`trust`: the certificates that endpoints are checked against. `signatures`: say which alerts are ours."""
        self._settings, self._trust, self._signatures = settings, trust, signatures
        self._undelivered = UndeliveredTable(settings.paths.master_uri)

    def make(self, wanted: DesiredEndpoint) -> EndpointWorker:
        """Make a worker that starts to read where its endpoint was created. It is not started yet.

        Raises what the Kafka client does, DependencyUnavailableError, and PositionLostError.
        """
        self._signatures.refresh()
        endpoint, kafka = wanted.endpoint, self._settings.kafka.connection
        consumer_group = group(kafka, endpoint)
        commit_start_positions(
            consumer_group,
            ALERTS_TOPIC,
            Topics(kafka).partitions(ALERTS_TOPIC),
            endpoint.made_ms,
            has_begun=wanted.has_begun,
        )
        sender = WebhookClient(endpoint, self._settings.webhooks.allowed_networks, http_client(self._trust))
        delivery = Delivery(endpoint, sender, self._undelivered, self._signatures)
        return EndpointWorker(
            sender,
            delivery,
            KeyedConsumer(consumer_group, [ALERTS_TOPIC], delivery, ConsumerLimits(batch=endpoint.batch)),
        )


def run(process: Process, settings: Settings) -> None:
    """Call webhooks until the process is stopped."""
    asyncio.run(_run(process, settings))


def warn_of_networks(settings: Settings) -> None:
    """Log networks that webhooks may call and that are too wide; `galatea doctor` says what is wrong with each."""
    webhooks = settings.webhooks
    if found := dict.fromkeys(map(str, (*webhooks.link_local_networks, *webhooks.wide_networks))):
        log.warning("dispatcher.networks_too_wide", setting="GALATEA_WEBHOOK_NETWORKS", networks=list(found))


async def refresh_signatures(signatures: AlertSignatures) -> None:
    """Notice, until it is cancelled, that alert processors of this release have begun to sign in a partition."""
    while True:
        await asyncio.sleep(REFRESH_SECONDS)
        try:
            await asyncio.to_thread(signatures.refresh)
        except DependencyUnavailableError as error:
            log.warning("dispatcher.signatures_not_read", error=error.message)


async def _run(process: Process, settings: Settings) -> None:
    warn_of_networks(settings)
    leaving = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, leaving.set)
    session = session_of(settings.cassandra.address)
    refuse_unfinished_restore(session)
    endpoints = AsyncEndpoints(EndpointTable(session, secrets_key_of(settings)))
    signatures = alert_signatures_of(settings)
    workers = WorkerFactory(settings, httpx.create_ssl_context(), signatures)

    async def working(ending: asyncio.Event) -> None:
        refreshing = asyncio.ensure_future(refresh_signatures(signatures))
        try:
            await Dispatcher(endpoints, workers.make, settings.webhooks.suspend_hours * 3600).run(ending)
        finally:
            refreshing.cancel()

    process.show_metrics(settings.webhooks.metrics_port)
    process.ready()
    await LeaderElection(Lease(session, "dispatcher", LEASE_SECONDS)).work(leaving, working)


if __name__ == "__main__":
    Process("dispatcher").main(run)
