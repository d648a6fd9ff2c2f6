"""A cut on brokers whose clocks differ by the skew, with open transactions and idle partitions: nothing comes late."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from random import Random
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

from batch_layer.fence import Fence, Marked
from master_dataset.errors import GalateaError
from master_dataset.kafka.connection import KafkaConnection
from master_dataset.kafka.growth import Partitions
from tests.fast.laws.delivery.broker import Broker, Message, Stored, Transaction

TOPIC, PARTITIONS = "pos_transactions", 3
SKEW, EPOCH = timedelta(seconds=5), timedelta(seconds=10)
HALF_MS = int(SKEW.total_seconds() * 500)
CUTS = 6


@dataclass
class Clock:
    """Time passes while somebody waits or writes, and meanwhile shops send."""

    broker: Broker
    ahead_ms: list[int]
    positions: dict[int, int]

    def now(self) -> datetime:
        self._pass(self.broker.chance.randint(0, 300))
        return datetime.fromtimestamp(self.broker.now_ms / 1000, UTC)

    def sleep(self, seconds: float) -> None:
        self._pass(int(seconds * 1000) + 1)

    def monotonic(self) -> float:
        return self.broker.now_ms / 1000

    def append(self, partition: int, value: bytes, transaction: Transaction | None = None) -> Stored:
        """Stamped by the clock of the partition's broker, which is at most half a skew ahead or behind."""
        stored = self.broker.append((TOPIC, partition), value, None, transaction)
        stored.stamp_ms += self.ahead_ms[partition]
        return stored

    def _pass(self, ms: int) -> None:
        self.broker.now_ms += ms
        chance = self.broker.chance
        partition = chance.randrange(PARTITIONS - 1)  # the last one is idle
        kind = chance.random()
        if kind < 0.5:
            self.append(partition, b"event")
        elif kind < 0.65:
            id_ = f"till {partition}"
            transaction = self.broker.open.setdefault(id_, Transaction(id_))
            transaction.places.add((TOPIC, partition))
            self.append(partition, b"event", transaction)
        elif kind < 0.8:
            self.broker.finish(f"till {partition}", chance.choice(["committed", "aborted"]))
        elif kind < 0.9:  # another broker leads, whose clock differs
            self.ahead_ms[partition] = chance.randint(-HALF_MS, HALF_MS)

    def read(self) -> dict[str, dict[int, int]]:
        """The archive goes on in one partition: as far as transactions are decided."""
        chance, partition = self.broker.chance, self.broker.chance.randrange(PARTITIONS)
        stable = self.broker.stable((TOPIC, partition))
        at = self.positions.get(partition, 0)
        self.positions[partition] = max(at, min(stable, at + chance.randint(0, 6)))
        if chance.random() < 0.3:
            for id_ in list(self.broker.open):
                self.broker.finish(id_, "committed")
        return {TOPIC: dict(self.positions)}


class Markers:
    """A producer of markers."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def produce(self, topic: str, *, partition: int, on_delivery: Any, **_: object) -> None:
        stored = self._clock.append(partition, b"")
        on_delivery(None, Message((topic, partition), stored.offset, stored))

    def flush(self, _: float) -> int:
        return 0


@contextmanager
def brokers_of(clock: Clock) -> Iterator[None]:
    """The fence meets these brokers."""

    def topics(_: KafkaConnection) -> Any:
        ends = {partition: clock.broker.stable((TOPIC, partition)) for partition in range(PARTITIONS)}
        return SimpleNamespace(partitions=lambda _: list(range(PARTITIONS)), end_offsets=lambda _: ends)

    with (
        patch("batch_layer.fence.Producer", lambda _: Markers(clock)),
        patch("batch_layer.fence.Topics", topics),
        patch("batch_layer.fence.time", clock),
    ):
        yield


def clock_of(seed: int) -> Clock:
    """Clocks that differ by less than the skew."""
    chance = Random(seed)
    return Clock(Broker(chance), [chance.randint(-HALF_MS, HALF_MS) for _ in range(PARTITIONS)], {})


def cut_once(clock: Clock, fence: Fence) -> Marked:
    """Make a cut and wait until the archive has passed it."""
    cut = fence.next_cut() if clock.broker.chance.random() < 0.5 else fence.newest_cut()
    marked = fence.mark(cut)
    fence.wait(marked, clock.read, "archive", timedelta(hours=1))
    return marked


def nothing_appears_behind_a_cut(seeds: int = 40) -> None:
    """R2: when the archive has passed the markers, whatever was stamped before the cut was there to be read."""
    made = 0
    for seed in range(seeds):
        clock = clock_of(seed)
        fence = Fence(KafkaConnection("memory"), lambda: Partitions(PARTITIONS), (TOPIC,), EPOCH, SKEW, now=clock.now)
        with brokers_of(clock):
            for _ in range(CUTS):
                try:
                    marked = cut_once(clock, fence)
                except GalateaError:
                    continue  # a cut that is refused hides nothing
                made += 1
                read = dict(clock.positions)
                clock.sleep(1)
                for id_ in list(clock.broker.open):
                    clock.broker.finish(id_, "committed")
                _look(clock, marked, read, seed)
    assert made > seeds, f"{made} cuts were made"


def _look(clock: Clock, marked: Marked, read: dict[int, int], seed: int) -> None:
    for _ in range(20):
        clock.sleep(0.3)
    before_ms = marked.cut.timestamp() * 1000
    for partition in range(PARTITIONS):
        hidden = [
            each.offset
            for each in clock.broker.visible((TOPIC, partition), committed=False)
            if each.stamp_ms < before_ms
            and each.offset >= read.get(partition, 0)
            and (each.transaction is None or each.transaction.outcome != "aborted")
        ]
        assert hidden == [], f"seed {seed}: {partition}/{hidden} was stamped before {marked.cut} and is not read"
