"""How much slower answers and receipts are while full rebuilds run on the same machine.

Receipts arrive in both parts, so that merged answers have speed rows to read. Both begin just after a publication, so
that there are equally many: a rebuild publishes a cut, and what was received before it belongs to the batch layer.
"""

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from statistics import median
from threading import Event
from typing import TYPE_CHECKING, NamedTuple

from benchmarks.answers import seconds_of_answers
from benchmarks.delay import seconds_until_seen
from benchmarks.report import Measured, percentile
from benchmarks.traffic import ReceiptStream, in_background
from master_dataset.sources.pos_transactions import POS_TRANSACTIONS

if TYPE_CHECKING:
    from deploy.settings import Settings

COMMAND = (sys.executable, "-m", "galatea.cli.main", "rebuild", "--full")


def rebuild(*options: str, began: Callable[[int], None] = lambda _pid: None) -> float:
    """Run one rebuild, and return its seconds. `began` is called with its pid, which leads a session. RuntimeError."""
    at = time.monotonic()
    with subprocess.Popen(
        [*COMMAND, *options], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as run:
        began(run.pid)
        _, errors = run.communicate()
    if run.returncode:
        raise RuntimeError(f"the rebuild ended with exit code {run.returncode}: {errors[-500:]}")
    return time.monotonic() - at


class Rebuilds:
    """One after the other until the event is set, so it goes `beside`. `seconds`: of each that has ended."""

    def __init__(self) -> None:
        """None yet."""
        self.seconds: list[float] = []

    def __call__(self, leave: Event) -> None:
        """Rebuild; the last one is waited for."""
        while not leave.is_set():
            self.seconds.append(round(rebuild(), 1))


SECONDS = 120.0
"""Counts for one caller. `rebuild_seconds`: a shorter rebuild overlaps with the requests in each of its steps."""
PER_SECOND = 200
"""Receipts: of 1,000 and a caller who never pauses speed falls behind on two cores, without any rebuild."""
AT_MOST = 2.0


class _Latencies(NamedTuple):
    """Seconds of each answer, and of each receipt until an answer showed it."""

    answers: list[float]
    delays: list[float]

    @classmethod
    def now(cls, settings: "Settings", probes: int) -> "_Latencies":
        return cls(seconds_of_answers(settings, SECONDS), seconds_until_seen(settings, probes))


def during_rebuild(settings: "Settings", probes: int) -> Iterator[Measured]:
    """On a whole stack. Three promises, each at most twice what it is without a rebuild."""
    stream, rebuilds = ReceiptStream(settings, POS_TRANSACTIONS.topic, PER_SECOND), Rebuilds()
    with in_background(stream):
        rebuild()
        without = _Latencies.now(settings, probes)
        with in_background(rebuilds):
            during = _Latencies.now(settings, probes)
    details = {
        "rebuild_seconds": rebuilds.seconds,
        "sent_per_second": round(stream.rate),
        "probes": probes,
        "answers": len(during.answers),
        "answers_without": len(without.answers),
        "p50": round(median(during.answers), 5),
        "p50_without": round(median(without.answers), 5),
    }
    yield _compared("answers p99", percentile(during.answers, 0.99), percentile(without.answers, 0.99), details)
    for name, share in (("p50", 0.5), ("p99", 0.99)):
        yield _compared(f"delay {name}", percentile(during.delays, share), percentile(without.delays, share), {})


def _compared(name: str, during: float, without: float, details: dict[str, object]) -> Measured:
    return Measured(
        f"during_rebuild, {name}",
        during,
        without,
        "s",
        "without a rebuild",
        better="low",
        limit=AT_MOST,
        details=details,
    )
