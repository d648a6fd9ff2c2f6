"""Full rebuilds by the product's own command, as something else is measured."""

import subprocess
import sys
import time
from collections.abc import Callable
from threading import Event

COMMAND = (sys.executable, "-m", "galatea.cli.main", "rebuild", "--full")


def rebuild(*options: str, began: Callable[[int], None] = lambda _pid: None) -> float:
    """The seconds of one. `began` is told its pid, which leads a session. RuntimeError if it failed."""
    at = time.monotonic()
    with subprocess.Popen(
        [*COMMAND, *options], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as run:
        began(run.pid)
        _, told = run.communicate()
    if run.returncode:
        raise RuntimeError(f"the rebuild ended with exit code {run.returncode}: {told[-500:]}")
    return time.monotonic() - at


class Rebuilds:
    """One after the other until the event is set, so it goes `beside`. `seconds`: of each that has ended."""

    def __init__(self) -> None:
        """None yet."""
        self.seconds: list[float] = []

    def __call__(self, leave: Event) -> None:
        """Rebuild; the last one is waited for."""
        while not leave.is_set():
            self.seconds.append(round(rebuild(), 1))
