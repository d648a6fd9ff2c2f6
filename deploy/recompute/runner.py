"""Does recomputes where no scheduler does: one after another, each in a process of its own that ends with this one.

Such a process stays in the session of this one, so whatever becomes of this one, the supervisor ends both.
"""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path

import structlog

from batch_layer.recompute.recompute import Recompute
from batch_layer.recompute.unfinished import Unfinished
from deploy.recompute.launch import Kept, problem_of
from master_dataset.errors import UnknownName
from serving_layer.admin.recomputes import ENDS
from serving_layer.errors import RecomputeInterrupted, TooBusy
from views.control.recompute_request import RecomputeRequest

AT_MOST = 100
"""So many may wait, the one that is under way included."""
GRACE_SECONDS = 5.0

log = structlog.get_logger()


def rebuild_command(recompute: Recompute) -> list[str]:
    """The command that does it."""
    return [
        sys.executable,
        "-m",
        "galatea.cli.main",
        "rebuild",
        *recompute.asked.views,
        *recompute.asked.options(),
        f"--id={recompute.id}",
        f"--why={recompute.why}",
        f"--by={recompute.asked_by}",
        "--json",
    ]


class Runner:
    """Trigger. What its commands say stands in `logs/recompute.log`."""

    def __init__(
        self,
        recomputes: Kept,
        home: Path,
        environment: Mapping[str, str],
        command: Callable[[Recompute], Sequence[str]] = rebuild_command,
    ) -> None:
        """`environment`: the settings, on top of this process's own variables."""
        self._recomputes, self._command, self._environment = recomputes, command, environment
        self._log = home / "logs" / "recompute.log"
        self._log.parent.mkdir(parents=True, exist_ok=True)
        self._unfinished = Unfinished(home / "run" / "recomputes.json")
        self._pool = ThreadPoolExecutor(1, "recompute")
        self._lock = threading.Lock()
        self._child: subprocess.Popen[bytes] | None = None
        self._is_stopping = False

    def start(self) -> None:
        """Say `failed` of those that the process before this one took and did not finish."""
        for id_ in self._unfinished.ids():
            self._later(partial(self._settle, id_, "ended with the service"))

    def trigger(self, recompute_id: str, request: RecomputeRequest, reason: str) -> None:  # noqa: ARG002 - the record says it too
        """Do it when those before it are done. TooBusy if too many wait."""
        if not self._unfinished.add(recompute_id, AT_MOST):
            raise TooBusy(f"{AT_MOST} recomputes wait already.", do="Ask again when some of them are done.")
        self._later(partial(self._do, recompute_id))

    def stop(self) -> None:
        """End the one that is under way and begin no other; the next start settles them."""
        with self._lock:
            self._is_stopping = True
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
        """Until everything that was taken so far is done."""
        self._pool.submit(lambda: None).result()

    def _do(self, id_: str) -> None:
        recompute = self._recomputes.find(id_)
        with self._log.open("ab") as out, self._lock:
            if self._is_stopping:
                return
            self._child = subprocess.Popen(  # noqa: S603 - our own command, no shell
                self._command(recompute),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                process_group=0,
                env={**os.environ, **self._environment},
            )
        log.info("recompute.started", recompute=id_, pid=self._child.pid)
        code = self._child.wait()
        log.info("recompute.ended", recompute=id_, code=code)
        self._settle(id_, f"ended with exit code {code}")

    def _settle(self, id_: str, how: str) -> None:
        """Whatever became of its process, a recompute says so itself."""
        try:
            state = self._recomputes.find(id_).state
        except UnknownName:
            state = "failed"  # its row is gone, so nobody waits for it
        if state not in ENDS:
            message = f"The process of recompute `{id_}` {how} while it was `{state}`."
            error = RecomputeInterrupted(message, do=f"read `{self._log}`, then: galatea rebuild --id {id_}")
            self._recomputes.update(id_, "failed", problem=problem_of(error))
        self._unfinished.remove(id_)

    def _later(self, work: Callable[[], None]) -> None:
        self._pool.submit(work).add_done_callback(_tell)


def _tell(done: "Future[None]") -> None:
    """The store did not answer, or worse: the file still names it, and the next start settles it."""
    if not done.cancelled() and (error := done.exception()):
        log.error("recompute.not_settled", exc_info=error)


def _send(child: "subprocess.Popen[bytes]", number: signal.Signals) -> None:
    try:
        os.killpg(child.pid, number)
    except ProcessLookupError:
        return  # it has ended meanwhile
