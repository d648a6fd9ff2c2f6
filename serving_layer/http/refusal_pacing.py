"""Refusals are sent at a bounded rate to each network, so that a flood of wrong keys does not occupy the process.

A client waits for its answer before it asks again on a connection. So whoever is refused slowly also asks slowly, and
the process has the rest of its time for others. Whatever is not refused is never delayed, nor is it delayed because of
others at the same address.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from http import HTTPStatus

from cachetools import LRUCache
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from serving_layer.keys.throttle import MAX_COUNTED, network_of

PACED = frozenset(
    {
        HTTPStatus.UNAUTHORIZED,
        HTTPStatus.FORBIDDEN,
        HTTPStatus.MISDIRECTED_REQUEST,
        HTTPStatus.TOO_MANY_REQUESTS,
    }
)
"""Statuses of refusals that depend on who asks, and for what name."""
PER_SECOND, AT_ONCE = 20, 100
"""Refusals to one network: so many a second, and so many without a delay after a pause."""
MOST_SECONDS = 10.0
"""No refusal is delayed longer."""
MOST_WAITING = 2_000
"""Refusals of all networks that are delayed at once. Further ones are sent without a delay."""


class RefusalPace:
    """When the next refusal to each network is due. Its memory is bounded: it forgets who was refused longest ago."""

    def __init__(self, clock: Callable[[], float]) -> None:
        """`clock`: monotonic seconds."""
        self._clock = clock
        self._due: LRUCache[str, float] = LRUCache(MAX_COUNTED)

    def seconds_to_wait(self, network: str) -> float:
        """Count a refusal, and return in how many seconds it may be sent."""
        now = self._clock()
        due = max(self._due.get(network, now), now)
        wait = min(max(0.0, due - now - AT_ONCE / PER_SECOND), MOST_SECONDS)
        if wait < MOST_SECONDS:
            self._due[network] = due + 1 / PER_SECOND
        return wait


class RefusalPacing:
    """Middleware that delays refusals. Outside of all that counts or measures requests: a delayed one does no work."""

    def __init__(
        self,
        app: ASGIApp,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """`app`: the inner application. `clock`: monotonic seconds. `sleep`: waits so many."""
        self._app, self._pace, self._sleep, self._waiting = app, RefusalPace(clock), sleep, 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, and delay its response if that refuses it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_when_due(message: Message) -> None:
            if message["type"] == "http.response.start" and message["status"] in PACED and scope.get("client"):
                await self._wait(scope["client"][0])
            await send(message)

        await self._app(scope, receive, send_when_due)

    async def _wait(self, address: str) -> None:
        seconds = self._pace.seconds_to_wait(network_of(address))
        if not seconds or self._waiting >= MOST_WAITING:
            return
        self._waiting += 1
        try:
            await self._sleep(seconds)
        finally:
            self._waiting -= 1
