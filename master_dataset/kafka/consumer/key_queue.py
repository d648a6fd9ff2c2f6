"""The records of one key, handed to the handler in order, in batches that adapt to how fast it is."""

import asyncio
import random
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import islice

from master_dataset.kafka.consumer.handler import BlockedKey, Done, Handler, HandlerResult, Reject, Retry
from master_dataset.kafka.record import ConsumerRecord

FAST_SECONDS = 0.5
"""A call that takes less doubles the batch size; one that takes longer halves it."""
STALLED_SECONDS = 2.0
"""A key without progress for this long gives up its share of the memory to others."""
ATTEMPTS_BEFORE_SPLIT = 10
"""Attempts with a batch that may be too large before its records are passed one by one."""
FIRST_BACKOFF_SECONDS = 0.25
MAX_REQUESTED_SECONDS = 3600.0
"""Longest wait that a receiver can ask for (`Retry.after`)."""
_MAX_DOUBLINGS = 20
_RANDOM = random.SystemRandom()


class KeyQueue:
    """Passes the records of one key to a handler, one call at a time.

    A batch consists of the waiting records, up to the current batch size: no record waits for a batch to fill up.
    `Done` removes the batch. `Retry` passes exactly the same batch again after a backoff, so that a handler whose
    response was lost can recognize it. `Reject` says that one record of the batch is to blame: they are passed one by
    one, and the handler stores the one that is rejected on its own.
    """

    def __init__(
        self, handler: Handler, max_batch: int, longest_wait: float, failed_since: float | None = None
    ) -> None:
        """`longest_wait`: seconds between two attempts, at most.

        `failed_since`: when this key began to fail, if its partition has been revoked and assigned again.
        """
        self._handler, self._longest_wait = handler, longest_wait
        self.waiting: deque[ConsumerRecord] = deque()
        self._batch_size = BatchSize(max_batch)
        self._in_flight = 0  # records of the current call, or of the batch that is retried
        self._attempts = 0
        self.failing_since: float | None = None  # seconds since 1970
        self._failed_since = failed_since
        self._why = ""
        self._no_progress_since: float | None = None  # monotonic clock
        self._is_stopped, self._awake = False, asyncio.Event()

    async def run(self, calls: asyncio.Semaphore, on_done: Callable[[ConsumerRecord], None]) -> None:
        """Pass records to the handler until none is waiting or the queue is stopped.

        Args:
            calls: Bounds the concurrent calls, over all keys.
            on_done: Called for each record that is done, in order.
        """
        while self.waiting and not self._is_stopped:
            self._awake.clear()  # before the call: a wake-up during it must end the backoff that follows
            batch = list(islice(self.waiting, self._batch_size.next(len(self.waiting))))
            self._in_flight = len(batch)
            async with calls:
                if self._is_stopped:  # while it waited for its turn
                    return
                began = time.monotonic()
                self._no_progress_since = self._no_progress_since or began
                result = await self._handle(batch)
                took = time.monotonic() - began
            match result:
                case Retry():
                    await self._back_off(result, len(batch))
                case Reject():
                    self._reset_failures()
                    self._batch_size.split(len(batch))
                case Done():
                    self._reset_failures()
                    for record in batch:
                        self.waiting.popleft()
                        on_done(record)
                    self._batch_size.done(took)

    async def _handle(self, batch: Sequence[ConsumerRecord]) -> HandlerResult:
        """A record that is rejected on its own is stored, and then done."""
        result = await self._handler.handle(batch)
        if isinstance(result, Reject) and len(batch) == 1:
            return await self._handler.store_rejected(batch[0], result)
        return result

    async def _back_off(self, retry: Retry, size: int) -> None:
        if self._batch_size.failed(size, fewer=retry.fewer):
            self._in_flight = 1
        self.failing_since = self.failing_since or self._failed_since or time.time()
        self._why = retry.why
        if not self._is_stopped:
            seconds = backoff_seconds(self._attempts, self._longest_wait, retry.after)
            self._attempts += 1
            with suppress(TimeoutError):
                await asyncio.wait_for(self._awake.wait(), seconds)

    def _reset_failures(self) -> None:
        self._attempts, self.failing_since, self._failed_since, self._no_progress_since = 0, None, None, None

    @property
    def blocked(self) -> BlockedKey | None:
        """The record that is retried and why; None while there is progress."""
        return BlockedKey(self.waiting[0], self.failing_since, self._why) if self.failing_since else None

    @property
    def is_stalled(self) -> bool:
        """Whether the same batch has been tried for STALLED_SECONDS."""
        return self._no_progress_since is not None and time.monotonic() - self._no_progress_since >= STALLED_SECONDS

    def drop_tail(self, keep: int) -> Sequence[ConsumerRecord]:
        """Remove what waits beyond `keep` records, but nothing in flight. Returns the removed records in order."""
        beyond = len(self.waiting) - max(keep, self._in_flight)
        return [self.waiting.pop() for _ in range(beyond)][::-1]

    def wake(self) -> None:
        """Try again now."""
        self._awake.set()

    def stop(self) -> None:
        """Let the running call end and start no other; a backoff ends at once."""
        self._is_stopped = True
        self._awake.set()


class BatchSize:
    """How many records the next call gets."""

    def __init__(self, most: int) -> None:
        """Start with one record; never more than `most`."""
        self._most, self._size = most, 1
        self._repeated = 0  # size of the failed batch, which must be repeated unchanged
        self._too_large = 0  # how often it failed because it may be too large
        self._one_by_one = 0  # records that must still be passed one by one

    def next(self, waiting: int) -> int:
        """The size of the next batch, for this number of waiting records."""
        return 1 if self._one_by_one else self._repeated or min(self._size, waiting)

    def done(self, seconds: float) -> None:
        """A batch was done in this many seconds."""
        self._repeated = self._too_large = 0
        if self._one_by_one:
            self._one_by_one -= 1
        else:
            self._size = min(self._most, self._size * 2) if seconds < FAST_SECONDS else max(1, self._size // 2)

    def failed(self, size: int, *, fewer: bool) -> bool:
        """Repeat a batch as it was, or split it after enough attempts. Returns whether it was split."""
        self._size = max(1, self._size // 2)
        self._repeated = size
        self._too_large += fewer
        if is_split := self._too_large >= ATTEMPTS_BEFORE_SPLIT and size > 1:
            self.split(size)
        return is_split

    def split(self, size: int) -> None:
        """Pass the next `size` records one by one."""
        self._one_by_one = size
        self._repeated = self._too_large = 0


def backoff_seconds(attempts: int, most: float, requested: float | None = None) -> float:
    """Return how long to wait before the next attempt: exponential backoff with full jitter.

    Full jitter spreads clients that failed together (Marc Brooker, Exponential Backoff And Jitter, AWS Architecture
    Blog, 2015).

    Args:
        attempts: Failed attempts before this one.
        most: Upper bound of the drawn time, seconds.
        requested: Lower bound that the receiver asked for, capped at MAX_REQUESTED_SECONDS; None if it did not.
    """
    drawn = _RANDOM.uniform(0, min(most, FIRST_BACKOFF_SECONDS * 2 ** min(attempts, _MAX_DOUBLINGS)))
    return drawn if requested is None else max(drawn, min(requested, MAX_REQUESTED_SECONDS))
