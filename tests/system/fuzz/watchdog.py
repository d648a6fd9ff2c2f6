"""Runs the worker of a target in a process of its own, and ends it when an input hangs or fills the memory."""

import multiprocessing
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from tempfile import TemporaryDirectory

import psutil

from tests.system.fuzz.target import Target
from tests.system.fuzz.worker import WAIT_SECONDS, CurrentInput, Failure, Job, Tally, work


@dataclass(frozen=True)
class WatchLimits:
    """When a process is ended.

    Attributes:
        hangs_seconds: without a result for one input. The worker itself notices those that only take long.
        start_seconds: until the first input, for imports, servers and databases.
        memory_bytes: of the whole process. Caches of the SQL component and the database in it stay far below.
        input_bytes: of an input that can be kept when the process no longer answers.
    """

    hangs_seconds: float = 2 * WAIT_SECONDS
    start_seconds: float = 300.0
    memory_bytes: int = 3 * 1024**3
    input_bytes: int = 8_000_000


LIMITS = WatchLimits()
LOOK_SECONDS = 0.25


@dataclass
class Found:
    """Of one target: what was done, and what failed, by place."""

    tally: Tally = field(default_factory=Tally)
    failures: dict[str, Failure] = field(default_factory=dict)


def fuzz(
    target: Target,
    seed: int,
    seconds: float,
    on_failure: Callable[[Failure], None] = lambda _: None,
    limits: WatchLimits = LIMITS,
) -> Found:
    """Fuzz one target.

    Args:
        target: what is fuzzed; it must be possible to pickle it.
        seed: equal seeds make the same inputs in the same order, unless a worker had to be replaced.
        seconds: how long. A worker that ends before is replaced by one that makes other inputs.
        on_failure: is called with each failure when it is found.
        limits: when a worker is ended.

    Returns:
        What was done.
    """
    found, until, round_ = Found(), time.monotonic() + seconds, 0
    while round_ == 0 or time.monotonic() < until:
        with TemporaryDirectory() as folder:
            path = Path(folder, "current")
            path.write_bytes(bytes(CurrentInput.size_for(limits.input_bytes)))
            done = _Watched(Job(target, seed, round_, until, path, limits.input_bytes), limits).run()
        found.tally.add(done.tally)
        for place, each in done.failures.items():
            if place not in found.failures:
                found.failures[place] = each
                on_failure(each)
        round_ += 1
    return found


class _Watched:
    """One worker, until its time is over or it has to be ended."""

    def __init__(self, job: Job, limits: WatchLimits) -> None:
        self._job, self._limits, self._found = job, limits, Found()
        self._current = CurrentInput(job.current, job.most_bytes)

    def run(self) -> Found:
        context = multiprocessing.get_context("spawn")
        ours, theirs = context.Pipe(duplex=False)
        process = context.Process(target=_work_and_leave, args=(self._job, theirs))
        process.start()
        theirs.close()
        why = self._watch(process, ours)
        if why:
            process.kill()
        process.join()
        if not why and process.exitcode:
            why = f"the process ended with {process.exitcode}"
        if why:
            self._found.tally.failed[why] += 1
            self._found.failures[why] = Failure(why, why, self._current.get()[1])
        self._found.tally.inputs = max(self._found.tally.inputs, self._current.get()[0])
        return self._found

    def _watch(self, process: BaseProcess, reports: Connection) -> str:
        """Collect what it reports until it ends. Returns why it has to be ended; empty if it has ended by itself."""
        watched = psutil.Process(process.pid)
        number, since = 0, time.monotonic()
        while True:
            try:
                while reports.poll(LOOK_SECONDS):
                    self._note(reports.recv())
            except EOFError:
                return ""
            now, _ = self._current.get()
            if now != number:
                number, since = now, time.monotonic()
            most = self._limits.hangs_seconds if number else self._limits.start_seconds
            if time.monotonic() - since > most:
                return f"no result after {most:g} s"
            if _memory(watched) > self._limits.memory_bytes:
                return f"the process has more than {self._limits.memory_bytes // 1024**2:,} MB"

    def _note(self, report: Failure | Tally) -> None:
        if isinstance(report, Tally):
            self._found.tally = report
        else:
            self._found.failures[report.place] = report


def _memory(process: psutil.Process) -> int:
    try:
        return int(process.memory_info().rss)
    except psutil.NoSuchProcess:
        return 0


def _work_and_leave(job: Job, reports: Connection) -> None:
    """At the end of a process, extension modules would report what they have not released."""
    work(job, reports)
    reports.close()
    os._exit(0)
