"""Signals wait where an interruption would leave a process behind that nobody knows."""

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Hold Ctrl-C, SIGTERM and SIGHUP back until the block is done, then deliver the first that came.

    Python runs handlers in the main thread only, so in any other there is nothing to hold back. They are not blocked in
    the kernel: a child would inherit that and never hear SIGTERM.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    caught: list[int] = []

    def keep(number: int, _frame: FrameType | None) -> None:
        caught.append(number)

    before = {number: signal.getsignal(number) for number in _ENDING}
    try:
        for number in _ENDING:
            if before[number] is not signal.SIG_IGN:
                signal.signal(number, keep)
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        if caught:
            os.kill(os.getpid(), caught[0])
