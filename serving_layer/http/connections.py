"""All connections of a process, checked once a second; those that exceed their limits are closed."""

import asyncio
from collections import OrderedDict
from dataclasses import dataclass
from typing import Protocol

from prometheus_client import Counter


@dataclass(frozen=True)
class ConnectionLimits:
    """Bytes, seconds and numbers, of one process.

    `header_bytes`: of target and header fields together. `receive_seconds`: until a request is there as a whole.
    `idle_seconds`: between two requests, and for how long a client may take nothing of its answer; a system takes
    megabytes on its behalf, so that nothing moves for a while even with one that reads. `unsent_bytes`: of answers
    that wait for their clients, all together.
    """

    header_bytes: int = 16_384
    header_fields: int = 100
    receive_seconds: float = 10.0
    idle_seconds: float = 30.0
    connections: int = 4_096
    unsent_bytes: int = 128_000_000


LOOK_SECONDS = 1.0
LOOK_AT_ONCE = 50
"""Then requests have a turn: thousands may be due at the same moment, and each gets its refusal."""
ENDED = Counter("galatea_connections_ended", "Connections that the process ended, by why.", ("why",))


class ManagedConnection(Protocol):
    """A connection."""

    def look(self, now: float) -> int:
        """End it if it waits too long. `now`: seconds of the event loop's clock. Bytes its client has yet to take."""

    def end(self, why: str) -> None:
        """Let it go at once, with whatever has not been sent."""


class Connections:
    """One per process and event loop."""

    def __init__(self, limits: ConnectionLimits) -> None:
        """`limits`: of each and of all."""
        self.limits = limits
        self._open: set[ManagedConnection] = set()
        self._waiting: OrderedDict[ManagedConnection, None] = OrderedDict()  # for a request, the longest first

    def __len__(self) -> int:
        """How many there are."""
        return len(self._open)

    def enter(self, connection: ManagedConnection) -> None:
        """A new one. Where that is one too many, the one that waits longest for a request makes room; or itself."""
        self._open.add(connection)
        self.wait(connection)
        if len(self._open) > self.limits.connections:
            longest = next(iter(self._waiting))
            longest.end("too_many")

    def leave(self, connection: ManagedConnection) -> None:
        """It has ended."""
        self._open.discard(connection)
        self._waiting.pop(connection, None)

    def wait(self, connection: ManagedConnection) -> None:
        """It waits for a request from now on."""
        self._waiting[connection] = None
        self._waiting.move_to_end(connection)

    def work(self, connection: ManagedConnection) -> None:
        """A request of it is there."""
        self._waiting.pop(connection, None)

    async def look(self, now: float) -> None:
        """Look at all of them."""
        unsent = {}
        for number, connection in enumerate(list(self._open)):
            if number % LOOK_AT_ONCE == 0:
                await asyncio.sleep(0)
            if connection in self._open and (size := connection.look(now)):
                unsent[connection] = size
        total = sum(unsent.values())
        for connection in sorted(unsent, key=unsent.__getitem__, reverse=True):
            if total <= self.limits.unsent_bytes:
                break
            total -= unsent[connection]
            connection.end("not_read")

    async def look_for_ever(self) -> None:
        """A task of the process."""
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            await self.look(loop.time())
