"""Processor and memory of some processes, held down. Needs root and control groups (version 1)."""

import os
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path("/sys/fs/cgroup")
PERIOD_US = 100_000


@contextmanager
def little_processor(pids: Iterable[int], percent: int) -> Iterator[None]:
    """So many percent of one processor for all of them together."""
    limits = {"cpu.cfs_period_us": PERIOD_US, "cpu.cfs_quota_us": PERIOD_US * percent // 100}
    with _group("cpu", limits, pids):
        yield


@contextmanager
def little_memory(pids: Iterable[int], mb: int) -> Iterator[Path]:
    """What they and their children take from now on. The folder of the group."""
    with _group("memory", {"memory.limit_in_bytes": mb * 1024 * 1024}, pids) as group:
        yield group


def killed_for_memory(group: Path) -> bool:
    """Whether the kernel has ended a process there."""
    found = dict(line.split() for line in (group / "memory.oom_control").read_text().splitlines())
    return int(found["oom_kill"]) > 0


@contextmanager
def _group(controller: str, limits: dict[str, int], pids: Iterable[int]) -> Iterator[Path]:
    group = ROOT / controller / f"galatea-drill-{os.getpid()}"
    group.mkdir()
    try:
        for name, value in limits.items():
            (group / name).write_text(str(value))
        for pid in pids:
            _enter(group, pid)
        yield group
    finally:
        while inside := (group / "cgroup.procs").read_text().split():
            for left in inside:
                _enter(ROOT / controller, int(left))
            time.sleep(0.05)
        group.rmdir()


def _enter(group: Path, pid: int) -> None:
    try:
        (group / "cgroup.procs").write_text(str(pid))
    except ProcessLookupError:
        return
