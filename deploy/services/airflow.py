"""Airflow as one process of the local stack: `python -m deploy.services.airflow`. It imports nothing of Airflow.

It starts what `airflow standalone` starts, except the log servers, which would listen on every address of the machine,
and the triggerer, because no task is deferred. A file in AIRFLOW_HOME records which version the database is for.
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

from deploy.process import BACKGROUND_NICENESS, lower_priority

PARTS = (("scheduler", "--skip-serve-logs"), ("dag-processor",), ("api-server",))
GRACE_SECONDS = 15.0


def main() -> None:
    """Run all parts until one ends, which exits with 1, or this process is stopped, which exits with 0."""
    parts: list[subprocess.Popen[bytes]] = []
    signal.signal(signal.SIGTERM, _leave)
    lower_priority(BACKGROUND_NICENESS)
    try:
        _migrate()
        parts += [_started(words) for words in PARTS]
        while all(part.poll() is None for part in parts):
            time.sleep(0.5)
        sys.exit(1)
    finally:
        _end(parts)


def _migrate() -> None:
    """Create or migrate the database once per version, because even the check takes seconds."""
    home, current = Path(os.environ["AIRFLOW_HOME"]), version("apache-airflow-core")
    mark = home / "migrated"
    if mark.exists() and mark.read_text() == current:
        return
    for incomplete in () if mark.exists() else home.glob("airflow.db*"):
        incomplete.unlink()
    with _started(("db", "migrate")) as migrating:
        try:
            code = migrating.wait()
        finally:
            _end([migrating])
    if code:
        sys.exit(1)
    mark.write_text(current)


def _started(words: Sequence[str]) -> "subprocess.Popen[bytes]":
    return subprocess.Popen([sys.executable, "-m", "airflow", *words])  # noqa: S603 - our own words


def _end(parts: Sequence["subprocess.Popen[bytes]"]) -> None:
    """Stop the parts. The supervisor kills what does not end in time, with all its children."""
    for part in parts:
        part.terminate()
    deadline = time.monotonic() + GRACE_SECONDS
    while any(part.poll() is None for part in parts) and time.monotonic() < deadline:
        time.sleep(0.1)


def _leave(_number: int, _frame: FrameType | None) -> None:
    sys.exit(0)


if __name__ == "__main__":
    main()
