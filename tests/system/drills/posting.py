"""`python -m tests.system.drills.posting`: events over HTTP while the API process is killed again and again.

Tills send receipts, some of them invalid, and repeat a request until each of its events is settled. At the end the
merged answer must have every receipt once: sent = events + rejected. Prints one line and appends it to the ledger,
posting.jsonl.
"""

import argparse
import json
import ssl
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import httpx

from deploy.local.ports import free_ports
from tests.integration.conftest import Stack, around_now, settings_of
from tests.system.drills.faults import exit_on_sigterm
from tests.system.drills.ledger_line import append

TILLS, IN_A_REQUEST, BROKEN = 4, 20, 0.05
TIMEOUT_SECONDS = 15.0


@dataclass
class Posting:
    """What was sent and what it became. `again`: requests that were sent once more."""

    kills: int
    seed: int
    sent: int = 0
    events: int = 0
    rejected: int = 0
    again: int = 0
    minor: int = 0
    shown: int = 0
    shown_minor: int = 0
    differing: int = 0
    seconds: float = 0.0
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def count(self, **more: int) -> None:
        """From several threads."""
        with self._lock:
            for name, number in more.items():
                setattr(self, name, getattr(self, name) + number)

    def summary(self) -> dict[str, Any]:
        """As a line of the ledger."""
        return {name: value for name, value in vars(self).items() if name != "_lock"}

    @property
    def is_well(self) -> bool:
        """Nothing lost, nothing twice, and requests were really cut off."""
        whole = self.sent == self.events + self.rejected
        return (
            whole and (self.shown, self.shown_minor, self.differing) == (self.events, self.minor, 0) and self.again > 0
        )


@contextmanager
def api(environment: dict[str, str], port: int) -> Iterator[subprocess.Popen[bytes]]:
    """A process of the REST interface of its own, which serves when this begins."""
    own = environment | {"GALATEA_API_PORT": str(port)}
    process = subprocess.Popen([sys.executable, "-m", "deploy.services.api"], env=own, stdout=subprocess.DEVNULL)
    try:
        while not serves(port):
            time.sleep(0.05)
        yield process
    finally:
        process.kill()
        process.wait()


def serves(port: int) -> bool:
    """Whether somebody answers there."""
    try:
        return httpx.get(f"http://127.0.0.1:{port}/healthz", timeout=2, trust_env=False).is_success
    except httpx.TransportError:
        return False


class Rest(NamedTuple):
    """The REST interface that tills send to. `trust`: the authorities of an https URL, as httpx takes them."""

    url: str
    trust: ssl.SSLContext | bool = True


class Till:
    """Sends requests until stopped, each until all of its events are settled."""

    def __init__(self, store: str, posting: Posting, rest: Rest, key: str) -> None:
        self._store, self._posting, self._rest = store, posting, rest
        self._headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
        self._chance, self._number = Random(f"{posting.seed} {store}"), 0
        self._began = datetime.now(UTC) - timedelta(minutes=30)

    def run(self, stop: threading.Event) -> None:
        """A thread's work."""
        with httpx.Client(timeout=TIMEOUT_SECONDS, trust_env=False, verify=self._rest.trust) as client:
            while not stop.is_set():
                self._settle(client, [self._receipt() for _ in range(IN_A_REQUEST)])

    def _settle(self, client: httpx.Client, waiting: list[tuple[bytes, int]]) -> None:
        self._posting.count(sent=len(waiting))
        while waiting:
            try:
                answer = client.post(
                    f"{self._rest.url}/v1/events/pos_transactions",
                    content=b"[" + b",".join(line for line, _ in waiting) + b"]",
                    headers=self._headers,
                )
            except httpx.TransportError:
                self._posting.count(again=1)
                time.sleep(0.1)
                continue
            if answer.status_code == httpx.codes.SERVICE_UNAVAILABLE:
                self._posting.count(again=1)
                time.sleep(0.1)
                continue
            waiting = self._left(answer.json()["items"], waiting)

    def _left(self, items: list[dict[str, Any]], waiting: list[tuple[bytes, int]]) -> list[tuple[bytes, int]]:
        left = []
        for item, each in zip(items, waiting, strict=True):
            if item["outcome"] == "unknown":
                left.append(each)
            elif item["outcome"] == "rejected":
                self._posting.count(rejected=1)
            else:
                self._posting.count(events=1, minor=each[1])
        return left

    def _receipt(self) -> tuple[bytes, int]:
        self._number += 1
        minor = self._chance.randrange(1, 10_000)
        said: dict[str, object] = {
            "happened_at": (self._began + timedelta(milliseconds=37 * self._number)).isoformat(),
            "operation_id": self._store,
            "transaction_id": self._number,
            "vendor_fiscal_module": "1",
            "transactions": [{"title": "thing", "price": minor / 100, "amount": 1, "sku": "1"}],
        }
        if self._chance.random() < BROKEN:
            del said["vendor_fiscal_module"]
        return json.dumps(said).encode(), minor


def played(stack: Stack, posting: Posting) -> Posting:
    """Kill it so many times while tills send; then publish, and compare with what was accepted."""
    began, chance = time.monotonic(), Random(posting.seed)
    (port,) = free_ports(1)
    key, stop = stack.galatea("keys", "create", "--tenant", "*", "--scope", "ingest")["key"], threading.Event()
    tills = [Till(f"till-{number}", posting, Rest(f"http://127.0.0.1:{port}"), key) for number in range(TILLS)]
    threads = [threading.Thread(target=till.run, args=(stop,), daemon=True) for till in tills]
    for thread in threads:
        thread.start()
    for _ in range(posting.kills):
        with api(stack.environment, port):
            time.sleep(chance.uniform(0.1, 1.5))
    with api(stack.environment, port):
        time.sleep(1)
        stop.set()
        for thread in threads:
            thread.join()
    stack.galatea("rebuild", "--wait")
    arguments = {
        "store": [f"till-{number}" for number in range(TILLS)],
        "grain": "total",
        "timezone": "UTC",
        **around_now(),
    }
    for name, metric, unit in (("shown", "total_transactions_count", 1), ("shown_minor", "net_sales", 100)):
        series = stack.get(f"/v1/metrics/{metric}", **arguments)["series"]
        setattr(posting, name, sum(round((each["points"][0]["value"] or 0) * unit) for each in series))
    posting.differing = stack.galatea("verify")["differing"]
    posting.seconds = round(time.monotonic() - began, 1)
    return posting


def main() -> int:
    """Exit 1 if an event was lost or counted twice."""
    parser = argparse.ArgumentParser(prog="python -m tests.system.drills.posting", description=__doc__)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    exit_on_sigterm()
    with tempfile.TemporaryDirectory(prefix="galatea-posting-") as folder:
        settings, environment = settings_of(Path(folder) / "home")
        stack = Stack(settings, environment)
        try:
            stack.run("up", "--detach", "--without-airflow")
            posting = played(stack, Posting(arguments.kills, arguments.seed))
        finally:
            stack.run("down")
    summary = json.dumps({"at": f"{datetime.now(UTC):%F}", **posting.summary()})
    sys.stdout.write(summary + "\n")
    append("posting", summary)
    return int(not posting.is_well)


if __name__ == "__main__":
    sys.exit(main())
