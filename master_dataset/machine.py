"""What tells a boot of this machine, and a process on it, from others. Clocks do not: they may be stepped."""

from pathlib import Path

import psutil

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_STARTED = 19
"""The place of `starttime` in `/proc/PID/stat`, after the name in brackets: see proc(5)."""


def boot_id() -> str:
    """Return a text that is another one after each start of the machine; empty if the system has none."""
    return _BOOT_ID.read_text().strip() if _BOOT_ID.exists() else ""


def process_start(pid: int) -> float:
    """Return when a process started, for comparisons with others of the same boot.

    On Linux, it is in ticks since the machine was started: psutil adds the time of that, which changes with the clock.

    Raises:
        psutil.NoSuchProcess: There is none.
    """
    try:
        return float(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[_STARTED])
    except (FileNotFoundError, ProcessLookupError):
        return float(psutil.Process(pid).create_time())  # not Linux, or no such process
