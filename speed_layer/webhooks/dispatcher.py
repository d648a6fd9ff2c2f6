"""All endpoints: a consumer group for each, so that one that is down holds up nobody else.

An endpoint that has failed for a day is suspended: its group stands still, and what it missed is kept as long as
the topic keeps it.
"""

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import structlog

from master_dataset.consuming import Consuming
from master_dataset.endpoint import Endpoint

log = structlog.get_logger()
LOOK_SECONDS = 2.0
SUSPEND_SECONDS = 24 * 3600.0
GROUP = "galatea.webhook."


class Endpoints(Protocol):
    """The endpoints that are to be told."""

    async def active(self) -> Sequence[Endpoint]:
        """Neither removed nor suspended."""

    async def suspend(self, endpoint: Endpoint, since: float) -> None:
        """It has failed since then, in seconds since 1970."""

    async def see(self, endpoint: Endpoint, failing_since: float | None, waiting: int) -> None:
        """How it is doing. `waiting`: records that were read and not delivered yet."""


class Running(NamedTuple):
    """One endpoint at work."""

    endpoint: Endpoint
    consuming: Consuming
    task: asyncio.Task[None]


class Dispatcher:
    """Belongs to one event loop."""

    def __init__(
        self, endpoints: Endpoints, consuming: Callable[[Endpoint], Consuming], now: Callable[[], float] = time.time
    ) -> None:
        """`consuming` makes the group of an endpoint; it may raise what the broker says."""
        self._endpoints, self._consuming, self._now = endpoints, consuming, now
        self._running: dict[str, Running] = {}

    async def run(self, leaving: asyncio.Event) -> None:
        """Until told to leave; what is under way is ended first. Raises what an endpoint's group raises."""
        try:
            while not leaving.is_set():
                await self.look()
                try:
                    await asyncio.wait_for(leaving.wait(), LOOK_SECONDS)
                except TimeoutError:
                    continue
        finally:
            await self._stop(list(self._running.values()))

    async def look(self) -> None:
        """Begin what is new, end what is gone or another one, suspend what has failed for too long."""
        for running in self._running.values():
            if running.task.done():
                running.task.result()
        wanted = {endpoint.id: endpoint for endpoint in await self._endpoints.active()}
        for running in list(self._running.values()):
            since = running.consuming.failing_since
            if since is not None and self._now() - since > SUSPEND_SECONDS:
                await self._endpoints.suspend(running.endpoint, since)
                wanted.pop(running.endpoint.id, None)
                log.warning("webhook.suspended", endpoint=running.endpoint.id)
            else:
                await self._endpoints.see(running.endpoint, since, running.consuming.waiting)
        await self._stop([each for id_, each in self._running.items() if wanted.get(id_) != each.endpoint])
        for endpoint in wanted.values():
            if endpoint.id not in self._running:
                consuming = await asyncio.to_thread(self._consuming, endpoint)
                task = asyncio.ensure_future(consuming.run())
                self._running[endpoint.id] = Running(endpoint, consuming, task)

    def states(self) -> dict[str, float | None]:
        """Endpoint to since when it fails, None if it does not."""
        return {id_: running.consuming.failing_since for id_, running in self._running.items()}

    async def _stop(self, ending: Sequence[Running]) -> None:
        for running in ending:
            running.consuming.stop()
        for running in ending:
            await running.task
            del self._running[running.endpoint.id]


def group(bootstrap: str, endpoint: Endpoint) -> dict[str, Any]:
    """Settings of librdkafka for an endpoint's group."""
    return {"bootstrap.servers": bootstrap, "group.id": f"{GROUP}{endpoint.id}", "client.id": "galatea-dispatcher"}
