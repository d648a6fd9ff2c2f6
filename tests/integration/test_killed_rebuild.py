"""A rebuild killed at ten moments, each time taken up again: readers see whole publications, and one is made."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

from deploy.cassandra import connect
from tests.integration.conftest import PATIENCE_SECONDS, Stack, around_now
from tests.integration.test_ledger import Sent, send

STORE, OTHER = STORES = ("killed-1", "killed-2")
NOW = datetime.now(UTC).replace(microsecond=0)
DAYS = [NOW - timedelta(days=age) for age in range(3)]
CRASHES = (
    "rebuild.marked:1", "rebuild.blocks:1", "rebuild.view:1", "rebuild.view:2", "rebuild.view:3", "rebuild.manifest:1",
    "rebuild.ledger:1", "rebuild.published:1",
)  # fmt: skip
KILLED_AFTER_SECONDS = (2.5, 5.0)
ID = "killed-at-ten-moments"


class Hammer:
    """A reader that asks as fast as it is answered, and keeps every different answer by its publication."""

    def __init__(self, stack: Stack) -> None:
        self._stack = stack
        self.seen: dict[int, set[str]] = {}
        self.asked = 0

    def ask(self) -> None:
        for path in ("/v1/metrics/net_sales", "/v1/metrics/avg_items_per_transaction"):
            body = self._stack.get(path, grain="day", store=list(STORES), **around_now())
            publication = body.pop("as_of")["publication"]
            self.seen.setdefault(publication, set()).add(path + json.dumps(body, sort_keys=True))
            self.asked += 1

    @contextmanager
    def asking(self) -> Iterator[None]:
        over = threading.Event()
        failed: list[BaseException] = []

        def run() -> None:
            try:
                while not over.is_set():
                    self.ask()
            except BaseException as error:  # noqa: BLE001 - raised by the test's own thread
                failed.append(error)

        thread = threading.Thread(target=run)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()
        assert failed == []


def rebuilt(stack: Stack, *, crash_at: str = "", after: float | None = None) -> int:
    """The exit code of one attempt: at a crash point, killed after so many seconds, or to its end."""
    process = subprocess.Popen(
        [sys.executable, "-m", "deploy.cli.main", "rebuild", "--wait", "--id", ID],
        env={**stack.environment, "GALATEA_CRASH_AT": crash_at}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        start_new_session=True,
    )  # fmt: skip
    try:
        process.communicate(timeout=after or PATIENCE_SECONDS)
    except subprocess.TimeoutExpired:
        assert after, "an attempt hangs"
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
    return process.returncode


def publications(stack: Stack) -> list[Any]:
    session = connect(["127.0.0.1"], stack.settings.cassandra_port, "galatea")
    rows = [row for row in session.execute("SELECT * FROM publications") if row.manifest.startswith(ID)]
    session.cluster.shutdown()
    return rows


def test_readers_see_whole_publications_and_one_is_made_wherever_a_rebuild_is_killed(stack: Stack) -> None:
    send(stack, [Sent(store, 1, day, 1.0) for store in STORES for day in DAYS])()
    base = stack.galatea("rebuild", "--wait")["publication"]
    send(stack, [Sent(store, 2, day, 2.0) for store in STORES for day in DAYS])()  # those of old days wait
    stack.galatea("verify")  # until both layers have read them
    hammer = Hammer(stack)

    with hammer.asking():
        ends = [rebuilt(stack, after=seconds) for seconds in KILLED_AFTER_SECONDS]
        ends += [rebuilt(stack, crash_at=point) for point in CRASHES]
        last = rebuilt(stack)
        time.sleep(0.5)

    assert all(end != 0 for end in ends)
    assert last == 0
    [made] = publications(stack)
    assert set(hammer.seen) == {base, made.publication}
    assert made.publication == base + 1
    assert {number: len(answers) for number, answers in hammer.seen.items()} == {base: 2, base + 1: 2}
    assert hammer.seen[base] != hammer.seen[base + 1]
    assert stack.galatea("verify")["differing"] == 0
