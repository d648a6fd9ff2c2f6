"""A component of the local stack: how it is started, when it is ready, and whether its disk has room for it."""

import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from deploy.local.nodes import LOOPBACK
from master_dataset.errors import DiskFullError


@dataclass(frozen=True)
class Component:
    """`command` is asked at each start, so `galatea status` looks for no Java. `serves` is asked until it says yes.

    Components of one `stage` start side by side, when all of the stage before serve. `ports` maps each port that it
    listens on, at `host`, to the setting that changes it. `once_ready` runs after every start; while it raises
    Unavailable it is asked again.
    `grace_seconds`: how long it may take to stop before it is killed. `where`: its address or URL for `status`.
    """

    name: str
    command: Callable[[], Sequence[str]]
    serves: Callable[[], bool]
    where: Mapping[str, str] = field(default_factory=dict)
    ports: Mapping[int, str] = field(default_factory=dict)
    host: str = LOOPBACK
    environment: Mapping[str, str] = field(default_factory=dict)
    prepare: Callable[[], None] = lambda: None
    once_ready: Callable[[], None] = lambda: None
    stage: int = 0
    start_seconds: float = 180
    grace_seconds: float = 20

    def log(self, home: Path) -> Path:
        """Its one log file."""
        return home / "logs" / f"{self.name}.log"


MB = 10**6
LEAST_MB = 256
"""For the indexes of what is read again: 20 MB at most for each segment that was written to."""


def require_free_disk(folder: Path) -> None:
    """DiskFullError."""
    free = shutil.disk_usage(folder).free // MB if folder.exists() else LEAST_MB
    if free < LEAST_MB:
        message = f"it is not started, as {free} MB are left on the disk of `{folder}`"
        raise DiskFullError(message, do=f"free {LEAST_MB} MB there: then it starts by itself")
