"""Processor time: on a machine that others use it says more than seconds on a clock."""

import psutil


def cpu_seconds(pid: int | None = None) -> float:
    """Of this process (or that of the pid) and of everything below it, also what has ended meanwhile."""
    leader = psutil.Process(pid)
    return sum(map(_spent, (leader, *leader.children(recursive=True))))


def _spent(process: psutil.Process) -> float:
    try:
        spent = process.cpu_times()
    except psutil.NoSuchProcess:
        return 0.0  # its parent has it from now on
    return float(spent.user + spent.system + spent.children_user + spent.children_system)
