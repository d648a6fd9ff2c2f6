"""What short commands cost before they say anything: processor time of `galatea --help` and `galatea status`."""

import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence

from benchmarks.report import Measured

FULL = 10
"""Runs."""
MOST_SECONDS = 0.7
WORDS: Sequence[Sequence[str]] = (["--help"], ["status"])


def commands(runs: int) -> Iterator[Measured]:
    """The least of some runs: whatever else the machine does adds to a run, and never takes from it."""
    for words in WORDS:
        with tempfile.TemporaryDirectory() as home:
            least = min(_seconds(words, home) for _ in range(runs))
        name = f"commands, galatea {' '.join(words)}"
        yield Measured(name, least, MOST_SECONDS, "core-s", "limit", better="low", limit=1.0, details={"runs": runs})


def _seconds(words: Sequence[str], home: str) -> float:
    command = [sys.executable, "-m", "galatea.cli.main", *words]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, env={**os.environ, "GALATEA_HOME": home}, capture_output=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
