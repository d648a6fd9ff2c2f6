"""A component of the local stack: what is started, and how one knows that it serves."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from deploy.local.nodes import LOOPBACK


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
