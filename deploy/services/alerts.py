"""The alerts as a process of the local stack: `python -m deploy.services.alerts`. Starts the relay, and watches it.

A call of the client library may hang for ever, its timeout unheeded. So the relay is a child that says whenever it gets
on, for each partition; when one says nothing for too long, the child is killed and started again: being killed
anywhere is what it is made for.
"""

import os
import random
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import structlog

from deploy.process import VARIABLE
from deploy.services.runner import NAMED_STOP, Process
from deploy.settings import Settings
from master_dataset.errors import OperatorError

FIRST_WAIT_SECONDS, LONGEST_WAIT_SECONDS = 0.5, 10.0
STEADY_SECONDS = 60.0
READY = 255
"""Said once by a partition that reads; smaller numbers are partitions that get on."""

log = structlog.get_logger()


def lanes(partitions: int) -> int:
    """How many have to get on: the partitions, by their numbers, then who keeps what was told, then who ticks."""
    return partitions + 2


class Watched:
    """A child that writes a byte into a pipe whenever it gets on."""

    def __init__(self, command: Sequence[str], environment: dict[str, str], lanes: int) -> None:
        """`lanes`: how many have to get on, each under its number. Its end comes with this process's own."""
        self._heard, said = os.pipe()
        words = [*command, str(said)]
        own = environment | {VARIABLE: "1"}
        self._child = subprocess.Popen(words, stdin=subprocess.PIPE, env=own, pass_fds=[said])  # noqa: S603 - ours
        os.close(said)
        self._last = dict.fromkeys(range(lanes), time.monotonic())
        self.ready = 0

    def is_stuck(self, seconds: float) -> bool:
        """Listen a while. Whether a lane has said nothing for so long."""
        readable, _, _ = select.select([self._heard], [], [], min(1.0, seconds / 4))
        if readable:
            for number in os.read(self._heard, 65_536):
                self.ready += number == READY
                if number in self._last:
                    self._last[number] = time.monotonic()
        return time.monotonic() - min(self._last.values()) > seconds

    def ended(self) -> int | None:
        """The exit code, if it has ended."""
        return self._child.poll()

    def end(self) -> None:
        """As by `kill -9`."""
        self._child.send_signal(signal.SIGKILL)
        self._child.communicate()
        os.close(self._heard)


@contextmanager
def watched(settings: Settings) -> Iterator[Watched]:
    """A relay that is ended in the end."""
    command = [sys.executable, "-m", "deploy.services.alerts_relay"]
    child = Watched(command, {**os.environ, **settings.environment()}, lanes(settings.kafka.partitions))
    try:
        yield child
    finally:
        child.end()


def run(process: Process, settings: Settings) -> None:
    """Until the process is told to stop. OperatorError if the relay stopped for an operator."""
    wait, says_ready = FIRST_WAIT_SECONDS, process.ready
    while True:
        began = time.monotonic()
        with watched(settings) as child:
            code = None
            while code is None:
                if child.is_stuck(settings.alerts.stuck_seconds):
                    log.warning("alerts.stuck", seconds=settings.alerts.stuck_seconds)
                    break
                code = child.ended()
                if child.ready >= settings.kafka.partitions:
                    says_ready()
                    says_ready = _nothing
        if code == NAMED_STOP:
            raise OperatorError("the relay of alerts has stopped, and said why above", do="read logs/alerts.log")
        wait = FIRST_WAIT_SECONDS if time.monotonic() - began > STEADY_SECONDS else wait
        time.sleep(random.uniform(FIRST_WAIT_SECONDS, wait))  # noqa: S311 - no secret
        wait = min(2 * wait, LONGEST_WAIT_SECONDS)


def _nothing() -> None:
    """What was said once need not be said again."""


if __name__ == "__main__":
    Process("alerts").main(run)
