"""The limits of what is served. What exceeds one is rejected with an error that names it, or waits its turn."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Hashable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from weakref import WeakValueDictionary

from serving_layer.errors import TooBusyError

INGEST_BYTES_PER_MINUTE = 120_000_000
"""Of events of one key, decompressed."""


@dataclass(frozen=True)
class Limits:
    """Limits of one process. The parser has those of a single event, over REST and Kafka alike.

    `compression_ratio`: of a compressed body, unless it fits into `body_bytes` after decompression.
    `ingest_oldest_days`: how long before its receipt an event may have happened.
    `request_bytes`: of a body without events. `bodies_bytes`: of all bodies that are being received or processed.
    """

    body_bytes: int = 1_000_000
    decompressed_bytes: int = 4_000_000
    compression_ratio: int = 20
    request_events: int = 1_000
    ingest_oldest_days: int = 3_660
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

    A name is a tenant, a key or a network. A free place goes to the waiting name that holds the fewest places, and of
    several to the one that has waited longest: however many others wait, a name that holds none is next. Nobody takes a
    place of all while they wait for one of their own name. Belongs to one event loop.
    """

    def __init__(self, most: int, most_of_name: int) -> None:
        """`most`: at once. `most_of_name`: of one name; fewer than `most`, so that another name finds a place."""
        self._free, self._most_of_name = most, most_of_name
        self._own: WeakValueDictionary[Hashable, asyncio.Semaphore] = WeakValueDictionary()
        self._held: Counter[Hashable] = Counter()
        self._waiting: list[tuple[Hashable, asyncio.Future[None]]] = []

    def __len__(self) -> int:
        """How many names hold a place or wait for one."""
        return len(self._own)

    @asynccontextmanager
    async def of(self, name: Hashable) -> AsyncIterator[None]:
        """Hold a place while inside, once there is one."""
        async with self._own.setdefault(name, asyncio.Semaphore(self._most_of_name)):
            await self._take(name)
            try:
                yield
            finally:
                self._give_back(name)

    async def _take(self, name: Hashable) -> None:
        if self._free:  # so nobody waits
            self._free -= 1
            self._held[name] += 1
            return
        waiting = name, asyncio.get_running_loop().create_future()
        self._waiting.append(waiting)
        try:
            await waiting[1]
        except asyncio.CancelledError:
            if waiting in self._waiting:
                self._waiting.remove(waiting)
            elif not waiting[1].cancelled():  # it was given a place at the same moment
                self._give_back(name)
            raise

    def _give_back(self, name: Hashable) -> None:
        self._held -= Counter([name])  # forgets who holds none
        while self._waiting:
            waiting = min(self._waiting, key=lambda each: self._held[each[0]])
            self._waiting.remove(waiting)
            if not waiting[1].cancelled():
                self._held[waiting[0]] += 1
                waiting[1].set_result(None)
                return
        self._free += 1


class BoundedTurns:
    """Turns for which only so many of one name may wait."""

    def __init__(self, turns: Turns, most_asked: int, what: str) -> None:
        """`turns`: waited for. `most_asked`: of one name, in progress or waiting. `what`: how errors call them."""
        self._turns, self._most_asked, self._what = turns, most_asked, what
        self._asked: Counter[Hashable] = Counter()

    @asynccontextmanager
    async def of(self, name: Hashable) -> AsyncIterator[None]:
        """Hold a place while inside, once there is one. TooBusyError if too many of this name wait."""
        if self._asked[name] >= self._most_asked:
            message = f"{self._most_asked} {self._what} are in progress or waiting."
            raise TooBusyError(message, do="Ask for less at once, or again in a few seconds.")
        self._asked[name] += 1
        try:
            async with self._turns.of(name):
                yield
        finally:
            self._asked -= Counter([name])  # forgets who asks for none
