"""All connections of a process, checked once a second; those that exceed their limits are closed."""

import asyncio
from collections import OrderedDict
from dataclasses import dataclass
from typing import Protocol

from prometheus_client import Counter


@dataclass(frozen=True)
class ConnectionLimits:
    """Limits of one process.

    Args:
        header_bytes: request target and header fields together.
        header_fields: number of header fields.
        receive_seconds: until a request has arrived completely.
        idle_seconds: between two requests, and without the client reading any of its response. The kernel buffers
            megabytes for it, so nothing moves for a while even if the client reads.
        connections: open at the same time.
        unsent_bytes: response bytes of all connections that wait for their clients.
    """

    header_bytes: int = 16_384
    header_fields: int = 100
    receive_seconds: float = 10.0
    idle_seconds: float = 30.0
    connections: int = 4_096
    unsent_bytes: int = 128_000_000


CHECK_SECONDS = 1.0
CHECK_BATCH = 50
"""After so many checks, requests get a turn: thousands of connections may be due at once."""
CLOSED = Counter("galatea_connections_ended", "Connections that the process closed, by reason.", ("why",))


class ManagedConnection(Protocol):
    """What `Connections` needs of a connection."""

    def check(self, now: float) -> int:
        """Close the connection if it exceeds a limit; otherwise return the bytes that its client has yet to read.

        `now`: seconds on the clock of the event loop.
        """

    def close(self, why: str) -> None:
        """Close it at once and discard what has not been sent."""


class Connections:
    """The open connections. One per process and event loop."""

    def __init__(self, limits: ConnectionLimits) -> None:
        """`limits`: of each connection and of all together."""
        self.limits = limits
        self._open: set[ManagedConnection] = set()
        self._waiting: OrderedDict[ManagedConnection, None] = OrderedDict()  # for a request, longest first

    def __len__(self) -> int:
        """How many are open."""
        return len(self._open)

    def enter(self, connection: ManagedConnection) -> None:
        """Add a connection. If that is one too many, close the one that has waited longest for a request."""
        self._open.add(connection)
        self.wait(connection)
        if len(self._open) > self.limits.connections:
            longest, _ = self._waiting.popitem(last=False)
            self._open.discard(longest)  # its end may take a while
            longest.close("too_many")

    def leave(self, connection: ManagedConnection) -> None:
        """Remove a connection that has ended."""
        self._open.discard(connection)
        self._waiting.pop(connection, None)

    def wait(self, connection: ManagedConnection) -> None:
        """The connection waits for a request from now on."""
        self._waiting[connection] = None
        self._waiting.move_to_end(connection)

    def work(self, connection: ManagedConnection) -> None:
        """A request of the connection has arrived."""
        self._waiting.pop(connection, None)

    async def check(self, now: float) -> None:
        """Check all connections against their limits."""
        unsent = {}
        for number, connection in enumerate(list(self._open)):
            if number % CHECK_BATCH == 0:
                await asyncio.sleep(0)
            if connection in self._open and (size := connection.check(now)):
                unsent[connection] = size
        total = sum(unsent.values())
        for connection in sorted(unsent, key=unsent.__getitem__, reverse=True):
            if total <= self.limits.unsent_bytes:
                break
            total -= unsent[connection]
            connection.close("not_read")

    async def check_forever(self) -> None:
        """Check all connections every `CHECK_SECONDS`, until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(CHECK_SECONDS)
            await self.check(loop.time())
