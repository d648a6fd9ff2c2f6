"""Check the free space on the broker's disks, so that events are rejected before a disk is full."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

import structlog

from serving_layer.errors import DiskLowError

log = structlog.get_logger()

CHECK_SECONDS = 1.0


class Usage(Protocol):
    """The usage of a disk in bytes, as `shutil.disk_usage` returns it."""

    @property
    def total(self) -> int:
        """Size of the disk."""

    @property
    def free(self) -> int:
        """Free space."""


class DiskSpace:
    """Checked at most once a second. Folders that do not exist, as those of a remote broker, are ignored."""

    def __init__(
        self,
        folders: Sequence[Path],
        least_percent: float,
        least_bytes: int,
        usage: Callable[[Path], Usage],
        clock: Callable[[], float],
    ) -> None:
        """Set what has to be free.

        Args:
            folders: on the disks to check.
            least_percent: of each disk; 0 for no limit.
            least_bytes: of each disk; 0 for no limit.
            usage: reads the usage of the disk of a folder.
            clock: monotonic time in seconds.
        """
        self._folders, self._usage, self._clock = folders, usage, clock
        self._least_percent, self._least_bytes = least_percent, least_bytes
        self._checked_at = float("-inf")
        self._is_low = False

    def refuse_low(self) -> None:
        """Raise DiskLowError if a disk has too little free space."""
        if self._clock() - self._checked_at >= CHECK_SECONDS:
            self._check()
        if self._is_low:
            message = "The disk on which events are stored is nearly full, so no event is accepted."
            raise DiskLowError(message, do="Send the same again later: it is accepted as soon as there is space.")

    def free(self) -> int | None:
        """Free bytes of the fullest disk; None if no folder exists."""
        return min((usage.free for usage in self._usages()), default=None)

    def _check(self) -> None:
        self._checked_at, was_low = self._clock(), self._is_low
        self._is_low = any(self._is_short(usage) for usage in self._usages())
        if self._is_low != was_low:
            log.warning("disk.low" if self._is_low else "disk.has_room_again")

    def _is_short(self, usage: Usage) -> bool:
        return usage.free < self._least_bytes or usage.free * 100 < self._least_percent * usage.total

    def _usages(self) -> Sequence[Usage]:
        found = []
        for folder in self._folders:
            try:
                found.append(self._usage(folder))
            except OSError:
                continue
        return found
