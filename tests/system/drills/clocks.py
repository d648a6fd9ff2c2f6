"""Clocks of their own for processes: their time of day can be moved while they run.

A small library is built and preloaded (clock.c). libfaketime would be the usual tool, but version 0.9.10 breaks what is
measured with the monotonic clock unless that one is faked too: waits for a condition end at once, so that the timers of
Java spin, and `time.sleep` of Python 3.11 fails (https://github.com/wolfcw/libfaketime/issues/426). And it reads a file
whenever a process asks for the time, so clocks of several processes cannot move at the same moment.
"""

import mmap
import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

COMPILER = shutil.which("cc") or ""
FILE, OF_ITS_OWN = "DRILL_CLOCK", "DRILL_CLOCK_OF_ITS_OWN"
_SOURCE = Path(__file__).with_name("clock.c")
_NUMBERS = 2
_BYTES = 8


class Clock:
    """What processes take for the time of day. What they measure with stays as it is."""

    def __init__(self, file: Path) -> None:
        """Kept in that file; right, if the file is a new one. Needs `COMPILER`."""
        self._file, self._library = file, file.with_suffix(".so")
        if not file.exists():
            words = [COMPILER, "-O2", "-shared", "-fPIC", "-o", str(self._library), str(_SOURCE), "-ldl", "-lpthread"]
            subprocess.run(words, check=True)
            file.write_bytes(bytes(_NUMBERS * _BYTES))
        with file.open("r+b") as opened:
            self._off = memoryview(mmap.mmap(opened.fileno(), _NUMBERS * _BYTES)).cast("q")  # stores are atomic

    def put(self, seconds: float) -> None:
        """So far forward, or back, from now on."""
        self._off[0] = _nanoseconds(seconds)

    def deviate(self, seconds: float) -> None:
        """Processes that have it as a clock of their own are so far ahead of the others, or behind."""
        self._off[1] = _nanoseconds(seconds)

    def environment(self, *, is_own: bool = False) -> Mapping[str, str]:
        """Of its owners. `is_own`: of those that deviate."""
        own = {"LD_PRELOAD": str(self._library), FILE: str(self._file)}
        return {**own, OF_ITS_OWN: "1"} if is_own else own


def clock_of_this_process() -> Clock | None:
    """None: it has the machine's."""
    file = os.environ.get(FILE)
    return Clock(Path(file)) if file else None


def _nanoseconds(seconds: float) -> int:
    return round(seconds * 10**9)
