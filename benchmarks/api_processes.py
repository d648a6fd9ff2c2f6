"""Answers per second of two api processes that share a port, beside those of one; and the processor time of an answer.

The clients are two processes of their own, because one would not keep two api processes busy. They and the api
processes need a core each: with fewer than four, the rates say how they share what there is, and nothing is promised.
"""

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime
from multiprocessing import get_context
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

import psutil

from benchmarks import local
from benchmarks.answers import DAY, SECONDS, HttpQuery, ask, key_of, net_sales_of
from benchmarks.report import Measured
from deploy.local.ports import free_ports
from deploy.local.records import Records

if TYPE_CHECKING:
    from deploy.settings import Settings

OF_ONE = 1.7
CLIENTS, CALLERS = 2, 16
CORES_NEEDED = 4
ROUNDS = 5
TOGETHER = ("api-2", "api-3")


class Round(NamedTuple):
    """`rate`: answers a second. `processor_ms`: of one answer, of all api processes that were asked."""

    rate: float
    processor_ms: float


def several(settings: "Settings") -> Iterator[Measured]:
    """Answers about a past day of one store, in turns, so that whatever else the machine does meets both."""
    question = HttpQuery(settings.api.port, net_sales_of(datetime.now(UTC).date() - DAY), key_of(settings))
    own = Records(settings.home).pid("api")
    if own is None:
        raise RuntimeError("the api process does not run")
    (port,) = free_ports(1)
    with _processes(settings, port) as pids, ProcessPoolExecutor(CLIENTS, get_context("spawn")) as clients:
        both = ((question, [own]), (question._replace(port=port), pids))
        for each in both:
            _measure(clients, *each)  # warm-up
        rounds = [tuple(_measure(clients, *each) for each in both) for _ in range(ROUNDS)]
    one, two = ([each[of] for each in rounds] for of in (0, 1))
    cores = os.cpu_count() or 1
    details = {
        "cores": cores,
        "clients": CLIENTS,
        "callers": CLIENTS * CALLERS,
        "ratios": sorted(round(after.rate / before.rate, 2) for before, after in rounds),
    }
    rates = median(each.rate for each in two), median(each.rate for each in one)
    limit = OF_ONE if cores >= CORES_NEEDED else None
    yield Measured("api_processes, answers of two", *rates, "answers/s", "one process", limit=limit, details=details)
    spent = median(each.processor_ms for each in two), median(each.processor_ms for each in one)
    name = "api_processes, processor time of an answer"
    yield Measured(name, *spent, "ms", "one process", better="low", details={"cores": cores})


@contextmanager
def _processes(settings: "Settings", port: int) -> Iterator[list[int]]:
    """Two more api processes of this home, on a port of their own."""
    own = settings.replace(api_port=port, api_processes=1 + len(TOGETHER))
    started = []
    try:
        for name in TOGETHER:
            ready = settings.home / "run" / f"{name}.ready"
            ready.unlink(missing_ok=True)
            command = [sys.executable, "-m", "deploy.services.api", name]
            started.append(subprocess.Popen(command, env={**os.environ, **own.environment()}))
            local.until(ready.exists, name)
        yield [each.pid for each in started]
    finally:
        for each in started:
            each.terminate()
        for each in started:
            each.wait()


def _measure(clients: ProcessPoolExecutor, question: HttpQuery, pids: Sequence[int]) -> Round:
    before = sum(map(_processor_seconds, pids))
    asked = [clients.submit(ask, question, SECONDS, CALLERS) for _ in range(CLIENTS)]
    rate = sum(each.result().rate for each in asked)
    spent = sum(map(_processor_seconds, pids)) - before
    return Round(rate, 1000 * spent / (rate * SECONDS))


def _processor_seconds(pid: int) -> float:
    times = psutil.Process(pid).cpu_times()
    return float(times.user + times.system)
