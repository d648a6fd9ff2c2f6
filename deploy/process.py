"""What every process sets up at its start: failpoints, garbage collection, threads, priority, the parent watchdog."""

import ctypes
import gc
import os
import resource
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from importlib.metadata import version
from pathlib import Path

YOUNG_OBJECTS = 50_000
"""With Python's own 700, the cells of an answer are scanned again and again: reading a million took twice as long."""

SWITCH_SECONDS = 0.0005
"""How long a thread of the API may compute while another waits: that of long answers, and the event loop.

With Python's own 5 ms, a short answer beside eight long ones took 110 ms in the median, and now 23.
"""

STREAMING_NICENESS, BACKGROUND_NICENESS = 5, 10
"""Niceness of the speed layer and the SQL component, and of archive, recomputes and Airflow.

Under CPU contention, queries take priority.
"""
SESSION_NICENESS = 5
"""Weight of each of their sessions: a third of that of others. With less, they starve on a busy machine."""
_OWN_SESSION = Path("/proc/self/autogroup")
"""Linux weighs sessions before the threads in them, so that `nice` alone has no effect outside the session."""

WATCHDOG_VARIABLE = "GALATEA_PARENT_WATCHDOG"
"""Set by a parent that keeps this process's standard input open as long as it runs."""
PARENT_ENDED_EXIT = 143
_SET_TIMER_SLACK = 29
"""PR_SET_TIMERSLACK of prctl(2)."""
_STDIN = 0


def installed_release() -> str:
    """Return the version of this program."""
    return version("galatea-platform")


def protect_process() -> None:
    """Let only the owner read what this process and its children write, and only named folders be imported from.

    Call it at the start of every process.
    """
    os.umask(0o077)
    # Otherwise `python -m` would first look in the current folder, where somebody else may have left a `structlog.py`.
    os.environ["PYTHONSAFEPATH"] = "1"


def arm_failpoints() -> None:
    """Arm the failpoints of `GALATEA_CRASH_AT`, if it is set. Call it at the start of every process."""
    if os.environ.get("GALATEA_CRASH_AT"):
        from deploy.settings import Settings  # noqa: PLC0415 - slow to import, and rarely needed
        from master_dataset.failpoints import arm  # noqa: PLC0415 - likewise

        settings = Settings.ignoring_record()  # `galatea migrate` may change what the home remembers
        arm(settings.failpoints.crash_at, settings.crash_folder)


def tune_garbage_collection() -> None:
    """Collect rarely: most objects of these processes are long-lived, or freed by reference counting.

    Cycles are still found.
    """
    gc.set_threshold(YOUNG_OBJECTS, 20, 50)


def switch_threads_often() -> None:
    """Switch between threads that compute more often than Python does by itself."""
    sys.setswitchinterval(SWITCH_SECONDS)


def freeze_startup_objects() -> None:
    """Exempt everything loaded so far from garbage collection. Call it once a process is ready."""
    gc.collect()
    gc.freeze()


def lower_priority(niceness: int) -> None:
    """Lower the priority of this thread and its children; also of the whole session if this process leads one.

    What a parent has lowered already is not lowered again: a rebuild by Airflow is as quick as one by a command.
    """
    os.nice(max(0, niceness - os.nice(0)))
    if os.getsid(0) == os.getpid():
        with suppress(OSError):  # not Linux, or sessions are not weighed: then `nice` has effect
            _OWN_SESSION.write_text(str(SESSION_NICENESS))


@contextmanager
def timer_slack(span: timedelta) -> Iterator[None]:
    """Let processes that this thread starts inside the block, and their children, sleep up to `span` longer than asked.

    Zero changes nothing. Only Linux can do it; elsewhere, and where the kernel refuses, nothing happens.
    """
    if not span or sys.platform != "linux":
        yield
        return
    set_slack = ctypes.CDLL(None).prctl
    set_slack(_SET_TIMER_SLACK, ctypes.c_ulong(span // timedelta(microseconds=1) * 1000))
    try:
        yield
    finally:
        set_slack(_SET_TIMER_SLACK, ctypes.c_ulong(0))  # back to what this thread began with


RELEASES_MEMORY = {
    "ARROW_DEFAULT_MEMORY_POOL": "system",  # its own reserves a gigabyte at once
    "DUCKDB_JE_MALLOC_CONF": "retain:false,dirty_decay_ms:1000,muzzy_decay_ms:0",
    "MALLOC_ARENA_MAX": "1",
    "MALLOC_MMAP_THRESHOLD_": "1048576",
    "MALLOC_TOP_PAD_": "67108864",  # stays for small objects, such as those of a connection, when nothing else is left
    "MALLOC_TRIM_THRESHOLD_": "134217728",
}
"""The environment in which DuckDB and Arrow give back what they have freed.

Otherwise they keep it reserved, and `limit_memory` counts that: after some large statements nothing is left.
"""


def limit_memory(megabytes: int) -> None:
    """Let this process allocate no more than this: what needs more fails, and everything else goes on.

    Linux counts reserved memory too; macOS does not enforce the limit.
    """
    _, most = resource.getrlimit(resource.RLIMIT_DATA)
    wanted = megabytes * 2**20
    resource.setrlimit(resource.RLIMIT_DATA, (wanted if most == resource.RLIM_INFINITY else min(wanted, most), most))


def start_parent_watchdog() -> None:
    """End this process as soon as its parent ends, in whatever way, if the parent has set WATCHDOG_VARIABLE.

    A thread reads standard input; at its end the process exits at once, and its Spark with it.
    """
    if os.environ.get(WATCHDOG_VARIABLE):
        threading.Thread(target=_watch_parent, name="parent-watchdog", daemon=True).start()


def _watch_parent() -> None:
    while os.read(_STDIN, 1024):
        continue
    os._exit(PARENT_ENDED_EXIT)
