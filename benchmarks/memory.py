"""Peak memory of the whole local stack: PSS of every process, which counts shared pages once."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

from benchmarks.report import Measured
from deploy.local.records import Records
from deploy.local.stack import components

if TYPE_CHECKING:
    from threading import Event

    from deploy.settings import Settings

LIMIT_GIB = 4.5
GIB = 1 << 30
EVERY_SECONDS = 1.0


class Sampler:
    """Looks once a second until the event is set. Other sessions (a rebuild) are added by their leader's pid."""

    def __init__(self, settings: "Settings") -> None:
        """Of the stack of this home."""
        self._records, self._names = Records(settings.home), [each.name for each in components(settings)]
        self.others: dict[str, int] = {}
        self.phase = ""
        self.peak: dict[str, float] = {}
        self.peak_phase = ""
        self.of_phase: dict[str, float] = {}

    def __call__(self, leave: "Event") -> None:
        """Look once a second until the event is set."""
        while not leave.wait(EVERY_SECONDS):
            now = self._now()
            total = sum(now.values())
            self.of_phase[self.phase] = round(max(total, self.of_phase.get(self.phase, 0.0)), 2)
            if total > sum(self.peak.values()):
                self.peak, self.peak_phase = now, self.phase

    def measured(self) -> Measured:
        """The peak, and who had how much of it."""
        biggest = dict(sorted(self.peak.items(), key=lambda each: -each[1]))
        details = {"peak_during": self.peak_phase, "gib": biggest, "peak_gib_by_phase": self.of_phase}
        total = round(sum(self.peak.values()), 2)
        return Measured("memory", total, LIMIT_GIB, "GiB", "limit", better="low", limit=1.0, details=details)

    def _now(self) -> dict[str, float]:
        leaders = {name: pid for name in self._names if (pid := self._records.pid(name)) is not None} | self.others
        by_leader = {pid: name for name, pid in leaders.items()}
        found: dict[str, float] = {}
        for process, leader in _led(by_leader):
            part = f"{by_leader[leader]} {'java' if 'java' in process.info['name'] else 'python'}"
            found[part] = round(found.get(part, 0.0) + _pss(process.pid) / GIB, 3)
        return found


def _led(leaders: dict[int, str]) -> Iterator[tuple[psutil.Process, int]]:
    """The processes of these sessions."""
    for process in psutil.process_iter(["name"]):
        try:
            leader = os.getsid(process.pid)
        except OSError:
            continue  # it has ended, or belongs to another user
        if leader in leaders:
            yield process, leader


def _pss(pid: int) -> int:
    """Bytes; 0 if it has ended."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:")), 0)
