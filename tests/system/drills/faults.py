"""The actions and the report of a drill, and the faults that need no root: kill, pause, stop, crash at a failpoint."""

import os
import random
import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import psutil

from deploy.local.records import Records
from deploy.local.stack import status
from master_dataset.object_store import is_remote
from master_dataset.sources import registered_sources
from master_dataset.storage import delete_folder

if TYPE_CHECKING:
    from deploy.settings import Settings


def exit_on_sigterm() -> None:
    """From now on, SIGTERM exits as an error would: what was hurt is mended, and what was started is ended."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended"))


@dataclass(frozen=True)
class Order:
    """What a drill does. The stream takes `seconds`, or longer.

    `crashes`: how many points of archive and speed. `pauses`: of how many components.
    """

    seed: int
    receipts: int
    rebuilds: int
    crashes: int
    pauses: int
    seconds: float


@dataclass
class Report:
    """What was done, and what was found. `wrong`: everything that must not be, in words."""

    order: Order
    faults: list[str] = field(default_factory=list)
    sent: int = 0
    acknowledged: int = 0
    events: int = 0
    archived: int = 0
    dead_letters: dict[str, int] = field(default_factory=dict)
    conflicts: int = 0
    cells: int = 0
    differing: int = 0
    answers: int = 0
    refusals: dict[str, int] = field(default_factory=dict)
    crashed: list[str] = field(default_factory=list)
    seconds: float = 0.0
    wrong: list[str] = field(default_factory=list)

    def line(self) -> dict[str, Any]:
        """As it is kept."""
        return {**asdict(self), "verdict": "fail" if self.wrong else "pass"}


COMPONENTS = ("speed", "archive", "api", "cassandra", "kafka")
PATIENCE_SECONDS = 900


class Faults:
    """One stack's."""

    def __init__(self, settings: "Settings") -> None:
        self._settings = settings

    def kill(self, name: str) -> str:
        """As by `kill -9`, with everything that it has started. What was killed before it may not be back yet."""
        old = self.pid(name)
        for each in [*psutil.Process(old).children(recursive=True), psutil.Process(old)]:
            _kill(each)
        wait_until(lambda: Records(self._settings.home).pid(name) != old, f"{name} to be missed")
        return f"kill {name}"

    def pause(self, name: str, seconds: float) -> str:
        """As by `kill -STOP`, and go on after a while."""
        pid = self.pid(name)
        with stopped([*psutil.Process(pid).children(recursive=True), psutil.Process(pid)]):
            time.sleep(seconds)
        return f"pause {name} {seconds} s"

    def lose_speed_checkpoint(self) -> str:
        """Delete it while speed writes to it: what it writes meanwhile may be left."""
        checkpoints = f"{self._settings.paths.checkpoint_uri}/speed"
        if is_remote(checkpoints):
            delete_folder(checkpoints)
        else:
            shutil.rmtree(checkpoints, ignore_errors=True)
        return "lose checkpoints/speed"

    def crashed(self) -> list[str]:
        """Which failpoints have ended a process so far."""
        folder = self._settings.crash_folder
        return sorted(path.name for path in folder.iterdir()) if folder.exists() else []

    def pid(self, name: str) -> int:
        """The process of a component, as soon as it runs."""
        found: list[int] = []

        def runs() -> bool:
            found[:] = [pid for pid in [Records(self._settings.home).pid(name)] if pid is not None]
            return bool(found) and self._state(name) == "running"

        wait_until(runs, f"{name} to run")
        return found[0]

    def all_run(self) -> bool:
        """Whether nothing is being started again."""
        return all(self._state(name) == "running" for name in COMPONENTS)

    def _state(self, name: str) -> str:
        states = {each["name"]: str(each["state"]) for each in status(self._settings)["components"]}
        return states[name]


def wait_until(is_so: Callable[[], bool], what: str) -> None:
    """Or fail, after so long that it hangs."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not is_so():
        assert time.monotonic() < deadline, f"waited in vain for {what}"
        time.sleep(0.1)


@contextmanager
def stopped(processes: Sequence[psutil.Process]) -> Iterator[None]:
    """As by `kill -STOP`; afterwards they go on."""
    try:
        for each in processes:
            _signal(each, signal.SIGSTOP)
        yield
    finally:
        for each in processes:
            _signal(each, signal.SIGCONT)


def _kill(process: psutil.Process) -> None:
    _signal(process, signal.SIGKILL)


def _signal(process: psutil.Process, number: int) -> None:
    try:
        os.kill(process.pid, number)
    except ProcessLookupError:
        return


def crash_plan(order: "Order") -> str:
    """Some points of archive and speed, each at a pass that comes early: every one has to come."""
    points = [
        "speed.claimed",
        "speed.remembered",
        "speed.rows",
        "speed.counted",
        "speed.recorded",
        "speed.took_over",
        "archive.begun",
        "archive.events",
        "archive.letters",
        "archive.recorded",
    ]
    chance = random.Random(f"crashes {order.seed}")
    once = {"speed.took_over", "speed.remembered"}  # in the life of a generation; of a worker it may be
    chosen = chance.sample(points, order.crashes)
    begun = {point: len(registered_sources()) for point in points if point.startswith("archive.")}
    """Of each source a first micro-batch, while the stack starts."""
    return ",".join(f"{point}:{1 if point in once else begun.get(point, 0) + chance.randint(2, 4)}" for point in chosen)
