"""Bodies of answers, kept while everything that they rest on stands still, and made once for all who ask meanwhile."""

import asyncio
from collections.abc import Awaitable, Callable, Hashable

from serving_layer.caching.lru import Lru


class Remembered:
    """Belongs to one event loop."""

    def __init__(self, most_bytes: int) -> None:
        """`most_bytes`: of the bodies that are kept; those that were asked for longest ago go first."""
        self._bodies: Lru[bytes] = Lru(most_bytes)
        self._making: dict[Hashable, asyncio.Task[bytes]] = {}

    async def body(self, key: Hashable, make: Callable[[], Awaitable[bytes]]) -> bytes:
        """The body of a key, which names the question, whose it is, and the moment. What `make` raises, all are told.

        Whoever comes while it is made may join: it is made of what was read after that very moment.
        """
        body = self._bodies.get(key)
        if body is not None:
            return body
        task = self._making.get(key)
        if task is None:
            task = self._making[key] = asyncio.ensure_future(self._made(key, make))
        return await asyncio.shield(task)  # a caller that gives up must not end the making for the others

    async def _made(self, key: Hashable, make: Callable[[], Awaitable[bytes]]) -> bytes:
        try:
            body = await make()
        finally:
            del self._making[key]
        self._bodies.put(key, body, len(body))
        return body
