"""Processes that are killed and started again."""

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

import orjson

from deploy.parent_watchdog import VARIABLE
from master_dataset.errors import OperatorError

_PATIENCE_SECONDS = 600


def started(module: str, task: dict[str, Any]) -> subprocess.Popen[bytes]:
    """A child process that runs `live` of this experiment's module, once. It ends with this process."""
    words = [sys.executable, "-m", "lab.guarantees.child", module.rpartition(".")[2], orjson.dumps(task).decode()]
    return subprocess.Popen(  # noqa: S603 - our own module
        words,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env={**os.environ, VARIABLE: "1"},
    )


def live(module: str, task: dict[str, Any]) -> bool:
    """One life; whether it was killed. OperatorError if it ended in any other way."""
    with started(module, task) as child:
        child.wait(_PATIENCE_SECONDS)
        said = child.stderr.read() if child.stderr else b""
        if child.returncode not in {0, -signal.SIGKILL}:
            last = said.decode(errors="replace").strip().splitlines()[-1:]
            raise OperatorError(f"a child of the experiment ended with {child.returncode}: {last}", do="galatea prove")
        return child.returncode != 0


def lives(module: str, task: dict[str, Any], deaths: Sequence[Any]) -> int:
    """One life for each death, told in `dies_at`, and a last one without; how often it was killed."""
    return sum(live(module, {**task, "dies_at": death}) for death in [*deaths, None])
