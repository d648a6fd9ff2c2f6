"""Who goes first where processors are short: answers, then provisional numbers, then whatever can wait."""

import os
from contextlib import suppress
from pathlib import Path

SOON, LATER = 5, 10
"""Niceness of the speed layer and Airflow, and of archive and recomputes. All else has none: who asks waits for it."""
SESSION = 5
"""Of each of their sessions: a third of the weight of another one. With less they stand still on a busy machine."""
_OWN_SESSION = Path("/proc/self/autogroup")
"""Where Linux weighs sessions before it weighs the threads in them, so that `nice` alone says nothing outside."""


def give_way(niceness: int) -> None:
    """Let others go before this thread and what it starts, and where it leads a session, before the whole of that."""
    os.nice(niceness)
    if os.getsid(0) == os.getpid():
        with suppress(OSError):  # not Linux, or one that does not weigh sessions: then `nice` is heeded
            _OWN_SESSION.write_text(str(SESSION))
