"""Partitions are added while receipts arrive, some of them twice, through producers that notice at different times.

Publications switch all the while. Afterwards the answers are those of a recompute, and every receipt is counted once.
"""

import json
import threading
import time
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from random import Random
from typing import TYPE_CHECKING

import pytest
import yaml
from confluent_kafka import Producer

from deploy.cassandra import session_of
from deploy.partitions import grow, partitions_of
from master_dataset.cassandra_tables import ArchivePositions
from master_dataset.kafka.topics import Topics
from master_dataset.sources.pos_transactions import POS_TRANSACTIONS
from tests.integration.conftest import Stack, settings_of, started
from tests.system.deployments.test_live_totals import publishing
from views.control.generation import Generations

if TYPE_CHECKING:
    from pathlib import Path

STORES = tuple(f"grown-{number}" for number in range(40))
PER_SECOND, SETTLE_SECONDS = 50, 60
NOTICED_AFTER_MS = (1_000, 45_000)
"""When each of two producers asks for new partitions."""


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    folder = tmp_path_factory.mktemp("grown")
    with started(*settings_of(folder / "home", GALATEA_KAFKA_PARTITIONS="2", GALATEA_EPOCH_SECONDS="5")) as found:
        file: Path = folder / "stores.yaml"
        file.write_text(yaml.safe_dump({"stores": [{"id": store, "timezone": "UTC"} for store in STORES]}))
        found.run("stores", "load", str(file))
        yield found


class Sent:
    """Which receipts were sent, and to how many partitions their deliveries went."""

    def __init__(self) -> None:
        self.partitions: dict[int, set[int]] = {}

    def note(self, number: int, partition: int) -> None:
        self.partitions.setdefault(number, set()).add(partition)


def receipt(number: int, store: str, happened_at: datetime) -> bytes:
    """Of one cent."""
    line = {"title": "thing", "price": 0.01, "amount": 1, "sku": "1"}
    fields = {"happened_at": happened_at.isoformat(timespec="milliseconds"), "operation_id": store}
    return json.dumps({**fields, "transaction_id": number, "vendor_fiscal_module": 1, "transactions": [line]}).encode()


@contextmanager
def selling(stack: Stack, noticed_after_ms: tuple[int, int] = NOTICED_AFTER_MS) -> Iterator[Sent]:
    """Receipts, each by one of two producers; every fifth a second time, at once or up to two minutes later."""
    sent, stop, chance = Sent(), threading.Event(), Random(8)
    client = {**stack.settings.kafka.connection.client(), "enable.idempotence": True}
    producers = [Producer({**client, "topic.metadata.refresh.interval.ms": ms}) for ms in noticed_after_ms]
    repeats: deque[tuple[float, int, str, bytes]] = deque()

    def send(number: int, store: str, value: bytes) -> None:
        def delivered(error: object, message: object) -> None:
            assert error is None
            sent.note(number, message.partition())  # type: ignore[attr-defined]

        chance.choice(producers).produce(POS_TRANSACTIONS.topic, value, store, on_delivery=delivered)

    def run() -> None:
        number = 0
        while not stop.wait(0.1):
            for _ in range(PER_SECOND // 10):
                number += 1
                store = chance.choice(STORES)
                value = receipt(number, store, datetime.now(UTC) - timedelta(minutes=chance.uniform(0, 600)))
                send(number, store, value)
                if number % 5 == 0:
                    repeats.append((time.monotonic() + chance.choice((0, 0.5, 5, 120)), number, store, value))
            for _ in range(len(repeats)):
                due, number_, store, value = repeats.popleft()
                if due > time.monotonic():
                    repeats.append((due, number_, store, value))
                else:
                    send(number_, store, value)
            for producer in producers:
                producer.poll(0)

    sender = threading.Thread(target=run)
    sender.start()
    try:
        yield sent
    finally:
        stop.set()
        sender.join()
        assert [producer.flush(60) for producer in producers] == [0, 0]


def is_read(positions: Mapping[str, Mapping[int, int]], partitions: int) -> bool:
    """Whether a reader has come to every partition of the receipts."""
    own = positions.get(POS_TRANSACTIONS.topic, {})
    return len(own) == partitions and all(own.values())


def until_both_read_all(stack: Stack, partitions: int) -> None:
    session = session_of(stack.settings.cassandra.address)
    generations, archive = Generations(session), ArchivePositions(session)
    deadline = time.monotonic() + 300
    while time.monotonic() < deadline:
        speed = generations.positions(generations.pointer().generation)
        if is_read(speed, partitions) and is_read(archive.read(), partitions):
            return
        time.sleep(0.5)
    raise AssertionError("not every partition is read")


def counted(stack: Stack) -> int:
    """How many receipts the answers count."""
    until = datetime.now(UTC).date() + timedelta(days=1)
    asked = {"from": "-2d", "to": str(until), "grain": "total", "by": "total"}
    answer = stack.get("/v1/metrics/total_transactions_count", **asked)
    return sum(point["value"] for series in answer["series"] for point in series["points"])


@pytest.mark.nightly
def test_two_partitions_become_eight_while_receipts_arrive(stack: Stack) -> None:
    with selling(stack) as sent, publishing(stack, pause=1):
        time.sleep(30)
        grow(stack.settings, 8, timedelta(seconds=SETTLE_SECONDS))
        until_both_read_all(stack, 8)
        time.sleep(60)
    verdict = stack.verify()
    stack.rebuild()
    moved = [number for number, partitions in sent.partitions.items() if len(partitions) > 1]

    assert (verdict.differing, verdict.totals_differing, verdict.examples) == (0, 0, [])
    assert verdict.cells > 0
    assert partitions_of(stack.settings, Topics(stack.settings.kafka.connection)).open == 8
    assert moved  # deliveries of one receipt in an old and in a new partition
    assert counted(stack) == len(sent.partitions)
