"""All endpoints: a consumer group for each, so that one that is down holds up nobody else.

An endpoint that has failed for a day is suspended: its group stands still, and what it missed is kept as long as
the topic keeps it.
"""

import asyncio
import time
from collections.abc import Callable, Collection, Mapping
from typing import Any

import structlog
from confluent_kafka import KafkaException
from prometheus_client import Gauge

from master_dataset.errors import DependencyUnavailableError
from master_dataset.webhooks.endpoint import Endpoint
from speed_layer.webhooks.endpoint_worker import DesiredEndpoint, EndpointStore, RunningEndpoint, Worker
from speed_layer.webhooks.start_position import PositionLostError

log = structlog.get_logger()
LOOK_SECONDS = 2.0
SUSPEND_SECONDS = 24 * 3600.0
GROUP = "galatea.webhook."
FAILURES = (DependencyUnavailableError, KafkaException, OSError)
"""What may end a group and be over a moment later. All else ends the process."""
ENDPOINTS = Gauge("galatea_webhook_endpoints", "Endpoints of webhooks, by how they are doing.", ("state",))
RECORDS = Gauge("galatea_webhook_lag_records", "Records left to read or deliver, of the endpoint with most of them.")
SECONDS = Gauge("galatea_webhook_lag_seconds", "For how long the oldest alert has been waiting for its endpoint.")
MEMORY_KB = 1024
"""Of a group, what is read ahead, in KB; beside it at most 1,500 records wait for their calls."""


class Dispatcher:
    """Belongs to one event loop."""

    def __init__(
        self,
        endpoints: EndpointStore,
        telling: Callable[[DesiredEndpoint], Worker],
        suspend_seconds: float = SUSPEND_SECONDS,
        now: Callable[[], float] = time.time,
    ) -> None:
        """`telling` makes what calls an endpoint. It may raise what the broker says, and PlaceLost.

        `now`: seconds since 1970.
        """
        self._endpoints, self._telling, self._now = endpoints, telling, now
        self._suspend_seconds = suspend_seconds
        self._running: dict[str, RunningEndpoint] = {}

    async def run(self, leaving: asyncio.Event) -> None:
        """Until told to leave; what is under way is ended first."""
        try:
            while not leaving.is_set():
                await self.look()
                try:
                    await asyncio.wait_for(leaving.wait(), LOOK_SECONDS)
                except TimeoutError:
                    continue
        finally:
            for running in self._running.values():
                running.stop()
            await asyncio.gather(*(running.task for running in self._running.values()), return_exceptions=True)

    async def look(self) -> None:
        """Begin what is new, end what is gone or another one, suspend what has failed for too long.

        Waits for no endpoint. While it is not known what is wanted all goes on as it was.
        """
        self._forget_ended()
        try:
            known = await self._endpoints.wanted()
            suspended = await self._judge({each.endpoint.id: each for each in known})
        except DependencyUnavailableError as error:
            log.warning("webhooks.not_known", why=error.message)
            return
        active = [each for each in known if not each.is_suspended and each.endpoint.id not in suspended]
        wanted = {each.endpoint.id: each for each in active}
        for id_, running in self._running.items():
            if id_ not in wanted or wanted[id_].endpoint != running.endpoint:
                running.stop()
        for each in wanted.values():
            await self._begin_or_skip(each)
        self._show(len(known) - len(wanted))

    def _forget_ended(self) -> None:
        """One that was ended by a failure begins again; another error is this process's own, and raised."""
        for id_, running in list(self._running.items()):
            if running.task.done():
                del self._running[id_]
                error = running.task.exception()
                if isinstance(error, FAILURES):
                    log.warning("webhook.ended", endpoint=id_, why=str(error))
                elif error is not None:
                    raise error

    async def _judge(self, known: Mapping[str, DesiredEndpoint]) -> Collection[str]:
        """Say how each is doing. Those that are suspended by it."""
        now = self._now()
        suspended: list[str] = []
        for id_, running in self._running.items():
            if running.is_ending or id_ not in known:
                continue
            if not known[id_].has_begun:
                await self._endpoints.begun(running.endpoint)
            if (news := running.news(now)) is not None:
                await self._endpoints.see(running.endpoint, news)
            if running.is_beyond(now, self._suspend_seconds):
                await self._endpoints.suspend(running.endpoint)
                suspended.append(id_)
                log.warning("webhook.suspended", endpoint=id_)
        return suspended

    async def _begin_or_skip(self, wanted: DesiredEndpoint) -> None:
        endpoint = wanted.endpoint
        if (running := self._running.get(endpoint.id)) is not None:
            running.telling.skip(wanted.skipped)
            return
        try:
            telling = await asyncio.to_thread(self._telling, wanted)
        except PositionLostError as error:
            await self._suspend_lost(endpoint, error)
            return
        except FAILURES as error:
            log.warning("webhook.not_begun", endpoint=endpoint.id, why=str(error))
            return
        telling.skip(wanted.skipped)
        task = asyncio.ensure_future(telling.run())
        self._running[endpoint.id] = RunningEndpoint(endpoint, telling, task, self._now(), wanted.failing_since)

    async def _suspend_lost(self, endpoint: Endpoint, error: PositionLostError) -> None:
        """Somebody has to decide, so it waits for them as one that has failed for a day does."""
        log.error("webhook.place_lost", endpoint=endpoint.id, why=error.message, do=error.do)
        try:
            await self._endpoints.suspend(endpoint)
        except DependencyUnavailableError as away:  # it is tried again with the next look
            log.warning("webhooks.not_known", why=away.message)

    def _show(self, suspended: int) -> None:
        now = self._now()
        working = [each for each in self._running.values() if not each.is_ending]
        retrying = sum(each.failing_since(now) is not None for each in working)
        for state, number in (("ok", len(working) - retrying), ("retrying", retrying), ("suspended", suspended)):
            ENDPOINTS.labels(state).set(number)
        states = [each.telling.state(None) for each in working]
        RECORDS.set(max((each.records for each in states), default=0))
        oldest = min((each.oldest_at.timestamp() for each in states if each.oldest_at), default=now)
        SECONDS.set(max(0.0, now - oldest))


def group(bootstrap: str, endpoint: Endpoint) -> dict[str, Any]:
    """Settings of librdkafka for an endpoint's group. A dead member is missed for ten seconds, then others go on."""
    return {
        "bootstrap.servers": bootstrap,
        "group.id": f"{GROUP}{endpoint.id}",
        "client.id": "galatea-dispatcher",
        "session.timeout.ms": 10_000,
        "queued.max.messages.kbytes": MEMORY_KB,
        "queued.min.messages": 1000,
        "fetch.message.max.bytes": MEMORY_KB * 1024,
        "fetch.max.bytes": MEMORY_KB * 1024,
    }
