"""What every process sets up at its start: failpoints, garbage collection, priority, the parent watchdog."""

import gc
import os
import threading
from contextlib import suppress
from pathlib import Path


def arm_if_asked() -> None:
    """At the start of every process of ours. Costs nothing unless `GALATEA_CRASH_AT` is set."""
    if os.environ.get("GALATEA_CRASH_AT"):
        from deploy.settings import Settings  # noqa: PLC0415 - it takes a while, and not every process needs it
        from master_dataset.failpoints import arm  # noqa: PLC0415 - likewise

        settings = Settings()
        arm(settings.failpoints.crash_at, settings.crash_folder)


YOUNG_OBJECTS = 50_000
"""Python's own 700 has every cell of an answer looked at again and again: reading a million took twice as long."""


def look_seldom() -> None:
    """Call once, when a process starts. Cycles are still found."""
    gc.set_threshold(YOUNG_OBJECTS, 20, 50)


def look_no_more_at_these() -> None:
    """Call once, when a process has what it lives with: to walk its modules again holds every request up for long."""
    gc.collect()
    gc.freeze()


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


VARIABLE = "GALATEA_TETHERED"
"""Set by a starter that keeps the other end of this process's standard input open for as long as it lives."""
STDIN, ENDED = 0, 143


def tether_if_asked() -> None:
    """Watch standard input in a thread. At its end this process ends at once, and its Spark with it."""
    if os.environ.get(VARIABLE):
        threading.Thread(target=_watch, name="tether", daemon=True).start()


def _watch() -> None:
    while os.read(STDIN, 1024):
        continue
    os._exit(ENDED)
