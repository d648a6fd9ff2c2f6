"""The progress of a recompute: shown to the user, and recorded for REST."""

import time
from collections.abc import Callable
from typing import NamedTuple, Protocol

from views.control.recompute import Done, Progress

RECORD_SECONDS = 1.0


class Steps(Protocol):
    """Shows progress: on a terminal, in a demo, as a note of an Airflow task."""

    def step(self, done: int, total: int, what: str) -> None:
        """`done` of `total` (0 of 0: unknown), working on `what`."""


class Amount(NamedTuple):
    """Some of the work: (view, day) partitions, and the sum of the archived events that each of them reads."""

    partitions: int
    events: int

    def plus(self, other: "Amount") -> "Amount":
        """Both together."""
        return Amount(self.partitions + other.partitions, self.events + other.events)


class RecordedProgress:
    """Steps that are also recorded, with a rate and an estimate."""

    def __init__(self, steps: Steps, record: Callable[[Progress], None]) -> None:
        """`record` is called at most once a second, and when all is done."""
        self._steps, self._record = steps, record
        self._began: tuple[float, int] | None = None
        self._recorded_at = 0.0

    def step(self, done: int, total: int, what: str) -> None:
        """Show a step; nothing is recorded."""
        self._steps.step(done, total, what)

    def work(self, done: Amount, total: Amount, what: str) -> None:
        """Show and record how much is done. The rate is that of this process: earlier attempts do not count."""
        now = time.monotonic()
        if self._began is None:
            self._began = (now, done.events)
        began, events = self._began
        rate = (done.events - events) / (now - began) if done.events > events else None
        left = round((total.events - done.events) / rate, 1) if rate else None
        speed = f"   {rate:,.0f} events/s" if rate else ""
        self._steps.step(done.partitions, total.partitions, f"{what}{speed}")
        if now - self._recorded_at >= RECORD_SECONDS or done == total:
            self._recorded_at = now
            partitions, read = Done(done.partitions, total.partitions), Done(done.events, total.events)
            self._record(Progress(partitions, read, round(rate, 1) if rate else None, left, what))
