"""The limits of what is served. What exceeds one is rejected with an error that names it, or waits its turn."""

import asyncio
from collections.abc import AsyncIterator, Hashable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from weakref import WeakValueDictionary


@dataclass(frozen=True)
class Limits:
    """Limits of one process. The parser has those of a single event, over REST and Kafka alike.

    `compression_ratio`: of a compressed body, unless it fits into `body_bytes` after decompression.
    `request_bytes`: of a body without events. `bodies_bytes`: of all bodies that are being received or processed.
    """

    body_bytes: int = 1_000_000
    decompressed_bytes: int = 4_000_000
    compression_ratio: int = 20
    request_events: int = 1_000
    request_bytes: int = 65_536
    receive_seconds: float = 10.0
    bodies_bytes: int = 64_000_000
    requests_in_flight: int = 256
    ingests_in_flight: int = 64
    requests_per_key: int = 8
    live_followers: int = 2_000
    live_followers_per_key: int = 100


@dataclass(frozen=True)
class Ranges:
    """The longest range of a query in days: with a grain of 15 minutes or an hour, and with any other grain."""

    fine_days: int = 400
    coarse_days: int = 3660


LIMITS = Limits()
RANGES = Ranges()
"""The defaults."""


class Turns:
    """How much runs at once, in all and of one name, so that no name keeps the others waiting.

    A name is a tenant, a key or a network. Nobody takes a place of all while they wait for one of their own name.
    Places are taken in the order of arrival. Belongs to one event loop.
    """

    def __init__(self, most: int, most_of_name: int) -> None:
        """`most`: at once. `most_of_name`: of one name; fewer than `most`, so that another name finds a place."""
        self._all, self._most_of_name = asyncio.Semaphore(most), most_of_name
        self._own: WeakValueDictionary[Hashable, asyncio.Semaphore] = WeakValueDictionary()

    def __len__(self) -> int:
        """How many names hold a place or wait for one."""
        return len(self._own)

    @asynccontextmanager
    async def of(self, name: Hashable) -> AsyncIterator[None]:
        """Hold a place while inside, once there is one."""
        own = self._own.setdefault(name, asyncio.Semaphore(self._most_of_name))
        async with own, self._all:
            yield
