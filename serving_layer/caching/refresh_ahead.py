"""A value of a moment ago: many questions a second rest on few reads of it.

Whoever asks gets what was read at most so many seconds before. While it is asked for it is read ahead, so that hardly
anybody waits. Whoever must know what is so from now on asks `at_once`.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

from serving_layer.caching.single_flight import SharedRead

Value = TypeVar("Value")


class Recent(Generic[Value]):
    """Belongs to one event loop."""

    def __init__(self, start: Callable[[], Awaitable[Value]], seconds: float, clock: Callable[[], float]) -> None:
        """`start` reads. `seconds`: how old the value may be; 0: every question has a read that begins after it."""
        self._start, self._seconds, self._clock = start, seconds, clock
        self._shared: SharedRead[Value] = SharedRead()
        self._kept: tuple[float, Value] | None = None
        self._forgotten = 0
        self._ahead: asyncio.Task[Value] | None = None

    async def read(self, *, at_once: bool = False) -> Value:
        """The value, or what its read raises."""
        if self._kept is None or at_once or not self._seconds:
            return await self._newest()
        began, value = self._kept
        age = self._clock() - began
        if age > self._seconds:
            return await self._newest()
        if age > self._seconds / 2 and (self._ahead is None or self._ahead.done()):
            self._ahead = asyncio.ensure_future(self._newest())
            self._ahead.add_done_callback(_look_at)
        return value

    def forget(self) -> None:
        """Whoever asks next is told what is so from now on."""
        self._kept = None
        self._forgotten += 1  # what is being read just now may be of before

    async def _newest(self) -> Value:
        return await self._shared.read(None, self._read)

    async def _read(self) -> Value:
        began, forgotten = self._clock(), self._forgotten
        value = await self._start()
        if forgotten == self._forgotten:
            self._kept = began, value
        return value


def _look_at(task: asyncio.Task[Value]) -> None:
    """Whoever asks once the value is too old reads it again, and is told what that raises."""
    if not task.cancelled():
        task.exception()
