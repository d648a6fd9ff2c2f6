"""Plays what the simulated sensors send of the trading day beside its receipts, in as many seconds."""

import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import Self

from lab.simulation.pacing import paced
from lab.simulation.record import Delivery
from lab.simulation.sending import send


class SensorPlay:
    """Use as a context manager; leaving it early ends the play."""

    def __init__(self, deliveries: Sequence[Delivery], bootstrap: str, seconds: float) -> None:
        """`deliveries` by when they are sent, at least one."""
        self._deliveries, self._bootstrap = deliveries, bootstrap
        lasts = (deliveries[-1].send_at - deliveries[0].send_at).total_seconds()
        self._speed = max(lasts, 1) / seconds
        self._ended = threading.Event()
        self._pool = ThreadPoolExecutor(1, "sensors")
        self._playing: Future[int] | None = None

    def __enter__(self) -> Self:
        """Begin."""
        self._playing = self._pool.submit(lambda: send(self._until_ended(), self._bootstrap))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End it, played or not."""
        self._ended.set()
        self._pool.shutdown(wait=True)

    def result(self) -> int:
        """Wait for its end and give how many records were acknowledged; raises what the sending raised."""
        if self._playing is None:
            raise RuntimeError("the play has not begun")
        return self._playing.result()

    def _until_ended(self) -> Iterator[Delivery]:
        for each in paced(self._deliveries, self._speed, sleep=self._wait):
            if self._ended.is_set():
                return
            yield each

    def _wait(self, seconds: float) -> None:
        self._ended.wait(seconds)
