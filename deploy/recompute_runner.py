"""Recomputes and rollbacks that are requested over REST.

A recompute is recorded first, then passed to Airflow or to the runner of this process. The runner runs one at a time,
each in a child process. The child stays in the session of this process, so the supervisor ends both.
"""

import errno
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeVar

import structlog

from deploy.batch import rollback_of
from deploy.local.json_files import read_json, write_json
from master_dataset.cassandra_tables import CASSANDRA_UNAVAILABLE
from master_dataset.errors import (
    CassandraUnavailableError,
    DiskFullError,
    GalateaError,
    OperatorError,
    UnknownNameError,
)
from serving_layer.admin.publications import ENDS, RollbackResult
from serving_layer.errors import RecomputeInterruptedError, TooBusyError
from views.control.recompute import Problem, Recompute, RecomputeRequest, State, new_id

if TYPE_CHECKING:
    from deploy.settings import Settings


Result = TypeVar("Result")


class RecomputeRecords(Protocol):
    """The records of recomputes: `views.control.recompute.Recomputes`, or memory in tests."""

    def create(self, recompute: Recompute) -> None:
        """Write the record, before anything else is done."""

    def find(self, id_: str) -> Recompute:
        """UnknownNameError if there is none of that id."""

    def update(self, id_: str, state: State, **values: Problem | None) -> None:
        """Update the state and these columns."""


class Trigger(Protocol):
    """Runs recomputes: Airflow, or the runner of this process."""

    def trigger(self, recompute_id: str, request: RecomputeRequest, reason: str) -> None:
        """Run the recompute in the background. DependencyUnavailableError if it cannot be accepted now."""


@dataclass(frozen=True)
class Launch:
    """Starts the recomputes that REST requests."""

    recomputes: RecomputeRecords
    trigger: Trigger

    def start(self, request: RecomputeRequest, reason: str, by: str) -> str:
        """Record and trigger a recompute; returns its id. If nothing accepts it, the record says why."""
        id_ = new_id()
        with translated_driver_errors():
            self.recomputes.create(Recompute(id_, request, by, reason, datetime.now(UTC), "asked"))
        try:
            self.trigger.trigger(id_, request, reason)
        except GalateaError as error:
            with translated_driver_errors():
                self.recomputes.update(id_, "failed", problem=Problem.of(error))
            raise
        return id_


@contextmanager
def translated_driver_errors() -> Iterator[None]:
    """Raise CassandraUnavailableError if nodes fail or do not answer."""
    try:
        yield
    except CASSANDRA_UNAVAILABLE as error:
        message = f"Cassandra did not answer: {type(error).__name__}."
        raise CassandraUnavailableError(message, do="Try again; `galatea status` shows what is wrong.") from error


_NO_ROOM = {errno.ENOSPC, errno.EDQUOT}


class UnfinishedRecomputes:
    """The accepted ids that are not finished, in order, in a file that outlives the process. Thread-safe."""

    def __init__(self, path: Path) -> None:
        """`path`: the file; only one process writes it."""
        self._path, self._lock = path, threading.Lock()
        path.parent.mkdir(parents=True, exist_ok=True)

    def ids(self) -> Sequence[str]:
        """The unfinished ones."""
        do = "delete the file, then start recomputes that were not finished again"
        found: list[str] = read_json(self._path, [], do)
        return found

    def add(self, id_: str, at_most: int) -> bool:
        """Add an id, unless there are `at_most` already. OperatorError if the file cannot be written."""
        with self._lock:
            ids = self.ids()
            if len(ids) >= at_most:
                return False
            try:
                self._write([*ids, id_])
            except OSError as error:
                message = f"`{self._path}` cannot be written ({error.strerror}), so no recompute is accepted"
                kind = DiskFullError if error.errno in _NO_ROOM else OperatorError
                raise kind(
                    message, do="free some space or correct the permissions where GALATEA_HOME is, then try again"
                ) from error
            return True

    def remove(self, id_: str) -> None:
        """Remove a finished one."""
        with self._lock:
            self._write([each for each in self.ids() if each != id_])

    def _write(self, ids: Sequence[str]) -> None:
        write_json(self._path, ids)


AT_MOST = 100
"""Maximum number of waiting recomputes, including the running one."""
GRACE_SECONDS = 5.0
RETRY_SECONDS = 5.0
"""Until a step that failed for want of Cassandra, a process or disk space is tried again."""

log = structlog.get_logger()


def rebuild_command(recompute: Recompute) -> list[str]:
    """The command that runs the recompute."""
    return [
        sys.executable,
        "-m",
        "galatea.cli.main",
        "rebuild",
        *recompute.request.views,
        *recompute.request.options(),
        f"--id={recompute.id}",
        f"--why={recompute.why}",
        f"--by={recompute.requested_by}",
        "--json",
    ]


class Runner:
    """A Trigger that runs recomputes here. The output of its commands is in `logs/recompute.log`."""

    def __init__(
        self,
        recomputes: RecomputeRecords,
        home: Path,
        environment: Mapping[str, str],
        command: Callable[[Recompute], Sequence[str]] = rebuild_command,
        *,
        process: str = "api",
    ) -> None:
        """Prepare the runner of one process.

        Args:
            recomputes: their records.
            home: the home.
            environment: the settings, added to this process's own variables.
            command: makes the command of a recompute.
            process: the name of this process. Each has a list of its own, so that none settles what another one runs.
        """
        self._recomputes, self._command, self._environment = recomputes, command, environment
        self._log = home / "logs" / "recompute.log"
        self._log.parent.mkdir(parents=True, exist_ok=True)
        self._unfinished = UnfinishedRecomputes(home / "run" / f"recomputes{process.removeprefix('api')}.json")
        self._pool = ThreadPoolExecutor(1, "recompute")
        self._lock = threading.Lock()
        self._child: subprocess.Popen[bytes] | None = None
        self._stopping = threading.Event()

    def start(self) -> None:
        """Mark recomputes that the previous process accepted but did not finish as `failed`."""
        for id_ in self._unfinished.ids():
            settle = partial(self._settle, id_, "was stopped together with the service")
            self._later(partial(self._patiently, settle))

    def trigger(self, recompute_id: str, request: RecomputeRequest, reason: str) -> None:  # noqa: ARG002 - the record says it too
        """Queue a recompute. TooBusyError if too many are waiting."""
        if not self._unfinished.add(recompute_id, AT_MOST):
            raise TooBusyError(f"{AT_MOST} recomputes are already waiting.", do="Try again when some of them are done.")
        self._later(partial(self._do, recompute_id))

    @property
    def is_busy(self) -> bool:
        """Whether a recompute runs here or waits for its turn."""
        return bool(self._unfinished.ids())

    def stop(self) -> None:
        """End the running one and start no other. The next start marks them as failed."""
        with self._lock:
            self._stopping.set()
            child = self._child
        self._pool.shutdown(wait=False, cancel_futures=True)
        if child is None:
            return
        _send(child, signal.SIGTERM)
        try:
            child.wait(GRACE_SECONDS)
        except subprocess.TimeoutExpired:
            _send(child, signal.SIGKILL)

    def wait(self) -> None:
        """Wait until everything accepted so far is done."""
        self._pool.submit(lambda: None).result()

    def _do(self, id_: str) -> None:
        try:
            child = self._patiently(partial(self._begin, id_))
        except UnknownNameError:  # its row no longer exists, so there is nothing to run
            self._patiently(partial(self._unfinished.remove, id_))
            return
        if child is None:
            return
        log.info("recompute.started", recompute=id_, pid=child.pid)
        code = child.wait()
        log.info("recompute.ended", recompute=id_, code=code)
        self._patiently(partial(self._settle, id_, f"ended with exit code {code}"))

    def _begin(self, id_: str) -> "subprocess.Popen[bytes] | None":
        """Start its process. None if this runner stops."""
        recompute = self._recomputes.find(id_)
        with self._log.open("ab") as out, self._lock:
            if self._stopping.is_set():
                return None
            self._child = subprocess.Popen(  # noqa: S603 - our own command, no shell
                self._command(recompute),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                process_group=0,
                env={**os.environ, **self._environment},
            )
            return self._child

    def _patiently(self, step: Callable[[], Result]) -> Result:
        """Try a step until it succeeds or this runner stops.

        A recompute that is neither run nor settled would seem to be under way, and no prompt correction would start.
        """
        while True:
            try:
                return step()
            except (*CASSANDRA_UNAVAILABLE, CassandraUnavailableError, OSError) as error:
                log.warning("recompute.tried_again", error=f"{type(error).__name__}: {error}")
                if self._stopping.wait(RETRY_SECONDS):
                    raise

    def _settle(self, id_: str, how: str) -> None:
        """Make sure that the record says how the recompute ended, whatever happened to its process."""
        try:
            state = self._recomputes.find(id_).state
        except UnknownNameError:
            state = "failed"  # its row no longer exists, so there is nothing to run
        if state not in ENDS:
            message = f"The process of recompute `{id_}` {how} while it was `{state}`."
            error = RecomputeInterruptedError(message, do=f"read `{self._log}`, then: galatea rebuild --id {id_}")
            self._recomputes.update(id_, "failed", problem=Problem.of(error))
        self._unfinished.remove(id_)

    def _later(self, work: Callable[[], None]) -> None:
        self._pool.submit(work).add_done_callback(_log_failure)


def _log_failure(done: "Future[None]") -> None:
    """Log it. The file still names the recompute, so the next start marks it as failed."""
    if not done.cancelled() and (error := done.exception()):
        log.error("recompute.not_settled", exc_info=error)


def _send(child: "subprocess.Popen[bytes]", number: signal.Signals) -> None:
    try:
        os.killpg(child.pid, number)
    except ProcessLookupError:
        return  # the child ended in the meantime


@dataclass(frozen=True)
class RestRollback:
    """Rollbacks over REST, done at once or refused: building a generation takes longer than a request may."""

    settings: "Settings"

    def run(self, number: int, why: str, by: str, *, dry_run: bool) -> RollbackResult:
        """Roll back. RollbackTooFarError if a generation would have to be built first."""
        with translated_driver_errors():
            done = rollback_of(self.settings, builds=False).run(number, why, by, self, dry_run=dry_run)
        return RollbackResult(done.publication, done.restores, done.cut, done.generation, done.partitions, done.dry_run)

    @staticmethod
    def step(done: int, total: int, what: str) -> None:
        """Log a step."""
        log.info("rollback.step", done=done, total=total, what=what)
