"""Whether there is room for more events where the broker keeps them: a full disk is no place to promise anything."""

import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

from serving_layer.errors import DiskLowError

log = logging.getLogger(__name__)

LOOK_SECONDS = 1.0


class Usage(Protocol):
    """Of a disk, in bytes; as `shutil.disk_usage` says it."""

    @property
    def total(self) -> int:
        """All of it."""

    @property
    def free(self) -> int:
        """What is left."""


class DiskRoom:
    """Looked at once a second at most. Folders that are not there, as those of a broker elsewhere, are passed by."""

    def __init__(
        self,
        folders: Sequence[Path],
        least_percent: float,
        least_bytes: int,
        usage: Callable[[Path], Usage],
        clock: Callable[[], float],
    ) -> None:
        """`least_percent`, `least_bytes`: what has to be free; 0 for no matter. `clock`: monotonic seconds."""
        self._folders, self._usage, self._clock = folders, usage, clock
        self._least_percent, self._least_bytes = least_percent, least_bytes
        self._looked_at = float("-inf")
        self._is_low = False

    def refuse_low(self) -> None:
        """DiskLowError."""
        if self._clock() - self._looked_at >= LOOK_SECONDS:
            self._look()
        if self._is_low:
            message = "The disk on which events are kept is nearly full, so none is taken."
            raise DiskLowError(message, do="Send the same again later: it is taken as soon as there is room.")

    def free(self) -> int | None:
        """Bytes that are left on the fullest of the disks; None if none is there."""
        return min((usage.free for usage in self._usages()), default=None)

    def _look(self) -> None:
        self._looked_at, was_low = self._clock(), self._is_low
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
