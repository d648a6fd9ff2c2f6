"""CPU time of a process tree. On a shared machine it is more reliable than wall-clock time."""

import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple, Self

import psutil

EVERY_SECONDS = 0.2


class _Id(NamedTuple):
    """A pid is given again to another process; with the time of its creation it names one."""

    pid: int
    created: float


class Meter:
    """Measures the processor seconds of a process and of everything below it, from `with` on.

    The processes are sampled, and what a process had used when it was last seen stays counted. The difference of two
    sums over the processes that live would go back: when a process ends whose parent has ended before it, or ignores
    its children, its seconds are in no sum any more. What lives for less than `EVERY_SECONDS` is missed.
    """

    def __init__(self, pid: int | None = None) -> None:
        """`pid`: whose process; None: this one."""
        self._pid = pid
        self._base: dict[_Id, float] = {}
        self._last: dict[_Id, float] = {}
        self._names: dict[_Id, str] = {}
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._sampling = threading.Lock()

    def __enter__(self) -> Self:
        """Start to measure."""
        self._sample()
        self._base = dict(self._last)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop to measure; the figures stay."""
        self._sample()
        self._is_over.set()
        self._thread.join()

    @property
    def seconds(self) -> float:
        """Processor seconds, user and system, up to now or to the end of `with`."""
        return sum(self.by_program().values())

    def by_program(self) -> dict[str, float]:
        """The same, of Java and of everything else ("python") apart."""
        if not self._is_over.is_set():
            self._sample()
        found = {"java": 0.0, "python": 0.0}
        for id_, last in self._last.items():
            program = "java" if "java" in self._names[id_] else "python"
            found[program] += last - self._base.get(id_, 0.0)
        return found

    def _watch(self) -> None:
        while not self._is_over.wait(EVERY_SECONDS):
            self._sample()

    def _sample(self) -> None:
        with self._sampling:
            for id_, name, spent in _tree(self._pid):
                self._names[id_] = name
                self._last[id_] = max(spent, self._last.get(id_, 0.0))


def _tree(pid: int | None) -> Iterator[tuple[_Id, str, float]]:
    try:
        leader = psutil.Process(pid)
        processes = (leader, *leader.children(recursive=True))
    except psutil.NoSuchProcess:
        return
    for process in processes:
        try:
            spent, name, created = process.cpu_times(), process.name(), process.create_time()
        except psutil.NoSuchProcess:
            continue
        yield _Id(process.pid, created), name, float(spent.user + spent.system)


@dataclass(frozen=True)
class Pace:
    """`events` in `seconds` on the clock, with `cpu_seconds` of processor time over all processes that did the work."""

    events: int
    seconds: float
    cpu_seconds: float

    @property
    def per_second(self) -> float:
        """Events a second."""
        return self.events / self.seconds

    @property
    def per_core_second(self) -> float:
        """Events for a second of one core."""
        return self.events / self.cpu_seconds
