"""How far a recompute is: drawn where somebody looks, and written down for those who ask."""

import time
from collections.abc import Callable
from typing import Any

from batch_layer.rebuild import Amount
from deploy.recompute.planning import Steps

EVERY_SECONDS = 1.0


class RecordedProgress:
    """Progress in the units of the work, with a rate and an estimate."""

    def __init__(self, steps: Steps, keep: Callable[[dict[str, Any]], None]) -> None:
        """`keep` is given what REST shows, at most once a second and when all is done."""
        self._steps, self._keep = steps, keep
        self._began: tuple[float, int] | None = None
        self._kept_at = 0.0

    def step(self, done: int, total: int, what: str) -> None:
        """Drawn only."""
        self._steps.step(done, total, what)

    def work(self, done: Amount, total: Amount, what: str) -> None:
        """Drawn and kept. The rate is of this process: what an earlier one had done does not count."""
        now = time.monotonic()
        if self._began is None:
            self._began = (now, done.events)
        began, events = self._began
        rate = (done.events - events) / (now - began) if done.events > events else None
        left = round((total.events - done.events) / rate, 1) if rate else None
        speed = f"   {rate:,.0f} events/s" if rate else ""
        self._steps.step(done.partitions, total.partitions, f"{what}{speed}")
        if now - self._kept_at >= EVERY_SECONDS or done == total:
            self._kept_at = now
            self._keep(
                {
                    "partitions": {"done": done.partitions, "total": total.partitions},
                    "events": {"done": done.events, "total": total.events},
                    "rows_per_second": round(rate, 1) if rate else None,
                    "seconds_left": left,
                    "working_on": what,
                }
            )
