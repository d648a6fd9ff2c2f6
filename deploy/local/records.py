"""What the supervisor writes to `run/` in the home: the process of each component, its state, its metrics endpoint.

A later command finds the processes there even after the supervisor was killed. A component leads a session of its own,
and everything it starts stays in it: Spark's Java, Spark's Python workers. A record holds the leader's pid and its
creation time, so a pid that was reused is never touched.
"""

import os
import time
from collections.abc import Callable, Mapping
from enum import StrEnum
from pathlib import Path

import orjson
import psutil

from deploy.local.home import make_folder

_SAME_INSTANT_SECONDS = 1.0


class Records:
    """The processes of one home, in `run/<name>.pid.json`."""

    def __init__(self, home: Path) -> None:
        """Create `home` if it does not exist. OperatorError if it cannot be used."""
        self._folder = home / "run"
        make_folder(home, self._folder)

    def write(self, name: str, pid: int) -> None:
        """Record a process that was just started."""
        record = {"pid": pid, "created": psutil.Process(pid).create_time()}
        part = self._path(name).with_suffix(".part")
        part.write_bytes(orjson.dumps(record))
        part.replace(self._path(name))

    def forget(self, name: str) -> None:
        """Remove the record of a process whose session has ended."""
        self._path(name).unlink(missing_ok=True)

    def names(self) -> list[str]:
        """Return the names of all recorded processes."""
        return sorted(path.name.removesuffix(".pid.json") for path in self._folder.glob("*.pid.json"))

    def pid(self, name: str) -> int | None:
        """Return the pid if that very process still runs, else None."""
        try:
            record = orjson.loads(self._path(name).read_bytes())
            created = psutil.Process(record["pid"]).create_time()
        except (FileNotFoundError, psutil.NoSuchProcess):
            return None
        return record["pid"] if abs(created - record["created"]) < _SAME_INSTANT_SECONDS else None

    def session(self, name: str) -> list[psutil.Process]:
        """Return every living process of the component's session, even if its leader has ended."""
        try:
            record = orjson.loads(self._path(name).read_bytes())
        except FileNotFoundError:
            return []
        if psutil.pid_exists(record["pid"]) and self.pid(name) is None:
            return []  # the pid was reused, which happens only after the whole session has ended
        return [each for each in psutil.process_iter() if _is_of(each, record["pid"], record["created"])]

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

    def _path(self, name: str) -> Path:
        return self._folder / f"{name}.pid.json"


def _is_of(process: psutil.Process, leader: int, created: float) -> bool:
    try:
        in_session = os.getsid(process.pid) == leader and process.create_time() >= created - _SAME_INSTANT_SECONDS
        return in_session and process.status() != psutil.STATUS_ZOMBIE
    except (OSError, psutil.Error):
        return False  # it has ended, or belongs to another user


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
    """State of a component. `failed` waits for an operator; `backing_off` is started again."""

    STARTING = "starting"
    RUNNING = "running"
    BACKING_OFF = "backing_off"
    STOPPED = "stopped"
    FAILED = "failed"


def write_states(home: Path, states: Mapping[str, State]) -> None:
    """Replace the states of all components by name, atomically."""
    file = home / "run" / "states.json"
    part = file.with_suffix(f".{os.getpid()}.part")
    part.write_bytes(orjson.dumps(dict(states)))
    part.replace(file)


def read_states(home: Path) -> dict[str, State]:
    """Read the states by component name; empty if no stack was ever started here."""
    file = home / "run" / "states.json"
    return {name: State(state) for name, state in orjson.loads(file.read_bytes()).items()} if file.exists() else {}


def write_metrics_target(home: Path, name: str, url: str) -> None:
    """Write the Prometheus target of a process (`file_sd_configs`), atomically. `url`: of its server."""
    scheme, _, address = url.partition("://")
    labels = {"component": name} | ({} if scheme == "http" else {"__scheme__": scheme})
    file = _metrics_target(home, name)
    part = file.with_suffix(".part")
    part.write_bytes(orjson.dumps([{"targets": [address], "labels": labels}]))
    part.replace(file)


def metrics_url(home: Path, name: str) -> str | None:
    """URL of the metrics of a process, also after it ended; None if it never served any."""
    file = _metrics_target(home, name)
    if not file.exists():
        return None
    [target] = orjson.loads(file.read_bytes())
    return f"{target['labels'].get('__scheme__', 'http')}://{target['targets'][0]}/metrics"


def _metrics_target(home: Path, name: str) -> Path:
    return home / "run" / f"{name}.targets.json"
