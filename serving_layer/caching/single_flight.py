"""Many requests, one read: requests that arrive together share a read that began after all of them arrived.

Joining a read already under way would answer from before the question was asked, so a request waits for the next one.
Nothing is kept after the read: this is no cache.
"""

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

Value = TypeVar("Value")


class SharedRead(Generic[Value]):
    """At most one read of a key runs and at most one waits, however many requests ask."""

    def __init__(self) -> None:
        """Belongs to one event loop."""
        self._running: dict[Hashable, asyncio.Task[Value]] = {}
        self._next: dict[Hashable, asyncio.Task[Value]] = {}

    async def read(self, key: Hashable, start: Callable[[], Awaitable[Value]]) -> Value:
        """The value of a read that begins no earlier than this call. What it raises, every sharer raises."""
        running = self._running.get(key)
        if running is None or running.done():
            task = self._running[key] = asyncio.ensure_future(self._run(key, start, None))
        elif (waiting := self._next.get(key)) is not None:
            task = waiting
        else:
            task = self._next[key] = asyncio.ensure_future(self._run(key, start, running))
        return await asyncio.shield(task)  # a caller that gives up must not end the read of the others

    async def _run(
        self, key: Hashable, start: Callable[[], Awaitable[Value]], before: asyncio.Task[Value] | None
    ) -> Value:
        own = asyncio.current_task()
        if before is not None:
            await asyncio.wait([before])
            self._running[key] = self._next.pop(key)
        try:
            return await start()
        finally:
            if self._running.get(key) is own:
                del self._running[key]
