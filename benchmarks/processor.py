"""CPU time of a process tree. On a shared machine it is more reliable than wall-clock time."""

import threading
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple, Self

import psutil

SAMPLE_SECONDS = 0.2


class ProcessId(NamedTuple):
    """A pid may be reused; together with the creation time it identifies one process."""

    pid: int
    created: float


class Meter:
    """Measures the CPU seconds of a process and all its descendants while the `with` block runs.

    The processes are sampled, and what a process used between two samples is added up, so the result never decreases.
    The difference of two sums over the living processes could: when a process ends whose parent has ended before it or
    ignores its children, its seconds are missing from the second sum. Processes that live for less than
    `SAMPLE_SECONDS` are missed.
    """

    def __init__(self, pid: int | None = None) -> None:
        """`pid`: the root of the tree; None: this process."""
        self._pid = pid
        self._last: dict[ProcessId, float] = {}
        self._spent: defaultdict[str, float] = defaultdict(float)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._sampling = threading.Lock()

    def __enter__(self) -> Self:
        """Start to measure."""
        self._last = {id_: spent for id_, _, spent in _tree(self._pid)}
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop to measure; the figures stay."""
        self._sample()
        self._stop.set()
        self._thread.join()

    @property
    def seconds(self) -> float:
        """CPU seconds, user and system, up to now or to the end of the block."""
        return sum(self.by_program().values())

    def by_program(self) -> dict[str, float]:
        """The same, for `java` and for everything else (`python`), by the name of a process when it was sampled."""
        if not self._stop.is_set():
            self._sample()
        return {program: self._spent[program] for program in ("java", "python")}

    def _watch(self) -> None:
        while not self._stop.wait(SAMPLE_SECONDS):
            self._sample()

    def _sample(self) -> None:
        with self._sampling:
            for id_, name, spent in _tree(self._pid):
                last = self._last.get(id_, 0.0)
                if spent > last:
                    self._last[id_] = spent
                    self._spent["java" if "java" in name else "python"] += spent - last


def _tree(pid: int | None) -> Iterator[tuple[ProcessId, str, float]]:
    """The living processes of a tree, with their names and CPU seconds."""
    try:
        root = psutil.Process(pid)
        processes = (root, *root.children(recursive=True))
    except psutil.NoSuchProcess:
        return
    for process in processes:
        try:
            spent, name, created = process.cpu_times(), process.name(), process.create_time()
        except psutil.NoSuchProcess:
            continue
        yield ProcessId(process.pid, created), name, float(spent.user + spent.system)


@dataclass(frozen=True)
class Pace:
    """`events` read in `seconds`, with `cpu_seconds` of CPU time over all processes that did the work."""

    events: int
    seconds: float
    cpu_seconds: float

    @property
    def per_second(self) -> float:
        """Events per second."""
        return self.events / self.seconds

    @property
    def per_core_second(self) -> float:
        """Events per second of CPU time."""
        return self.events / self.cpu_seconds
