"""The records of one key, one after the other, in batches that follow the pace of whoever takes them."""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress

from master_dataset.consuming import backoff
from master_dataset.consuming.record import Record
from master_dataset.consuming.taker import Taker
from master_dataset.consuming.verdict import Again, Refused

QUICK_SECONDS = 0.5
"""Whoever takes a batch within this gets a larger one; who takes longer, a smaller one."""


class Lane:
    """Works while it has records. It takes what is there: no record waits for others to make a batch full."""

    def __init__(self, taker: Taker, most: int, longest_wait: float) -> None:
        """`most`: records of one call. `longest_wait`: seconds between two tries, at most."""
        self._taker, self._most, self._longest_wait = taker, most, longest_wait
        self.waiting: deque[Record] = deque()
        self.failing_since: float | None = None
        self._size, self._one_by_one = 1, 0
        self._ended = asyncio.Event()

    def end(self) -> None:
        """What is under way is ended, and nothing more is begun; no next try is waited for."""
        self._ended.set()

    async def work(self, places: asyncio.Semaphore, done: Callable[[Record], None]) -> None:
        """Until nothing waits. `places`: how many calls may be under way at once. `done` is told of each record."""
        tries = 0
        while self.waiting and not self._ended.is_set():
            batch = self._batch()
            async with places:
                began = time.monotonic()
                verdict = await self._taker.take(batch)
                took = time.monotonic() - began
            if isinstance(verdict, Again):
                self._size = max(1, self._size // 2)
                self.failing_since = self.failing_since or time.time()
                await self._pause(backoff.seconds(tries, self._longest_wait, verdict.after))
                tries += 1
                continue
            tries, self.failing_since = 0, None
            if isinstance(verdict, Refused) and len(batch) > 1:
                self._one_by_one = len(batch)  # one of them is to blame
                continue
            if isinstance(verdict, Refused):
                await self._taker.put_aside(batch[0], verdict)
            self._leave(batch, done, took)

    async def _pause(self, seconds: float) -> None:
        with suppress(TimeoutError):
            await asyncio.wait_for(self._ended.wait(), seconds)

    def _batch(self) -> list[Record]:
        size = 1 if self._one_by_one else min(self._size, len(self.waiting))
        return [self.waiting[at] for at in range(size)]

    def _leave(self, batch: Sequence[Record], done: Callable[[Record], None], took: float) -> None:
        for record in batch:
            self.waiting.popleft()
            done(record)
        if self._one_by_one:
            self._one_by_one -= 1
        else:
            self._size = min(self._most, self._size * 2) if took < QUICK_SECONDS else max(1, self._size // 2)
