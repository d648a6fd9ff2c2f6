"""How long to wait before the next try: full jitter, so that many who failed together do not come together again.

Source: Marc Brooker, Exponential Backoff And Jitter, AWS Architecture Blog, 2015.

The records of one key, one after the other, in batches that follow the pace of whoever takes them.
"""

import asyncio
import random
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress

from master_dataset.kafka.consumer.handler import BlockedKey, Handler, HandlerResult, Reject, Retry
from master_dataset.kafka.record import ConsumerRecord

FIRST_SECONDS = 0.25
MOST_ASKED_SECONDS = 3600.0
"""Nobody is waited for longer than this, whatever they ask for."""
_CHANCE = random.SystemRandom()
_DOUBLINGS = 20


def backoff_seconds(tries: int, most: float, asked: float | None = None) -> float:
    """Between 0 and min(most, FIRST_SECONDS x 2^tries); never less than was `asked` for."""
    drawn = _CHANCE.uniform(0, min(most, FIRST_SECONDS * 2 ** min(tries, _DOUBLINGS)))
    return drawn if asked is None else max(drawn, min(asked, MOST_ASKED_SECONDS))


QUICK_SECONDS = 0.5
"""Whoever takes a batch within this gets a larger one; who takes longer, a smaller one."""
STUCK_SECONDS = 2.0
"""Whoever has not got on for so long leaves the room to others."""
SAME_TRIES = 10
"""So often a batch fails though fewer at once may work; then each of its records is handed over alone."""


class KeyQueue:
    """Works while it has records. It takes what is there: no record waits for others to make a batch full.

    A batch that fails comes again as it was: whoever has taken it, though its answer was lost, knows it by what it is.
    """

    def __init__(self, taker: Handler, most: int, longest_wait: float, failed_since: float | None = None) -> None:
        """`most`: records of one call. `longest_wait`: seconds between two tries, at most.

        `failed_since`: since when it has failed, if it does so still: its partition was taken away meanwhile.
        """
        self._failed_since = failed_since
        self._taker, self._most, self._longest_wait = taker, most, longest_wait
        self.waiting: deque[ConsumerRecord] = deque()
        self.failing_since: float | None = None
        self._why = ""
        self._size, self._one_by_one, self._tries = 1, 0, 0
        self._same, self._too_much = 0, 0  # records of the batch that failed; how often there may have been too many
        self._handed = 0  # records of the call that is under way or comes again
        self._since: float | None = None  # by the clock that never steps back
        self._is_ended, self._stirred = False, asyncio.Event()

    @property
    def blocked(self) -> BlockedKey | None:
        """None while it gets on."""
        return BlockedKey(self.waiting[0], self.failing_since, self._why) if self.failing_since else None

    @property
    def is_stuck(self) -> bool:
        """Whether the same records have been tried for a while."""
        return self._since is not None and time.monotonic() - self._since >= STUCK_SECONDS

    def cut(self, keep: int) -> Sequence[ConsumerRecord]:
        """Take away what waits beyond so many records, but nothing that was handed over. In order."""
        beyond = len(self.waiting) - max(keep, self._handed)
        return [self.waiting.pop() for _ in range(beyond)][::-1]

    def end(self) -> None:
        """What is under way is ended, and nothing more is begun; no next try is waited for."""
        self._is_ended = True
        self._stirred.set()

    def wake(self) -> None:
        """Try again now."""
        self._stirred.set()

    async def work(self, places: asyncio.Semaphore, done: Callable[[ConsumerRecord], None]) -> None:
        """Until nothing waits. `places`: how many calls may be under way at once. `done` is told of each record."""
        while self.waiting and not self._is_ended:
            self._stirred.clear()  # whoever wakes it during a call knows what the call did not
            batch = self._batch()
            self._handed = len(batch)
            async with places:
                if self._is_ended:  # while it waited for a place
                    return
                began = time.monotonic()
                self._since = self._since or began
                verdict = await self._judged(batch)
                took = time.monotonic() - began
            if isinstance(verdict, Retry):
                await self._fail(verdict, len(batch))
                continue
            self._tries, self._same, self._too_much, self.failing_since, self._since = 0, 0, 0, None, None
            self._failed_since = None
            if isinstance(verdict, Reject):
                self._one_by_one = len(batch)  # one of them is to blame
            else:
                self._leave(batch, done, took)

    async def _judged(self, batch: Sequence[ConsumerRecord]) -> HandlerResult:
        """One that is refused is put aside, and then it is done. Of several it is not known which."""
        verdict = await self._taker.take(batch)
        if isinstance(verdict, Reject) and len(batch) == 1:
            return await self._taker.put_aside(batch[0], verdict)
        return verdict

    async def _fail(self, verdict: Retry, records: int) -> None:
        self._size, self._same = max(1, self._size // 2), records
        self._too_much += verdict.fewer
        if self._too_much >= SAME_TRIES and records > 1:
            self._one_by_one, self._same, self._too_much = records, 0, 0
            self._handed = 1
        self.failing_since, self._why = self.failing_since or self._failed_since or time.time(), verdict.why
        if not self._is_ended:
            seconds = backoff_seconds(self._tries, self._longest_wait, verdict.after)
            self._tries += 1
            with suppress(TimeoutError):
                await asyncio.wait_for(self._stirred.wait(), seconds)

    def _batch(self) -> list[ConsumerRecord]:
        size = 1 if self._one_by_one else self._same or min(self._size, len(self.waiting))
        return [self.waiting[at] for at in range(size)]

    def _leave(self, batch: Sequence[ConsumerRecord], done: Callable[[ConsumerRecord], None], took: float) -> None:
        for record in batch:
            self.waiting.popleft()
            done(record)
        if self._one_by_one:
            self._one_by_one -= 1
        else:
            self._size = min(self._most, self._size * 2) if took < QUICK_SECONDS else max(1, self._size // 2)
