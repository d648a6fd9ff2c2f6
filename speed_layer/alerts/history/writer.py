"""Folds the topic of alerts into the tables that serving lists, and says as of when the tables are whole.

Rows first, then how far they go: killed anywhere, it folds some records again, which writes the same rows. It holds
no more than the records of one call.
"""

import time
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Protocol

import msgspec
import structlog

from master_dataset.errors import StoreUnavailable, Unavailable
from speed_layer.alerts.history.sink import Outlet, Reach, Told
from speed_layer.alerts.history.table import Kept

MEASURE_SECONDS = 2.0
WAIT_SECONDS = 2.0
TIDY_SECONDS = 600.0
log = structlog.get_logger()


class History(Protocol):
    """Where alerts are kept. Every method raises StoreUnavailable."""

    def keep(self, value: bytes) -> None:
        """Fold a record of the topic."""

    def reached(self) -> Mapping[int, Kept]:
        """How far each partition is folded."""

    def reach(self, partition: int, kept: Kept, now: datetime) -> None:
        """Say how far it is folded."""

    def move_open(self, beat: Callable[[], None], now: datetime) -> None:
        """Have what is open in the tables of today, before anything is folded into these."""

    def tidy(self, beat: Callable[[], None], now: datetime) -> None:
        """Forget places in which nothing is open any more."""


class Keeper:
    """Of every partition. `beat` is called whenever there is progress."""

    def __init__(
        self, outlet: Outlet, history: History, now: Callable[[], datetime], beat: Callable[[], None] = lambda: None
    ) -> None:
        """Nothing is read yet."""
        self._outlet, self._history, self._now, self._beat = outlet, history, now, beat
        self._kept: dict[int, Kept] = {}
        self._said: dict[int, Kept] = {}
        self._wanted: Mapping[int, Reach] = {}
        self._torn: set[int] = set()
        self._measured_at = self._tidied_at = float("-inf")

    def run(self) -> None:
        """Until the process ends; whatever is away is waited for."""
        while True:
            try:
                self.begin()
                while self.go_on():
                    self._beat()
            except Unavailable as error:
                log.warning("alert_history.waiting", why=str(error))
            self._beat()
            time.sleep(WAIT_SECONDS)

    def begin(self) -> None:
        """From where the tables end. What is gone from the topic by now is said to be missing. Unavailable."""
        self._history.move_open(self._beat, self._now())
        reached = self._history.reached()
        self._kept, self._torn, self._wanted = {}, set(), {}
        for number, (first, end) in self._outlet.bounds().items():
            before = reached.get(number, Kept(0, None, None))
            is_other_log = before.position > end
            at = first if is_other_log else max(first, before.position)
            if is_other_log or first > before.position:
                self._torn.add(number)
                log.error("alert_history.gap", partition=number, kept=before.position, first=first)
            self._kept[number] = before._replace(position=at)
        self._said = {number: kept for number, kept in reached.items() if number not in self._torn}
        self._outlet.go_to({number: kept.position for number, kept in self._kept.items()})

    def go_on(self) -> bool:
        """Fold what is there. Whether that can go on; if not, begin again. Unavailable."""
        told = self._outlet.take()
        if told is None:
            return False
        for each in told:
            self._fold(each)
        if time.monotonic() - self._measured_at >= MEASURE_SECONDS:
            if not self._wanted:
                self._wanted = dict(self._outlet.reach())
            self._measured_at = time.monotonic()
        self._arrive()
        if time.monotonic() - self._tidied_at >= TIDY_SECONDS:
            self._tidied_at = time.monotonic()
            self._tidy()
        return True

    def _tidy(self) -> None:
        try:
            self._history.tidy(self._beat, self._now())
        except StoreUnavailable as error:  # nothing is wrong for want of it
            log.warning("alert_history.untidy", why=str(error))

    def _fold(self, told: Told) -> None:
        if told.value:
            try:
                self._history.keep(told.value)
            except msgspec.MsgspecError:  # nobody but the relay writes here
                log.exception("alert_history.unreadable", partition=told.partition, next_offset=told.next_offset)
        kept = self._kept[told.partition]
        if told.partition in self._torn:
            self._torn.discard(told.partition)
            kept = kept._replace(complete_from=told.received_at or self._now())
        self._kept[told.partition] = kept._replace(position=max(kept.position, told.next_offset))

    def _arrive(self) -> None:
        """Say how far the rows go, and as of when, where the end that was measured is reached."""
        for number, kept in self._kept.items():
            wanted = self._wanted.get(number)
            if wanted and kept.position >= wanted.end and number not in self._torn:
                as_of = max(kept.as_of, wanted.as_of) if kept.as_of else wanted.as_of
                self._kept[number] = kept._replace(as_of=as_of)
                self._wanted = {other: reach for other, reach in self._wanted.items() if other != number}
        now = self._now()
        for number, kept in self._kept.items():
            if kept != self._said.get(number) and number not in self._torn:
                self._history.reach(number, kept, now)
                self._said[number] = kept
