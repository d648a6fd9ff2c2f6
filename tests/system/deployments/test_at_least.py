"""At least mine, while processes are killed: no answer lacks what its client has sent or seen before.

Each writer posts a receipt for each of its stores and asks for them at once, again and again. Meanwhile a process of
the API or of the speed layer is killed, or suspended for longer than its lease. Requests that fail are sent again; only
answers count. A store with other numbers than the receipts that were sent is a violation.

`AT_LEAST_PAIRS` is how many receipts are sent and asked for, `AT_LEAST_WRITERS` how many writers share them,
and `AT_LEAST_STORES` how many stores each writer has. `AT_LEAST_SEED` says which processes are hurt, and
`AT_LEAST_SECONDS_BETWEEN_FAULTS` how often.
"""

import os
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime
from random import Random
from typing import TYPE_CHECKING, TypeVar

import psutil
import pytest

from deploy.local.records import Records
from deploy.services.shared_work import LEASE_SECONDS
from galatea.client import Client
from galatea.client.errors import ClientError
from tests.integration.conftest import PATIENCE_SECONDS, Stack, around_now, settings_of, started
from tests.support import receipt

if TYPE_CHECKING:
    from collections.abc import Callable

Found = TypeVar("Found")

PAIRS = int(os.environ.get("AT_LEAST_PAIRS", "2000"))
WRITERS = int(os.environ.get("AT_LEAST_WRITERS", "16"))
STORES = int(os.environ.get("AT_LEAST_STORES", "1"))
ROUNDS = PAIRS // (WRITERS * STORES)
ROUNDS_PER_REPORT = 5
"""Rounds between two lines on what has happened so far."""
SEED = int(os.environ.get("AT_LEAST_SEED", "11"))
NAMES = ("api", "api-2", "speed", "speed-2")
BETWEEN_SECONDS = float(os.environ.get("AT_LEAST_SECONDS_BETWEEN_FAULTS", "5"))
TOPIC = "pos_transactions"
METRICS = ("net_sales", "sku_net_sales")
"""Of two views. Together they count only complete micro-batches, alone the newest rows."""


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    more = {"GALATEA_API_PROCESSES": "2", "GALATEA_SPEED_PROCESSES": "2"}
    with started(*settings_of(tmp_path_factory.mktemp("at_least") / "home", **more)) as found:
        yield found


class Writer:
    """Sends receipts of its stores, and asks for them."""

    def __init__(self, stack: Stack, number: int) -> None:
        self._name = f"mine-{number}"
        self._stores = [f"{self._name}-{store}" for store in range(STORES)]
        self._url, self._key = stack.settings.api_url, stack.operator_key
        self._sent = 0
        self.counts = Counter[str]()
        self.violations: list[str] = []

    def run(self, rounds: int) -> None:
        with Client(self._url, self._key, timeout=30) as plain:
            client = plain.read_your_writes()
            for number in range(self._sent + 1, self._sent + rounds + 1):
                at = datetime.now(UTC).isoformat(timespec="milliseconds")
                events = [receipt(at, minor=100, number=number, store=store) for store in self._stores]
                self._until_answered(lambda events=events: client.ingest(TOPIC, events).accepted == STORES or None)  # type: ignore[misc]
                metrics = METRICS if number % 2 else METRICS[: 1 + number // 2 % 2]
                answers = self._until_answered(lambda metrics=metrics: self._asked(client, metrics))  # type: ignore[misc]
                self.counts["pairs"] += STORES
                for metric, values in zip(metrics, answers, strict=True):
                    if wrong := {store: values.get(store) for store in self._stores if values.get(store) != number}:
                        self.violations.append(f"{number} were sent to each store, and {metric} is {wrong}")
        self._sent += rounds

    def _asked(self, client: Client, metrics: tuple[str, ...]) -> list[dict[str | None, object]]:
        """Of each metric, the value of each store."""
        span = around_now()
        answers = client.several(metrics, start=span["from"], end=span["to"], store=self._stores, grain="total")
        return [{each.store: each.points[0].value for each in answer.series} for answer in answers.answers]

    def _until_answered(self, call: "Callable[[], Found | None]") -> Found:
        """Whatever fails is tried again: a process may have been killed just now."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            try:
                found = call()
            except ClientError as error:
                self.counts[getattr(error, "code", type(error).__name__)] += 1
                found = None
            if found is not None:
                return found
            assert time.monotonic() < deadline, f"{self._name} gets no answer"
            time.sleep(0.2)


@contextmanager
def faults(stack: Stack) -> Iterator[Counter[str]]:
    """Kill or suspend a process every few seconds, until the end of the block."""
    done, chance, met = threading.Event(), Random(SEED), Counter[str]()

    def go_on() -> None:
        while not done.wait(BETWEEN_SECONDS):
            name = chance.choice(NAMES)
            pid = Records(stack.settings.home).pid(name)
            if pid is None or not psutil.pid_exists(pid):
                continue
            process = psutil.Process(pid)
            if name.startswith("speed") and chance.random() < 0.3:
                family = [process, *process.children(recursive=True)]
                _all(family, "suspend")
                done.wait(LEASE_SECONDS + 2)
                _all(family, "resume")
                met[f"{name} suspended"] += 1
            else:
                process.kill()
                met[f"{name} killed"] += 1

    with ThreadPoolExecutor(1) as pool:
        acting = pool.submit(go_on)
        try:
            yield met
        finally:
            done.set()
    acting.result()


def _all(family: list[psutil.Process], what: str) -> None:
    for each in family:
        try:
            getattr(each, what)()
        except psutil.NoSuchProcess:
            continue


@pytest.mark.nightly
def test_no_answer_lacks_what_its_client_has_sent_or_seen_while_processes_are_killed(stack: Stack) -> None:
    writers = [Writer(stack, number) for number in range(WRITERS)]
    Writer(stack, WRITERS).run(1)  # a generation that is killed again and again before it is complete is never served
    with faults(stack) as met, ThreadPoolExecutor(WRITERS) as pool:
        for begun in range(0, ROUNDS, ROUNDS_PER_REPORT):
            rounds = min(ROUNDS_PER_REPORT, ROUNDS - begun)
            list(pool.map(lambda writer, rounds=rounds: writer.run(rounds), writers))
            counts = sum((each.counts for each in writers), Counter[str]())
            violations = [violation for each in writers for violation in each.violations]
            print(f"{counts['pairs']} pairs, {len(violations)} violations; faults {dict(met)}; outcomes {dict(counts)}")  # noqa: T201

    assert violations == []
    assert counts["pairs"] == ROUNDS * WRITERS * STORES
    assert met, "no process was killed"
