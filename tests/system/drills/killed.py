"""`python -m tests.system.drills.killed`: kills a recompute at ten failpoints, at Airflow's worker and the supervisor.

The recompute is resumed each time, while a reader checks that it never sees half of it. The stack has Airflow. Each
case prints one line and is appended to the ledger `killed`.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import psutil

from deploy.airflow.client import AirflowClient
from deploy.local.ports import free_ports
from deploy.local.records import Records
from tests.integration.conftest import PATIENCE_SECONDS, Stack, around_now, settings_of
from tests.integration.test_ledger import Sent, send
from tests.system.drills.faults import exit_on_sigterm, wait_until
from tests.system.drills.ledger_line import append
from views.control.recompute import RecomputeRequest

CRASHES = (
    "rebuild.marked:1",
    "rebuild.blocks:1",
    "rebuild.view:1",
    "rebuild.view:2",
    "rebuild.view:3",
    "rebuild.manifest:1",
    "rebuild.ledger:1",
    "rebuild.published:1",
    "rebuild.judged:1",
    "rebuild.alerts:1",
)
PATHS = ("/v1/metrics/net_sales", "/v1/metrics/avg_items_per_transaction")


class Hammer:
    """A reader that asks as fast as it is answered, and keeps every different answer by its publication."""

    def __init__(self, stack: Stack, stores: Sequence[str]) -> None:
        self._stack, self._stores = stack, list(stores)
        self.seen: dict[int, set[str]] = {}
        self.requests = self.refused = 0
        self._failed: list[BaseException] = []

    def _ask(self) -> None:
        for path in PATHS:
            try:
                body = self._stack.get(path, grain="day", store=self._stores, **around_now())
            except (httpx.TransportError, AssertionError) as error:  # down, or an answer that is no 200
                if isinstance(error, AssertionError) and '"status":503' not in str(error):
                    raise
                self.refused += 1
                continue
            publication = body.pop("as_of")["publication"]
            self.seen.setdefault(publication, set()).add(path + json.dumps(body, sort_keys=True))
            self.requests += 1

    @contextmanager
    def asking(self) -> Iterator[None]:
        """While the caller does something else."""
        over = threading.Event()

        def run() -> None:
            try:
                while not over.is_set():
                    self._ask()
            except BaseException as error:  # noqa: BLE001 - raised by the caller's own thread
                self._failed.append(error)

        thread = threading.Thread(target=run)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()
        if self._failed:
            raise self._failed[0]

    @property
    def mixed(self) -> int:
        """How many answers there were of a publication beside the one that it has."""
        return sum(len(answers) - len(PATHS) for answers in self.seen.values())


def rebuilt(stack: Stack, id_: str, *, crash_at: str = "", after: float | None = None) -> int:
    """The exit code of one attempt: at a failpoint, killed after so many seconds, or to its end."""
    process = subprocess.Popen(
        [sys.executable, "-m", "galatea.cli.main", "rebuild", "--wait", "--id", id_],
        env={**stack.environment, "GALATEA_CRASH_AT": crash_at},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        process.communicate(timeout=after or PATIENCE_SECONDS)
    except subprocess.TimeoutExpired:
        if after is None:
            raise
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
    return process.returncode


STORES = ("killed-1", "killed-2")
AFTER_SECONDS = (2.5, 5.0)
WORKER_MOMENTS = (("plan", 0.5), ("compute", 1.0), ("compute", 6.0), ("publish", 0.5))
SUPERVISOR_MOMENTS = (("compute", 2.0), ("compute", 7.0))
QUICK = {
    "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT": "20",
    "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT_DETECTION_INTERVAL": "5",
}
"""Airflow waits five minutes for a worker that says nothing; a drill does not."""


@dataclass(frozen=True)
class Line:
    """What came of one target. `publications`: how many the recompute has made."""

    target: str
    kills: int
    requests: int
    refused: int
    mixed: int
    publications: int
    differing: int
    seconds: float

    @property
    def is_well(self) -> bool:
        return (self.mixed, self.publications, self.differing) == (0, 1, 0)


class Killed:
    """On one stack."""

    def __init__(self, stack: Stack) -> None:
        self._stack, self._sent = stack, 0
        self._client = AirflowClient.of(stack.settings)

    def lines(self) -> Iterator[Line]:
        """One after the other."""
        yield self._hurt("command", self._command)
        yield self._hurt("worker", lambda id_: self._scheduled(id_, WORKER_MOMENTS, self._kill_worker))
        yield self._hurt("supervisor", lambda id_: self._scheduled(id_, SUPERVISOR_MOMENTS, self._kill_supervisor))

    def _hurt(self, target: str, kill: Callable[[str], int]) -> Line:
        began = time.monotonic()
        self._sell()
        self._stack.galatea("rebuild", "--wait")
        self._sell()
        self._stack.galatea("verify")  # until both layers have read them
        before = self._stack.galatea("publications")["publications"][0]["publication"]
        hammer = Hammer(self._stack, STORES)
        with hammer.asking():
            kills = kill(f"killed-{target}")
        after = self._stack.galatea("publications")["publications"][0]["publication"]
        differing = self._stack.galatea("verify")["differing"]
        seconds = round(time.monotonic() - began, 1)
        return Line(target, kills, hammer.requests, hammer.refused, hammer.mixed, after - before, differing, seconds)

    def _sell(self) -> None:
        """Today and on two days before, which waits for batch."""
        self._sent += 1
        now = datetime.now(UTC).replace(microsecond=0)
        days = [now - timedelta(days=age) for age in range(3)]
        send(self._stack, [Sent(store, self._sent, day, float(self._sent)) for store in STORES for day in days])()

    def _command(self, id_: str) -> int:
        ends = [rebuilt(self._stack, id_, after=seconds) for seconds in AFTER_SECONDS]
        ends += [rebuilt(self._stack, id_, crash_at=point) for point in CRASHES]
        if rebuilt(self._stack, id_) != 0:
            raise RuntimeError("the last attempt failed")
        return sum(end != 0 for end in ends)

    def _scheduled(
        self, id_: str, moments: tuple[tuple[str, float], ...], kill: Callable[[psutil.Process], None]
    ) -> int:
        """How many processes were killed: one may end by itself before its moment comes."""
        self._client.trigger(id_, RecomputeRequest(), "a drill")
        killed = 0
        for step, after in moments:
            process = self._found(step, id_)
            time.sleep(after)
            with suppress(psutil.NoSuchProcess, ProcessLookupError):
                kill(process)
                killed += 1
        self._until(lambda: self._client.state(id_) in {"success", "failed"}, "the DAG run to end")
        if self._client.state(id_) != "success":
            raise RuntimeError(f"the DAG run `{id_}` failed")
        if not killed:
            raise RuntimeError(f"nothing was killed in the DAG run `{id_}`")
        return killed

    def _found(self, step: str, id_: str) -> psutil.Process:
        """The command of a task. A later try of `publish` does all three steps."""
        found: list[psutil.Process] = []

        def is_there() -> bool:
            for process in psutil.process_iter(["cmdline"]):
                words = process.info["cmdline"] or []
                if any(id_ in word for word in words) and {step, "rebuild"} & set(words):
                    found.append(process)
            return bool(found)

        self._until(is_there, f"`{step}` of {id_}")
        return found[-1]

    @staticmethod
    def _kill_worker(process: psutil.Process) -> None:
        """With the task that it ran, and what that has started."""
        task, group = process.parent(), os.getpgid(process.pid)
        worker = task.parent() if task else None
        os.killpg(group, signal.SIGKILL)
        with suppress(psutil.NoSuchProcess):
            if worker and "airflow" in " ".join(worker.cmdline()):
                worker.kill()

    def _kill_supervisor(self, _: psutil.Process) -> None:
        """And start the stack again, as somebody does who finds it gone."""
        pid = Records(self._stack.settings.home).pid("supervisor")
        if pid is not None:
            os.kill(pid, signal.SIGKILL)
        time.sleep(1)
        self._stack.run("up", "--detach")

    @staticmethod
    def _until(is_so: Callable[[], bool], what: str) -> None:
        wait_until(is_so, what)


def main() -> int:
    """Exit 1 if a reader saw half a publication, or there is more than one, or none."""
    exit_on_sigterm()
    port = free_ports(1)[0]
    with tempfile.TemporaryDirectory(prefix="galatea-drill-") as folder:
        own = {"GALATEA_AIRFLOW_PORT": str(port), "GALATEA_REBUILD_SCHEDULE": "0 0 1 1 *"}
        settings, environment = settings_of(Path(folder) / "home", **own)
        stack = Stack(settings, environment | QUICK)
        lines = []
        try:
            stack.run("up", "--detach")
            for line in Killed(stack).lines():
                lines.append(line)
                sys.stdout.write(json.dumps(asdict(line)) + "\n")
                sys.stdout.flush()
        finally:
            stack.run("down")
    for line in lines:
        append("killed", json.dumps({"at": f"{datetime.now(UTC):%F}", **asdict(line)}))
    return int(not all(line.is_well for line in lines))


if __name__ == "__main__":
    sys.exit(main())
