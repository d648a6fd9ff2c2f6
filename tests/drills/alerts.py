"""`python -m tests.drills.alerts`: every alert exactly once while the relay is killed again and again.

Receipts come all the while; the relay is killed by `kill -9` at its crash points in turn and at random moments. In the
end a read_committed reader has to find each alert that plain sums over what was sent ask for, once, and no other.
Prints a line, and adds it to docs/ledger/alerts.jsonl.
"""

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any

import msgspec
from confluent_kafka import Consumer, Producer, TopicPartition

from deploy.jars import ensure_jars
from deploy.settings import Settings
from deploy.stack.ports import free_ports
from deploy.stack.stack import Stack
from master_dataset.stores import Store
from views.alerts.book import rule_version, store_version
from views.alerts.rule_text import read_rule

LEDGER = Path(__file__).parents[2] / "docs" / "ledger" / "alerts.jsonl"
PARTITIONS, QUARTER, WINDOWS = 2, 900, 7
BOUNDS = range(500, 10_500, 500)
"""In cents: a rule each."""
POINTS = ("folded", "begun", "produced", "flushed", "offsets", "committed", "kept")
Key = tuple[str, str, str]
"""Rule, store and start of the window."""


@dataclass
class Played:
    """What was done and what came of it. `crashed`: of the kills, those at a crash point.

    `discarded`: producers that gave themselves up.
    """

    kills: int
    seed: int
    crashed: int = 0
    discarded: int = 0
    sent: int = 0
    expected: int = 0
    seen: int = 0
    lost: int = 0
    twice: int = 0
    phantom: int = 0
    resolved: int = 0
    orphans: int = 0
    seconds: float = 0.0
    places: dict[str, int] = field(default_factory=dict)

    @property
    def is_well(self) -> bool:
        """Each alert once, and something to see."""
        return self.expected > 0 and (self.lost, self.twice, self.phantom, self.orphans) == (0, 0, 0, 0)


class Tills:
    """Send receipts of many stores, some of them twice, and add up in cents what has to come of it."""

    def __init__(self, bootstrap: str, stores: int, seed: int) -> None:
        self.sums: Counter[tuple[str, int]] = Counter()
        self.sent = 0
        self._chance = Random(seed)
        self._stores = [str(number) for number in range(1, stores + 1)]
        self._newest = int(time.time()) // QUARTER * QUARTER - QUARTER
        self._producer = Producer({
            "bootstrap.servers": bootstrap, "enable.idempotence": True, "partitioner": "murmur2_random",
        })  # fmt: skip

    def send(self) -> None:
        """One receipt, and one in ten again."""
        store, cents = self._chance.choice(self._stores), self._chance.randrange(1, 3000)
        window = self._newest - QUARTER * self._chance.randrange(WINDOWS)
        happened = window + self._chance.random() * (QUARTER - 1)
        self.sent += 1
        self.sums[store, window] += cents
        line = {"title": "thing", "price": cents / 100, "amount": 1}
        body = {
            "happened_at": datetime.fromtimestamp(happened, UTC).isoformat(timespec="milliseconds"),
            "operation_id": store, "transaction_id": self.sent, "vendor_fiscal_module": 1, "transactions": [line],
        }  # fmt: skip
        for _ in range(2 if self.sent % 10 == 0 else 1):
            self._producer.produce("pos_transactions", key=store, value=json.dumps(body).encode())
        self._producer.poll(0)

    def send_some(self, receipts: int) -> None:
        """So many."""
        for _ in range(receipts):
            self.send()

    def finish(self) -> set[Key]:
        """Everything is on the broker. What has to be told."""
        assert self._producer.flush(60) == 0
        return {
            (f"above-{bound}", store, datetime.fromtimestamp(window, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"))
            for (store, window), cents in self.sums.items()
            for bound in BOUNDS
            if cents > bound
        }


class Relays:
    """Starts them, and kills them."""

    def __init__(self, bootstrap: str, folder: Path, stores: int) -> None:
        self._bootstrap, self._folder, self._book = bootstrap, folder, folder / "book.json"
        self.discarded = 0
        versions = [store_version(Store(id=str(each), timezone="UTC"), 1, 0) for each in range(1, stores + 1)]
        for bound in BOUNDS:
            said = {"kind": "threshold", "id": f"above-{bound}", "metric": "gross_sales", "window": "15m"}
            versions.append(rule_version(read_rule({**said, "above": f"{bound / 100:.2f}"}), 1, 0))
        folder.mkdir(parents=True, exist_ok=True)
        self._book.write_bytes(msgspec.json.encode(versions))

    @contextmanager
    def running(self, crash_at: str = "") -> Iterator["subprocess.Popen[str]"]:
        """One, from when it reads until it is killed or has ended by itself."""
        words = [self._bootstrap, str(PARTITIONS), str(self._folder), str(self._book), crash_at]
        command = [sys.executable, "-m", "tests.drills.alerts_relay", *words]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        try:
            yield process
        finally:
            process.kill()
            said, _ = process.communicate()
            self.discarded += said.count("alerts.discarded")

    def ready(self, process: "subprocess.Popen[str]") -> bool:
        """Whether it came to read at all; it may have been told to end before."""
        assert process.stdout is not None
        return process.stdout.readline() == "ready\n"

    def forget(self) -> None:
        """Delete the snapshots."""
        for partition in range(PARTITIONS):
            shutil.rmtree(self._folder / str(partition), ignore_errors=True)


def read_alerts(bootstrap: str) -> list[dict[str, Any]]:
    """Every committed alert."""
    consumer = Consumer({
        "bootstrap.servers": bootstrap, "group.id": "drill", "isolation.level": "read_committed",
        "enable.auto.commit": False, "enable.partition.eof": True,
    })  # fmt: skip
    consumer.assign([TopicPartition("alerts", number, 0) for number in range(PARTITIONS)])
    found, ended = [], set[int]()
    while len(ended) < PARTITIONS:
        for message in consumer.consume(1000, 1.0):
            if message.error():
                ended.add(message.partition() or 0)
            else:
                found.append(json.loads(message.value() or b""))
    consumer.close()
    return found


def positions(bootstrap: str) -> int:
    """How many records are left to read."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "galatea.alerts", "enable.auto.commit": False})
    places = [TopicPartition("pos_transactions", number) for number in range(PARTITIONS)]
    ends = [consumer.get_watermark_offsets(place, 20)[1] for place in places]
    left = sum(end - max(0, done.offset) for end, done in zip(ends, consumer.committed(places, 20), strict=True))
    consumer.close()
    return left


def play(settings: Settings, kills: int, alerts: int, seed: int) -> Played:
    """With a broker that runs: send, kill, settle, compare."""
    began, chance = time.monotonic(), Random(f"kills {seed}")
    bootstrap, played = settings.kafka_bootstrap, Played(kills, seed)
    stores = max(1, alerts // (WINDOWS * len(BOUNDS)))
    relays, tills = Relays(bootstrap, settings.home / "alerts", stores), Tills(bootstrap, stores, seed)
    with relays.running() as first:
        assert relays.ready(first)
    left, per_kill = stores * WINDOWS * 14, stores * WINDOWS * 14 // max(1, kills) + 1
    for number in range(kills):
        is_random = number % 2 == 1
        point = POINTS[number // 2 % len(POINTS)]
        if number % 10 == 9:
            relays.forget()
        with relays.running(
            "" if is_random else f"alerts.{point}:{1 if point == 'kept' else chance.randrange(1, 3)}"
        ) as process:
            is_ready = relays.ready(process)
            feeding = threading.Thread(target=tills.send_some, args=(per_kill,))
            feeding.start()
            if is_random:
                time.sleep(chance.uniform(0, 1.0))
            else:
                _wait_for_end(process)
            feeding.join()
        name = "random" if is_random else point
        played.places[name] = played.places.get(name, 0) + 1
        sys.stderr.write(f"  {number + 1}/{kills} {name} ready={is_ready} sent={tills.sent}\n")
    while tills.sent < left:
        tills.send()
    expected = tills.finish()
    with relays.running():
        deadline = time.monotonic() + 600
        while positions(bootstrap):
            assert time.monotonic() < deadline, "the relay does not catch up"
            time.sleep(0.5)
    _compare(played, expected, read_alerts(bootstrap))
    played.discarded = relays.discarded
    played.crashed = sum(1 for _ in (settings.home / "alerts").glob("crashed-*/*"))
    played.sent, played.seconds = tills.sent, round(time.monotonic() - began, 1)
    return played


def _wait_for_end(process: "subprocess.Popen[str]") -> None:
    """At its crash point; what it is not led to within some seconds it is not going to reach."""
    try:
        process.wait(4)
    except subprocess.TimeoutExpired:
        return


def _compare(played: Played, expected: set[Key], found: list[dict[str, Any]]) -> None:
    raised = [each for each in found if each["kind"] == "raised"]
    ids = Counter(each["alert_id"] for each in found)
    keys = Counter((each["rule"], each["store"], each["window"]["from"]) for each in raised)
    played.expected, played.seen = len(expected), len(raised)
    played.lost = len(expected - keys.keys())
    played.phantom = len(keys.keys() - expected)
    played.twice = sum(count - 1 for count in ids.values()) + sum(count - 1 for count in keys.values())
    told = {each["alert_id"] for each in raised}
    resolved = [each for each in found if each["kind"] == "resolved"]
    played.resolved, played.orphans = len(resolved), sum(each["about"] not in told for each in resolved)


def settings_for(folder: Path) -> Settings:
    """Of a broker of its own."""
    api, kafka, cassandra = free_ports(3)
    return Settings(home=folder / "home", api_port=api, kafka_port=kafka, cassandra_port=cassandra)


def main() -> int:
    """Exit 1 if an alert was lost, told twice or never asked for."""
    parser = argparse.ArgumentParser(prog="python -m tests.drills.alerts", description=__doc__)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--alerts", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="galatea-alerts-") as folder:
        settings = settings_for(Path(folder))
        ensure_jars(settings)
        with Stack(settings, only=["kafka"]):
            played = play(settings, asked.kills, asked.alerts, asked.seed)
    told = json.dumps({"at": f"{datetime.now(UTC):%F}", **asdict(played)})
    sys.stdout.write(told + "\n")
    with LEDGER.open("a") as file:
        file.write(told + "\n")
    return int(not played.is_well)


if __name__ == "__main__":
    sys.exit(main())
