"""A component of the local stack: how it is started, when it is ready, and whether its disk has room for it."""

import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

from deploy.local.nodes import LOOPBACK
from master_dataset.errors import DiskFullError


@dataclass(frozen=True)
class Component:
    """One process that the supervisor runs.

    Attributes:
        name: As in `galatea status`.
        command: Returns the command. Called at each start only, so that `galatea status` looks for no Java.
        serves: Whether it is up; polled until it is.
        where: Its address or URL, for `galatea status`.
        ports: Each port that it listens on, and the setting that changes it.
        host: Address of these ports.
        environment: Variables in addition to those of the supervisor; they may contain secrets.
        prepare: Called before every start.
        once_ready: Called when it serves, after every start; again while it raises DependencyUnavailableError.
        stage: Components of one stage start together, once all of the stage before are ready.
        start_seconds: How long it may take until it is ready, by the setting GALATEA_START_SECONDS.
        grace_seconds: How long it may take to stop before it is killed.
        restart_seconds: How long the supervisor waits before it starts it again, the first time.
        timer_slack: How much longer than asked its threads may sleep, see `timer_slack` in `deploy.process`.
    """

    name: str
    command: Callable[[], Sequence[str]]
    serves: Callable[[], bool]
    where: Mapping[str, str] = field(default_factory=dict)
    ports: Mapping[int, str] = field(default_factory=dict)
    host: str = LOOPBACK
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)
    prepare: Callable[[], None] = lambda: None
    once_ready: Callable[[], None] = lambda: None
    stage: int = 0
    start_seconds: float = 600
    grace_seconds: float = 20
    restart_seconds: float = 0.5
    timer_slack: timedelta = timedelta()

    def log(self, home: Path) -> Path:
        """Return its log file."""
        return home / "logs" / f"{self.name}.log"


NAMED_STOP = 3
"""Exit code of a process whose operator has to act. It is not restarted."""
MB = 10**6
LEAST_MB = 256
"""For the indexes that Kafka writes when it reads its log again: at most 20 MB per segment that was written to."""


def require_room(folder: Path, least_mb: int) -> None:
    """Refuse to start a stack on a disk that would soon be full. DiskFullError.

    Args:
        folder: It need not exist yet.
        least_mb: How much has to be free, in MB.
    """
    there = next(each for each in (folder, *folder.parents) if each.exists())
    free = shutil.disk_usage(there).free // MB
    if free < least_mb:
        message = f"the disk of `{folder}` has {free:,} MB free, and the stack needs {least_mb:,} MB to begin with"
        do = "free some, set GALATEA_HOME to a folder on another disk, or set GALATEA_LEAST_DISK_MB to a lower bound"
        raise DiskFullError(message, do=do)


def require_free_disk(folder: Path) -> None:
    """Refuse to start a component on a full disk. DiskFullError.

    Kafka 4.3, restarted on a full disk, takes its log for corrupt and truncates it, starting with that of its topics'
    names; then it creates every topic again.
    """
    free = shutil.disk_usage(folder).free // MB if folder.exists() else LEAST_MB
    if free < LEAST_MB:
        message = f"what writes to `{folder}` is not started, because only {free} MB are free on its disk"
        raise DiskFullError(
            message, do=f"free {LEAST_MB} MB there; if `galatea up` is still running, it then starts it"
        )
