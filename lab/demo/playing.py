"""Plays the trading day through the real ingest path, at the pace of the plan, in a thread of its own."""

import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import Self

from lab.demo.trading_day import TradingDay
from master_dataset.kafka.ingest import IngestResult, ingest
from master_dataset.sources.pos_transactions import POS_TRANSACTIONS

TAIL_FROM = 0.9
"""The last tenth is sent after `release` only: so events flow before, during and after the second rebuild."""


class Play:
    """Use as a context manager; leaving it early ends the play."""

    def __init__(self, day: TradingDay, bootstrap: str, seconds: float) -> None:
        """`seconds`: how long the play takes, if nobody keeps it from ending."""
        self._day, self._bootstrap, self._seconds = day, bootstrap, seconds
        self._released, self._ended = threading.Event(), threading.Event()
        self._pool = ThreadPoolExecutor(1, "play")
        self._playing: Future[IngestResult] | None = None
        self.sent = 0

    def __enter__(self) -> Self:
        """Begin."""
        self._playing = self._pool.submit(
            lambda: ingest(POS_TRANSACTIONS, self._lines(), self._bootstrap, lambda _: None)
        )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End it, played or not."""
        self._ended.set()
        self._released.set()
        self._pool.shutdown(wait=True)

    @property
    def total(self) -> int:
        """How many deliveries there are."""
        return len(self._day.deliveries)

    def has_reached(self, part: float) -> bool:
        """Whether this part of the day (0 to 1) has been sent."""
        return self.sent >= len([each for each in self._day.deliveries if each.at < part])

    def release(self) -> None:
        """Let the play end."""
        self._released.set()

    def is_over(self) -> bool:
        """Whether all was sent and acknowledged."""
        return self._playing is not None and self._playing.done()

    def result(self) -> IngestResult:
        """What became of it; raises what the ingest raised."""
        if self._playing is None:
            raise RuntimeError("the play has not begun")
        return self._playing.result()

    def _lines(self) -> Iterator[bytes]:
        began = time.monotonic()
        for delivery in self._day.deliveries:
            if delivery.at >= TAIL_FROM:
                self._released.wait()
            self._ended.wait(began + delivery.at * self._seconds - time.monotonic())
            if self._ended.is_set():
                return
            yield delivery.value
            self.sent += 1
