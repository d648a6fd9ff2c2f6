"""Child processes that an experiment kills and starts again: `python -m lab.guarantees.child EXPERIMENT`.

A child reads its task from standard input, because a connection to Kafka may contain a password.

A child runs `child_main` of the experiment, which ends itself as by `kill -9` at a given point: no handler, no
buffer and no `finally` takes effect. A child also ends when the process that started it does.
"""

import importlib
import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any, NoReturn

from deploy.process import WATCHDOG_VARIABLE, start_parent_watchdog
from master_dataset.errors import OperatorError

_TIMEOUT_SECONDS = 600


def start_child(module: str, task: dict[str, Any]) -> subprocess.Popen[bytes]:
    """Start a child that calls `child_main(**task)` of this experiment's module. It ends with this process."""
    command = [sys.executable, "-m", "lab.guarantees.child", module.rpartition(".")[2]]
    child = subprocess.Popen(  # noqa: S603 - our own module
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env={**os.environ, WATCHDOG_VARIABLE: "1"},
    )
    if child.stdin is not None:  # it stays open: the child ends when it is closed
        pickle.dump(task, child.stdin)
        child.stdin.flush()
    return child


def run_child(module: str, task: dict[str, Any]) -> bool:
    """Run a child to its end; return whether it was killed. Raises OperatorError if it ended in any other way."""
    with start_child(module, task) as child:
        child.wait(_TIMEOUT_SECONDS)
        output = child.stderr.read() if child.stderr else b""
        if child.returncode not in {0, -signal.SIGKILL}:
            last = output.decode(errors="replace").strip().splitlines()[-1:]
            raise OperatorError(f"a child of the experiment ended with {child.returncode}: {last}", do="galatea prove")
        return child.returncode != 0


def run_with_kills(module: str, task: dict[str, Any], kills: Sequence[Any]) -> int:
    """Run one child for each kill, which gets it as `kill_at`, then one without; return how many were killed."""
    return sum(run_child(module, {**task, "kill_at": kill}) for kill in [*kills, None])


def die() -> NoReturn:
    """End this process now, as by `kill -9`."""
    os.kill(os.getpid(), signal.SIGKILL)
    raise SystemExit  # never reached: the signal cannot be caught


def append(journal: IO[str], number: int) -> None:
    """Append a processed number and sync it to the disk, so that a later kill cannot lose it."""
    journal.write(f"{number}\n")
    journal.flush()
    os.fsync(journal.fileno())


def processed(journal: Path) -> list[int]:
    """Return the numbers in the order in which they were processed."""
    return [int(line) for line in journal.read_text().split()] if journal.exists() else []


def main(experiment: str) -> None:
    """Run the child side of an experiment."""
    task = pickle.load(sys.stdin.buffer)  # noqa: S301 - from our own parent
    start_parent_watchdog()
    importlib.import_module(f"lab.guarantees.experiments.{experiment}").child_main(**task)


if __name__ == "__main__":
    main(*sys.argv[1:])
