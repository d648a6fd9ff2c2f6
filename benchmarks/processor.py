"""Processor time: on a machine that others use it says more than seconds on a clock."""

from collections.abc import Iterator

import psutil


def cpu_seconds(pid: int | None = None) -> float:
    """Of this process (or that of the pid) and of everything below it, also what has ended meanwhile."""
    return sum(spent for _, spent in _tree(pid))


def cpu_seconds_by_program(pid: int | None) -> dict[str, float]:
    """The same for its Java and for its Python apart."""
    found = {"java": 0.0, "python": 0.0}
    for name, spent in _tree(pid):
        found["java" if "java" in name else "python"] += spent
    return found


def _tree(pid: int | None) -> Iterator[tuple[str, float]]:
    leader = psutil.Process(pid)
    for process in (leader, *leader.children(recursive=True)):
        try:
            spent, name = process.cpu_times(), process.name()
        except psutil.NoSuchProcess:
            continue  # its parent has it from now on
        yield name, float(spent.user + spent.system + spent.children_user + spent.children_system)
