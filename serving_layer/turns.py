"""Turns: how much runs at once, in all and of one name, so that no name keeps the others waiting.

A name is a tenant, a key or a network. Nobody takes a place of all while they wait for one of their own name.
"""

import asyncio
from collections.abc import AsyncIterator, Hashable
from contextlib import asynccontextmanager
from weakref import WeakValueDictionary


class Turns:
    """Places that are taken in the order of arrival. Belongs to one event loop."""

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
