"""A bounded queue in front of a system that may be slow or down. Putting something into it never waits."""

import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Generic, Literal, TypeVar

import structlog
from prometheus_client import Counter

Item = TypeVar("Item")
Signal = Literal["traces", "lineage"]
MOST_WAITING = 2048
MOST_AT_ONCE = 512
GATHER_SECONDS = 0.5
"""How long it waits for more after the first one, so that few requests send many."""
LOG_SECONDS = 60.0
LEAVE_SECONDS = 2.0

SENT = Counter("galatea_telemetry_sent", "Spans and lineage events that their backend has accepted.", ("signal",))
DROPPED = Counter(
    "galatea_telemetry_dropped",
    "Spans and lineage events that were not sent, because too many waited or their backend failed.",
    ("signal", "reason"),
)

log = structlog.get_logger()


class ExportQueue(Generic[Item]):
    """Sends in a thread of its own. What does not fit is dropped and counted."""

    def __init__(
        self,
        signal: Signal,
        send: Callable[[Sequence[Item]], None],
        most: int = MOST_WAITING,
        *,
        at_once: int = MOST_AT_ONCE,
    ) -> None:
        """Start the thread.

        Args:
            signal: What is sent, as the metrics say it.
            send: Sends some items; may block, and raise anything.
            most: Maximum number of items that wait.
            at_once: Maximum number of items to send at once.
        """
        self._signal, self._send, self._most, self._at_once = signal, send, most, at_once
        # Its `put` may interrupt itself: a handler of a signal may put something, too.
        self._waiting: SimpleQueue[Item | None] = SimpleQueue()
        self._closing = threading.Event()
        self._log_again_at = float("-inf")
        SENT.labels(signal)
        for reason in ("full", "failed"):
            DROPPED.labels(signal, reason)
        self._thread = threading.Thread(target=self._run, name=signal, daemon=True)
        self._thread.start()

    def put(self, item: Item) -> None:
        """Queue an item, or drop it if too many wait."""
        if self._waiting.qsize() >= self._most:
            DROPPED.labels(self._signal, "full").inc()
        else:
            self._waiting.put(item)

    def close(self, seconds: float = LEAVE_SECONDS) -> None:
        """Send what waits, for at most `seconds`. Nothing may be put afterwards."""
        self._closing.set()
        self._waiting.put(None)
        self._thread.join(seconds)

    def _run(self) -> None:
        while True:
            items = self._gathered()
            sent = [item for item in items if item is not None]
            if sent:
                self._send_or_drop(sent)
            if len(sent) < len(items):
                return

    def _gathered(self) -> list[Item | None]:
        items = [self._waiting.get()]
        if self._at_once > 1 and items != [None]:
            self._closing.wait(GATHER_SECONDS)
        with suppress(Empty):
            while len(items) < self._at_once:
                items.append(self._waiting.get_nowait())
        return items

    def _send_or_drop(self, items: Sequence[Item]) -> None:
        try:
            self._send(items)
        except Exception as error:  # noqa: BLE001 - of a server that is not ours, which must not matter here
            DROPPED.labels(self._signal, "failed").inc(len(items))
            if time.monotonic() >= self._log_again_at:
                self._log_again_at = time.monotonic() + LOG_SECONDS
                log.warning("telemetry.not_sent", signal=self._signal, items=len(items), error=type(error).__name__)
        else:
            SENT.labels(self._signal).inc(len(items))
