"""A semaphore that is fair between names, such as tenants and keys: no name keeps the others waiting."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Hashable
from contextlib import asynccontextmanager
from weakref import WeakValueDictionary

from serving_layer.errors import TooBusyError


class FairSemaphore:
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
    async def hold(self, name: Hashable) -> AsyncIterator[None]:
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
        self._held -= Counter([name])  # forgets names that hold none
        while self._waiting:
            waiting = min(self._waiting, key=lambda each: self._held[each[0]])
            self._waiting.remove(waiting)
            if not waiting[1].cancelled():
                self._held[waiting[0]] += 1
                waiting[1].set_result(None)
                return
        self._free += 1


class BoundedFairSemaphore:
    """A fair semaphore for which only so many of one name may wait."""

    def __init__(self, semaphore: FairSemaphore, most: int, what: str) -> None:
        """`semaphore`: waited for. `most`: of one name, in progress or waiting. `what`: how errors call them."""
        self._semaphore, self._most, self._what = semaphore, most, what
        self._held_or_waiting: Counter[Hashable] = Counter()

    @asynccontextmanager
    async def hold(self, name: Hashable) -> AsyncIterator[None]:
        """Hold a place while inside, once there is one. TooBusyError if too many of this name wait."""
        if self._held_or_waiting[name] >= self._most:
            message = f"{self._most} {self._what} are in progress or waiting."
            raise TooBusyError(message, do="Send fewer requests at once, or try again in a few seconds.")
        self._held_or_waiting[name] += 1
        try:
            async with self._semaphore.hold(name):
                yield
        finally:
            self._held_or_waiting -= Counter([name])  # forgets names that hold none and wait for none


class OneAtATime:
    """One task of a name at a time, so that what it counts is still so when it writes. Belongs to one event loop."""

    def __init__(self) -> None:
        """Nothing is held yet."""
        self._locks: WeakValueDictionary[Hashable, asyncio.Lock] = WeakValueDictionary()

    @asynccontextmanager
    async def hold(self, name: Hashable) -> AsyncIterator[None]:
        """Be that task while inside."""
        async with self._locks.setdefault(name, asyncio.Lock()):
            yield
