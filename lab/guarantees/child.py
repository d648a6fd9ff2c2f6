"""One life of a process that an experiment kills: `python -m lab.guarantees.child EXPERIMENT JSON`.

It runs the experiment's `live`, which ends itself as by `kill -9` where it was told to: no handler, no buffer, no
`finally` comes to anything. It ends too when whoever started it does.

Processes that are killed and started again.

What a process has worked off, a line each: on the disk before anything else happens.
"""

import importlib
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any, NoReturn

import orjson

from deploy.process import VARIABLE, tether_if_asked
from master_dataset.errors import OperatorError


def die() -> NoReturn:
    """End this process now, as by `kill -9`."""
    os.kill(os.getpid(), signal.SIGKILL)
    raise SystemExit  # never reached: the signal cannot be caught


def main(experiment: str, task: str) -> None:
    """Live once."""
    tether_if_asked()
    importlib.import_module(f"lab.guarantees.experiments.{experiment}").child_main(**orjson.loads(task))


if __name__ == "__main__":
    main(*sys.argv[1:])


_PATIENCE_SECONDS = 600


def start_child(module: str, task: dict[str, Any]) -> subprocess.Popen[bytes]:
    """A child process that runs `live` of this experiment's module, once. It ends with this process."""
    words = [sys.executable, "-m", "lab.guarantees.child", module.rpartition(".")[2], orjson.dumps(task).decode()]
    return subprocess.Popen(  # noqa: S603 - our own module
        words,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env={**os.environ, VARIABLE: "1"},
    )


def run_child(module: str, task: dict[str, Any]) -> bool:
    """One life; whether it was killed. OperatorError if it ended in any other way."""
    with start_child(module, task) as child:
        child.wait(_PATIENCE_SECONDS)
        said = child.stderr.read() if child.stderr else b""
        if child.returncode not in {0, -signal.SIGKILL}:
            last = said.decode(errors="replace").strip().splitlines()[-1:]
            raise OperatorError(f"a child of the experiment ended with {child.returncode}: {last}", do="galatea prove")
        return child.returncode != 0


def run_until_killed_each(module: str, task: dict[str, Any], deaths: Sequence[Any]) -> int:
    """One life for each death, told in `dies_at`, and a last one without; how often it was killed."""
    return sum(run_child(module, {**task, "kill_at": death}) for death in [*deaths, None])


def append(journal: IO[str], number: int) -> None:
    """Append one number; a kill behind this changes nothing of it."""
    journal.write(f"{number}\n")
    journal.flush()
    os.fsync(journal.fileno())


def processed(journal: Path) -> list[int]:
    """The numbers in the order in which they were worked off."""
    return [int(line) for line in journal.read_text().split()] if journal.exists() else []
