"""Airflow as one process of the local stack: `python -m deploy.services.airflow`. Imports nothing of Airflow itself.

What `airflow standalone` starts, but for two things: servers of logs, which listen on every address of the machine, and
a triggerer, because no task of ours is deferred. Its own files in AIRFLOW_HOME say for which version the database is.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from types import FrameType

from deploy.process import SOON, give_way

PARTS = (("scheduler", "--skip-serve-logs"), ("dag-processor",), ("api-server",))
GRACE_SECONDS = 15.0


def main() -> None:
    """Run all parts until one ends or this process is told to. Exit 0 told to stop, 1 a part has ended."""
    parts: list[subprocess.Popen[bytes]] = []
    signal.signal(signal.SIGTERM, _leave)
    give_way(SOON)
    try:
        _migrate()
        parts += [_started(words) for words in PARTS]
        while all(part.poll() is None for part in parts):
            time.sleep(0.5)
        sys.exit(1)
    finally:
        _end(parts)


def _migrate() -> None:
    """Make or renew the database, once for each version: to look whether it is needed takes seconds."""
    home, wanted = Path(os.environ["AIRFLOW_HOME"]), version("apache-airflow-core")
    mark = home / "migrated"
    if mark.exists() and mark.read_text() == wanted:
        return
    for half_made in () if mark.exists() else home.glob("airflow.db*"):
        half_made.unlink()
    with _started(("db", "migrate")) as migrating:
        try:
            code = migrating.wait()
        finally:
            _end([migrating])
    if code:
        sys.exit(1)
    mark.write_text(wanted)


def _started(words: Sequence[str]) -> "subprocess.Popen[bytes]":
    return subprocess.Popen([sys.executable, "-m", "airflow", *words])  # noqa: S603 - our own words


def _end(parts: Sequence["subprocess.Popen[bytes]"]) -> None:
    """The supervisor kills what does not end in time, with all that it has started."""
    for part in parts:
        part.terminate()
    deadline = time.monotonic() + GRACE_SECONDS
    while any(part.poll() is None for part in parts) and time.monotonic() < deadline:
        time.sleep(0.1)


def _leave(_number: int, _frame: FrameType | None) -> None:
    sys.exit(0)


if __name__ == "__main__":
    main()
