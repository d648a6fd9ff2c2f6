"""The long set in shards: commands that run one long drill, and the quick drills at five times the load.

A shard ends after 45 minutes. What has not started by then is listed as not run, which counts as a failure.
"""

import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from tests.system.drills import day, quick, rooted, storm
from tests.system.drills.clocks import COMPILER
from tests.system.drills.ledger_line import FAIL, PASS, SKIPPED, LedgerLine, machine
from tests.system.drills.load import Mix

SHARD_SECONDS = 45 * 60.0
RATE = 1000.0
SET = "long"
STORM_MINUTES = 30.0
"""And a while to compare."""
LONGEST_SUMMARY = 500
"""So many characters of what a command that fails has printed, each way."""
COMMAND = "command"
"""The method of a fault that a command of its own does."""


class Job(NamedTuple):
    """`words`: of `python -m`; none: drills of one stack at the long load, by their ids, or those that need root."""

    ids: tuple[str, ...]
    words: tuple[str, ...] = ()
    needs_root: bool = False


ALERTS = (
    "--kills",
    "500",
    "--alerts",
    "101000",
    "--proxied",
    "90",
    "--restarts",
    "4",
    "--zombies",
    "2",
    "--twins",
    "2",
    "--minutes",
    "60",
)
"""An hour and more."""
JOBS = (
    Job(("D05", "D06", "D01", "D02", "D08", "D14", "D04", "D07", "D17")),
    Job(("D32",), ("tests.system.drills.mixed", "--receipts", "60000", "--seconds", "600", "--rebuilds", "8")),
    Job(("D02", "D03", "D09", "D10", "D22", "D27"), needs_root=True),
    Job((storm.ID,), needs_root=True),
    Job(("D05", "D06", "D01", "D02", "D08", "D14")),
    Job(("D07", "D24"), ("tests.system.drills.killed",)),
    Job(("D04",), ("tests.system.drills.posting", "--kills", "50")),
    Job(("D26",), ("tests.system.drills.hostile", "--long")),
    Job((day.ID,), ("tests.system.drills.day", "--hours", "24")),
    Job(("D32",), ("tests.system.drills.week", "--minutes", "20")),
    Job(("D19",), ("tests.system.drills.alerts", *ALERTS)),
    Job(("D09",), ("tests.system.drills.damaged",)),
)
"""The longest of a quarter of them comes last, and the storm, which has a length of its own, first."""
WITHOUT_SEED = {"tests.system.drills.killed", "tests.system.drills.hostile"}


def lines(shard: tuple[int, int], seed: int) -> Iterator[LedgerLine]:
    """What becomes of every `shard[1]`th job from the `shard[0]`th on."""
    number, shards = shard
    began = time.monotonic()
    for place, job in list(enumerate(JOBS))[number - 1 :: shards]:
        if time.monotonic() - began > SHARD_SECONDS:
            for id_ in job.ids:
                yield _line(id_, seed, FAIL, f"not run: the {SHARD_SECONDS / 60:.0f} minutes of the shard were over")
        elif job.ids == (day.ID,) and not COMPILER:
            yield _line(day.ID, seed, SKIPPED, "this machine lacks a C compiler")
        elif job.words:
            yield from commanded(job, seed + place)
        else:
            left = SHARD_SECONDS - (time.monotonic() - began)
            yield from _drilled(job, seed + place, left)


def _drilled(job: Job, seed: int, seconds: float) -> Iterator[LedgerLine]:
    if job.ids == (storm.ID,):
        return storm.lines(seed, min(STORM_MINUTES, seconds / 60), Mix(rate=RATE))
    if job.needs_root:
        return rooted.lines(seed, set_=SET, seconds=seconds)
    return quick.lines(seed, job.ids, Mix(rate=RATE), set_=SET, seconds=seconds)


def commanded(job: Job, seed: int) -> Iterator[LedgerLine]:
    """A line for each drill that the command does."""
    own: Sequence[str] = () if job.words[0] in WITHOUT_SEED else ("--seed", str(seed))
    began = time.monotonic()
    words = [sys.executable, "-m", *job.words, *own]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as drill:
        try:
            stdout, stderr = drill.communicate()
        except BaseException:
            drill.terminate()
            drill.communicate()  # until it has mended what it has hurt
            raise
    for id_ in job.ids:
        why = (
            "" if drill.returncode == 0 else f"{stdout.strip()[-LONGEST_SUMMARY:]} {stderr.strip()[-LONGEST_SUMMARY:]}"
        )
        line = _line(id_, seed, PASS if drill.returncode == 0 else FAIL, why)
        line.seconds = round(time.monotonic() - began, 1)
        line.fault(COMMAND, "python -m", " ".join(job.words))
        yield line


def _line(id_: str, seed: int, verdict: str, why: str) -> LedgerLine:
    return LedgerLine(id_, seed, SET, {}, versions=machine(), verdict=verdict, why=why)
