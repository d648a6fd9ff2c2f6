"""The part that is watched: a trading day flows in, and a rebuild on the way changes states, not numbers."""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from lab.demo.playing import Play
from lab.demo.reading import Reading
from lab.demo.screen import LiveTable
from lab.demo.trading_day import WATCHED_UNTIL, TradingDay
from lab.demo.watch import Look, Row, Watch
from master_dataset.errors import OperatorError

LOOK_SECONDS = 1.0
SETTLE_SECONDS = 180.0
Rebuild = Callable[[], str]
"""Rebuilds, and says in a few words what came of it."""


@dataclass(frozen=True)
class Live:
    """One play, watched."""

    day: TradingDay
    play: Play
    watch: Watch
    table: LiveTable
    reading: Reading

    def run(self, rebuild: Rebuild) -> str:
        """Play, rebuild on the way, play on. Says what the rebuild changed; OperatorError if it moved a number."""
        self._until(lambda: self.play.has_reached(WATCHED_UNTIL + 0.1))
        before = self._settled("about to rebuild")
        with ThreadPoolExecutor(1, "rebuild") as pool:
            rebuilding = pool.submit(rebuild)
            self._until(rebuilding.done, "rebuilding while events flow")
            after = self._settled(rebuilding.result())
        self.play.release()
        self._until(self.play.is_over)
        self.table.show(self.watch.look(), "all sent", important=True)
        return self._compared(before, after)

    def _until(self, over: Callable[[], bool], doing: str = "playing") -> None:
        while not (over() or self.play.is_over()):
            began = time.monotonic()
            self._show(self.watch.look(), doing)
            time.sleep(max(0.0, began + LOOK_SECONDS - time.monotonic()))

    def _settled(self, doing: str) -> Look:
        """Look once both layers have read what was sent before: then all rows must be equal, or get so soon."""
        ends = self.reading.ends()
        self._until(lambda: self.reading.has_read(ends))
        deadline = time.monotonic() + SETTLE_SECONDS
        while not (look := self.watch.look()).is_equal:
            if time.monotonic() > deadline:
                message = f"merged and recomputed numbers of store {self.watch.store} stay different: {look.rows}"
                raise OperatorError(message, do="galatea verify")
            time.sleep(LOOK_SECONDS / 4)
        self._show(look, doing, important=True)
        return look

    def _show(self, look: Look, doing: str, *, important: bool = False) -> None:
        self.table.show(look, f"{doing}, {self.play.sent:,} of {self.play.total:,} sent", important=important)

    def _late(self, look: Look) -> list[Row]:
        return [row for row in look.rows if row.window == self.day.late_window]

    def _compared(self, before: Look, after: Look) -> str:
        if not all(row.merged for row in before.rows if row.window != self.day.late_window):
            raise OperatorError(f"store {self.watch.store} shows no sales that were sent", do="galatea lag")
        pairs = [pair for pair in zip(before.rows, after.rows, strict=True) if pair[0].window != self.day.late_window]
        moved = [old.window for old, new in pairs if old.merged != new.merged]
        if moved:
            raise OperatorError(f"the rebuild moved the numbers of windows {moved}", do="galatea verify")
        became = sum(new.final and not old.final for old, new in pairs)
        gained = sum((row.merged or 0) * sign for look, sign in ((after, 1), (before, -1)) for row in self._late(look))
        return (
            f"{became} of {len(pairs)} watched windows went from provisional to final, 0 numbers moved; "
            f"the late receipt that waited brought {gained / 100:,.2f} USD to its window"
        )
