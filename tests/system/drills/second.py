"""A second process of one that may run only once: what it has done must be seen, or nothing was tried."""

import os
import re
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

PATIENCE_SECONDS = 300.0
"""So long it may take to begin: after that it hangs."""
TOOK_PART = {
    # A query that finds no records tells of a micro-batch too, but has added none.
    "wrote a micro-batch": re.compile(r"addBatch=\d+ .*event=speed\.batch"),
    "its claim was refused": re.compile(r"code=checkpoint_out_of_step"),
    "its entry in the checkpoint was refused": re.compile(r"CONCURRENT_STREAM_LOG_UPDATE"),
}
"""What its log says of it."""


def lived(command: Sequence[str], environment: Mapping[str, str], log: Path, patience: float = PATIENCE_SECONDS) -> str:
    """Run it until it has taken part, and end it as by `kill -9`. Says how it took part; "" if it never did."""
    own = {**environment, "PYTHONUNBUFFERED": "1"}
    with (
        log.open("wb") as told,
        subprocess.Popen(command, env=own, stdout=told, stderr=told, start_new_session=True) as second,
    ):
        try:
            deadline = time.monotonic() + patience
            while not _took_part(log) and second.poll() is None and time.monotonic() < deadline:
                time.sleep(0.1)
        finally:
            if second.poll() is None:
                os.killpg(second.pid, signal.SIGKILL)
    return _took_part(log)


def last(log: Path) -> str:
    """What it said last."""
    return " ".join(log.read_text(errors="replace").strip().splitlines()[-1:])[:300]


def _took_part(log: Path) -> str:
    said = log.read_text(errors="replace")
    return next((what for what, sign in TOOK_PART.items() if sign.search(said)), "")
