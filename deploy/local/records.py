"""What the supervisor writes to `run/` in the home: the process of each component, its state, its metrics endpoint.

A later command finds the processes there even after the supervisor was killed. A component leads a session of its own,
and everything it starts stays in it: Spark's Java, Spark's Python workers. A record holds the leader's pid and when it
started, so a pid that was reused is never touched.
"""

import os
import time
from collections.abc import Callable, Mapping
from enum import StrEnum
from pathlib import Path
from typing import Any, NamedTuple

import orjson
import psutil

from deploy.local.home import make_folder
from master_dataset.machine import boot_id, process_start

_SAME_INSTANT_SECONDS = 1.0


class Records:
    """The processes of one home, in `run/<name>.pid.json`."""

    def __init__(self, home: Path) -> None:
        """Create `home` if it does not exist. OperatorError if it cannot be used."""
        self._folder = home / "run"
        make_folder(home, self._folder)

    def write(self, name: str, pid: int) -> None:
        """Record a process that was just started."""
        _replace(self._path(name), _Record(pid, boot_id(), process_start(pid), self._inode())._asdict())

    def forget(self, name: str) -> None:
        """Remove the record of a process whose session has ended."""
        self._path(name).unlink(missing_ok=True)

    def names(self) -> list[str]:
        """Return the names of all recorded processes."""
        return sorted(path.name.removesuffix(".pid.json") for path in self._folder.glob("*.pid.json"))

    def pid(self, name: str) -> int | None:
        """Return the pid if that very process still runs, else None."""
        record = self._read(name)
        try:
            return record.pid if record and process_start(record.pid) == record.started else None
        except psutil.NoSuchProcess:
            return None

    def session(self, name: str) -> list[psutil.Process]:
        """Return every living process of the component's session, even if its leader has ended."""
        record = self._read(name)
        if record is None or (psutil.pid_exists(record.pid) and self.pid(name) is None):
            return []  # the pid was reused, which happens only after the whole session has ended
        return [each for each in psutil.process_iter() if _is_of(each, record)]

    def end(self, name: str, grace_seconds: float) -> None:
        """Terminate the leader, kill what is left of its session after the grace period, and remove the record."""
        pid = self.pid(name)
        if pid is not None:
            _send(psutil.Process(pid), psutil.Process.terminate)
        deadline = time.monotonic() + grace_seconds
        while pid is not None and self.pid(name) is not None and not _is_zombie(pid) and time.monotonic() < deadline:
            time.sleep(0.05)
        left = self.session(name)
        if (pid := self.pid(name)) is not None and not _is_zombie(pid):
            left.append(psutil.Process(pid))  # a supervisor in the foreground leads no session
        for process in left:
            _send(process, psutil.Process.kill)
        psutil.wait_procs(left, timeout=10)
        self.forget(name)

    def _read(self, name: str) -> "_Record | None":
        """The record, if it was made since the machine was started, and in this home: not in one that was copied."""
        values = _load(self._path(name))
        if values is None:
            return None
        record = self._of_former_release(**values) if "created" in values else _Record(**values)
        return record if (record.boot, record.inode) == (boot_id(), self._inode()) else None

    def _of_former_release(self, pid: int, created: float) -> "_Record":
        """Of a release before 0.1.0, which noted the time of the clock."""
        try:
            is_it = abs(psutil.Process(pid).create_time() - created) < _SAME_INSTANT_SECONDS
            return _Record(pid, boot_id() if is_it else "", process_start(pid), self._inode())
        except psutil.NoSuchProcess:
            return _Record(pid, boot_id(), 0.0, self._inode())  # children of its session may be left

    def _inode(self) -> int:
        return self._folder.stat().st_ino

    def _path(self, name: str) -> Path:
        return self._folder / f"{name}.pid.json"


def _replace(file: Path, value: object) -> None:
    """Replace a file. It is not flushed: all of them are about processes, which a power cut ends, too."""
    part = file.with_name(f"{file.name}.{os.getpid()}.part")
    part.write_bytes(orjson.dumps(value))
    part.replace(file)


def _load(file: Path) -> Any:  # noqa: ANN401 - any JSON
    """What a file holds; None if there is none, or a power cut has left it empty."""
    try:
        return orjson.loads(file.read_bytes())
    except (FileNotFoundError, orjson.JSONDecodeError):
        return None


class _Record(NamedTuple):
    """A process. `inode`: of the folder of its record, which differs in a copy of the home."""

    pid: int
    boot: str
    started: float
    inode: int


def _is_of(process: psutil.Process, record: _Record) -> bool:
    try:
        in_session = os.getsid(process.pid) == record.pid and process_start(process.pid) >= record.started
        return in_session and process.status() != psutil.STATUS_ZOMBIE
    except (OSError, psutil.Error):
        return False  # the process ended, or belongs to another user


def _is_zombie(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def _send(process: psutil.Process, how: Callable[[psutil.Process], None]) -> None:
    try:
        how(process)
    except psutil.NoSuchProcess:
        return


class State(StrEnum):
    """State of a component.

    `failed` waits for an operator; `backing_off` is started again; `unsupervised` runs, but its supervisor was killed.
    """

    STARTING = "starting"
    RUNNING = "running"
    BACKING_OFF = "backing_off"
    STOPPED = "stopped"
    FAILED = "failed"
    UNSUPERVISED = "unsupervised"


def write_states(home: Path, states: Mapping[str, State]) -> None:
    """Replace the states of all components by name, atomically."""
    _replace(home / "run" / "states.json", dict(states))


def read_states(home: Path) -> dict[str, State]:
    """Read the states by component name; empty if no stack was ever started here."""
    return {name: State(state) for name, state in (_load(home / "run" / "states.json") or {}).items()}


def write_metrics_target(home: Path, name: str, url: str) -> None:
    """Write the Prometheus target of a process (`file_sd_configs`), atomically. `url`: of its server."""
    scheme, _, address = url.partition("://")
    labels = {"component": name} | ({} if scheme == "http" else {"__scheme__": scheme})
    _replace(_metrics_target(home, name), [{"targets": [address], "labels": labels}])


def metrics_url(home: Path, name: str) -> str | None:
    """URL of the metrics of a process, also after it ended; None if it never served any."""
    for target in _load(_metrics_target(home, name)) or ():
        return f"{target['labels'].get('__scheme__', 'http')}://{target['targets'][0]}/metrics"
    return None


def _metrics_target(home: Path, name: str) -> Path:
    return home / "run" / f"{name}.targets.json"
