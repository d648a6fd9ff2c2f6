"""Scratch folders of Spark: one for each process, removed by a later one once its process has ended.

Java removes what it wrote only if it ends in peace. What is left of a process that was killed would fill the disk.
"""

import fcntl
import shutil
import tempfile
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import IO

_LOCK = "lock"
_held: list[IO[str]] = []
"""The locks of this process, until it ends."""


@cache
def own_scratch(base: Path) -> Path:
    """Return the folder of this process, which is created, and remove those of processes that have ended.

    On a file system without locks, nothing is removed.

    Args:
        base: The folder of all processes of one name, also of those on other machines.
    """
    base.mkdir(parents=True, exist_ok=True)
    for folder in base.iterdir():
        _remove_if_ended(folder)
    while True:
        own = Path(tempfile.mkdtemp(prefix="", dir=base))
        lock = (own / _LOCK).open("w")
        with suppress(OSError):
            fcntl.flock(lock, fcntl.LOCK_EX)
        if (own / _LOCK).exists():  # nobody removed it before it was locked
            _held.append(lock)
            return own
        lock.close()


def _remove_if_ended(folder: Path) -> None:
    with suppress(OSError), (folder / _LOCK).open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # BlockingIOError: its process runs
        shutil.rmtree(folder, ignore_errors=True)
