"""Who goes first where processors are short: answers, then provisional numbers, then whatever can wait."""

import os
from contextlib import suppress
from pathlib import Path

PROVISIONAL, BACKGROUND = 5, 10
"""Niceness of the speed layer, and of archive, Airflow and recomputes. All else has none: who asks waits for it."""
_OWN_SESSION = Path("/proc/self/autogroup")
"""Where Linux weighs sessions before it weighs the threads in them, so that `nice` alone says nothing outside."""


def give_way(niceness: int) -> None:
    """Let others go before this thread and what it starts, and where it leads a session, before the whole of that."""
    os.nice(niceness)
    if os.getsid(0) == os.getpid():
        with suppress(OSError):  # not Linux, or one that does not weigh sessions: then `nice` is heeded
            _OWN_SESSION.write_text(str(niceness))
