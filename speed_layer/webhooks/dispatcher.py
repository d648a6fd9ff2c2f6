"""The dispatcher of all endpoints: one consumer group for each, so that one that is down does not delay the others.

It compares the endpoints that should run with those that do, again and again, and starts and stops workers accordingly.
An endpoint that has failed for a day is suspended: its group stops, and the alerts it misses are kept as long as the
topic keeps them.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from typing import Any, get_args

import structlog
from confluent_kafka import KafkaException
from prometheus_client import Gauge

from master_dataset.errors import DependencyUnavailableError
from master_dataset.kafka.connection import KafkaConnection
from master_dataset.webhooks.endpoint import Endpoint, WorkerStatus
from speed_layer.webhooks.endpoint_worker import DesiredEndpoint, EndpointStore, RunningEndpoint, Worker
from speed_layer.webhooks.start_position import PositionLostError

log = structlog.get_logger()
RECONCILE_SECONDS = 2.0
SUSPEND_SECONDS = 24 * 3600.0
GROUP = "galatea.webhook."
FAILURES = (DependencyUnavailableError, KafkaException, OSError)
"""Errors that end a worker and may be temporary. All others end the process."""
ENDPOINTS = Gauge("galatea_webhook_endpoints", "Webhook endpoints, by state.", ("state",))
RECORDS = Gauge("galatea_webhook_lag_records", "Records left to read or deliver, for the endpoint with the most.")
SECONDS = Gauge("galatea_webhook_lag_seconds", "For how long the oldest alert has been waiting for its endpoint.")
MEMORY_KB = 1024
"""What a group prefetches, in KB. At most 1,500 further records wait for their calls."""


class Dispatcher:
    """Belongs to one event loop."""

    def __init__(
        self,
        endpoints: EndpointStore,
        create_worker: Callable[[DesiredEndpoint], Worker],
        suspend_seconds: float = SUSPEND_SECONDS,
        now: Callable[[], float] = time.time,
    ) -> None:
        """`create_worker` creates the worker of an endpoint. It may raise `FAILURES` and PositionLostError.

        `now`: seconds since 1970.
        """
        self._endpoints, self._create_worker, self._now = endpoints, create_worker, now
        self._suspend_seconds = suspend_seconds
        self._running: dict[str, RunningEndpoint] = {}

    async def run(self, leaving: asyncio.Event) -> None:
        """Until `leaving` is set; then stop all workers."""
        try:
            while not leaving.is_set():
                await self.reconcile()
                try:
                    await asyncio.wait_for(leaving.wait(), RECONCILE_SECONDS)
                except TimeoutError:
                    continue
        finally:
            for running in self._running.values():
                running.stop()
            await asyncio.gather(*(running.task for running in self._running.values()), return_exceptions=True)

    async def reconcile(self) -> None:
        """Start new endpoints, stop removed or changed ones, suspend those that have failed for too long.

        Waits for no endpoint. While the stored endpoints cannot be read, everything continues.
        """
        self._forget_ended()
        try:
            known = await self._endpoints.desired()
            suspended = await self._report({each.endpoint.id: each for each in known})
        except DependencyUnavailableError as error:
            log.warning("webhooks.read_failed", error=error.message)
            return
        active = [each for each in known if not each.is_suspended and each.endpoint.id not in suspended]
        desired = {each.endpoint.id: each for each in active}
        for id_, running in self._running.items():
            if id_ not in desired or desired[id_].endpoint != running.endpoint:
                running.stop()
        for each in desired.values():
            await self._begin_or_skip(each)
        self._show(len(known) - len(desired))

    def _forget_ended(self) -> None:
        """A worker that failed starts again; any other error is a bug of this process, and raised."""
        for id_, running in list(self._running.items()):
            if running.task.done():
                del self._running[id_]
                error = running.task.exception()
                if isinstance(error, FAILURES):
                    log.warning("webhook.worker_failed", endpoint=id_, error=str(error))
                elif error is not None:
                    raise error

    async def _report(self, known: Mapping[str, DesiredEndpoint]) -> Collection[str]:
        """Store the state of each worker. Returns those that were suspended for it."""
        now = self._now()
        suspended: list[str] = []
        for id_, running in self._running.items():
            if running.is_ending or id_ not in known:
                continue
            if not known[id_].has_begun:
                await self._endpoints.mark_begun(running.endpoint)
            if (news := running.news(now)) is not None:
                await self._endpoints.save_state(running.endpoint, news)
            if running.is_beyond(now, self._suspend_seconds):
                await self._endpoints.suspend(running.endpoint)
                suspended.append(id_)
                log.warning("webhook.suspended", endpoint=id_)
        return suspended

    async def _begin_or_skip(self, desired: DesiredEndpoint) -> None:
        endpoint = desired.endpoint
        if (running := self._running.get(endpoint.id)) is not None:
            running.worker.skip(desired.skipped)
            return
        try:
            worker = await asyncio.to_thread(self._create_worker, desired)
        except PositionLostError as error:
            await self._suspend_lost(endpoint, error)
            return
        except FAILURES as error:
            log.warning("webhook.start_failed", endpoint=endpoint.id, error=str(error))
            return
        worker.skip(desired.skipped)
        task = asyncio.ensure_future(worker.run())
        self._running[endpoint.id] = RunningEndpoint(endpoint, worker, task, self._now(), desired.failing_since)

    async def _suspend_lost(self, endpoint: Endpoint, error: PositionLostError) -> None:
        """An operator must decide where it continues, so it is suspended like one that has failed for a day."""
        log.error("webhook.position_lost", endpoint=endpoint.id, error=error.message, do=error.do)
        try:
            await self._endpoints.suspend(endpoint)
        except DependencyUnavailableError as unavailable:  # tried again with the next round
            log.warning("webhooks.read_failed", error=unavailable.message)

    def _show(self, suspended: int) -> None:
        now = self._now()
        working = [each for each in self._running.values() if not each.is_ending]
        states = [each.worker.state(each.failing_since(now)) for each in working]
        counts = Counter(each.word for each in states)
        for word in get_args(WorkerStatus):
            ENDPOINTS.labels(word).set(counts[word])
        ENDPOINTS.labels("suspended").set(suspended)
        RECORDS.set(max((each.records for each in states), default=0))
        oldest = min((each.oldest_at.timestamp() for each in states if each.oldest_at), default=now)
        SECONDS.set(max(0.0, now - oldest))


def group(kafka: KafkaConnection, endpoint: Endpoint) -> dict[str, Any]:
    """The librdkafka settings of an endpoint's group. After ten seconds, others take over from a dead member."""
    return {
        **kafka.client(),
        "group.id": f"{GROUP}{endpoint.id}",
        "client.id": "galatea-dispatcher",
        "session.timeout.ms": 10_000,
        "queued.max.messages.kbytes": MEMORY_KB,
        "queued.min.messages": 1000,
        "fetch.message.max.bytes": MEMORY_KB * 1024,
        "fetch.max.bytes": MEMORY_KB * 1024,
    }
