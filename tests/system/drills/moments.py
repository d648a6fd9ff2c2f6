"""A recompute is killed at many moments and taken up again, while a reader looks whether it ever sees half of it.

`python -m tests.system.drills.killed` does it to all: the command, Airflow's worker and the supervisor; see
docs/explanation/drills.md.
"""

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import httpx

from tests.integration.conftest import PATIENCE_SECONDS, Stack, around_now

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
ASKED = ("/v1/metrics/net_sales", "/v1/metrics/avg_items_per_transaction")


class Hammer:
    """A reader that asks as fast as it is answered, and keeps every different answer by its publication."""

    def __init__(self, stack: Stack, stores: Sequence[str]) -> None:
        self._stack, self._stores = stack, list(stores)
        self.seen: dict[int, set[str]] = {}
        self.asked = self.refused = 0
        self._failed: list[BaseException] = []

    def _ask(self) -> None:
        for path in ASKED:
            try:
                body = self._stack.get(path, grain="day", store=self._stores, **around_now())
            except (httpx.TransportError, AssertionError) as error:  # down, or an answer that is no 200
                if isinstance(error, AssertionError) and '"status":503' not in str(error):
                    raise
                self.refused += 1
                continue
            publication = body.pop("as_of")["publication"]
            self.seen.setdefault(publication, set()).add(path + json.dumps(body, sort_keys=True))
            self.asked += 1

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
    def torn(self) -> int:
        """How many answers there were of a publication beside the one that it has."""
        return sum(len(answers) - len(ASKED) for answers in self.seen.values())


def rebuilt(stack: Stack, id_: str, *, crash_at: str = "", after: float | None = None) -> int:
    """The exit code of one attempt: at a crash point, killed after so many seconds, or to its end."""
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
