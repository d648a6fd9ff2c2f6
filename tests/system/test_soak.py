"""Thousands of micro-batches of archive and speed with a thousand stores: the memory of every process stays flat.

`SOAK_BATCHES=60` makes it short. It prints the curve: memory of each component, Java and Python apart, in MB.
"""

import os
import random
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from statistics import median

import psutil
import pytest
from confluent_kafka import Producer

from deploy.cassandra import session_of
from deploy.jars import ensure_jars
from deploy.local.records import Records
from deploy.local.stack import Stack
from deploy.settings import Settings
from lab.simulation.stores import invented_stores
from master_dataset.registry.registration import register
from master_dataset.sources.pos_transactions import POS_TRANSACTIONS
from tests.integration.conftest import settings_of
from tests.support.receipts import receipt

BATCHES = int(os.environ.get("SOAK_BATCHES", "3000"))
STORES = 1000
PER_SECOND = 30
LAYERS = ("archive", "speed")
COMPONENTS = ("kafka", "cassandra", *LAYERS)
SAMPLES = 60
STALLED_SECONDS = 300.0
MB = 1 << 20
GROWTH = {"python": (1.05, 24.0), "java": (1.25, 64.0)}
"""Allowed from the second to the last third: a factor and MB. A Java heap still expands within its fixed limit."""

Sample = Mapping[str, float]


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Settings]:
    """A stack without API, with as many registered stores as a chain has."""
    found, environment = settings_of(tmp_path / "home")
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    ensure_jars(found)
    with Stack(found, COMPONENTS):
        register(
            found.paths.master_uri, session_of(found.cassandra.address), invented_stores(STORES), skew=found.layers.skew
        )
        yield found


@contextmanager
def receipts_arriving(settings: Settings) -> Iterator[None]:
    """Receipts of all stores until the block is left."""
    leave = threading.Event()

    def send() -> None:
        producer = Producer({**settings.kafka.connection.client(), "enable.idempotence": True})
        choice, number = random.Random(7), 0
        stores = [store.id for store in invented_stores(STORES)]
        while not leave.wait(1 / PER_SECOND):
            number, store = number + 1, choice.choice(stores)
            value = receipt(datetime.now(UTC).isoformat(), minor=choice.randint(100, 9999), number=number, store=store)
            producer.produce(POS_TRANSACTIONS.topic, value, store)
            producer.poll(0)
        producer.flush(30)

    sending = threading.Thread(target=send)
    sending.start()
    try:
        yield
    finally:
        leave.set()
        sending.join()


def micro_batches(settings: Settings, layer: str) -> int:
    """How many a layer has committed; its checkpoint names them by number."""
    commits = Path(settings.paths.checkpoint_uri, layer).glob("**/commits/[0-9]*")
    return max((int(path.name) + 1 for path in commits if path.name.isdigit()), default=0)


def memory(settings: Settings) -> dict[str, float]:
    """MB by component and program; pages that processes share are counted once where the system reports them."""
    found: defaultdict[str, float] = defaultdict(float)
    for name in COMPONENTS:
        for process in Records(settings.home).session(name):
            try:
                program = "java" if "java" in process.name() else "python"
                used = process.memory_full_info()
            except psutil.NoSuchProcess:
                continue
            found[f"{name} {program}"] += getattr(used, "pss", used.uss) / MB
    return found


def sampled(settings: Settings, batches: int) -> list[tuple[int, Sample]]:
    """Micro-batches of the slower layer, and memory, until it has committed so many."""
    samples: list[tuple[int, Sample]] = []
    done, moved_at = 0, time.monotonic()
    while done < batches:
        now = min(micro_batches(settings, layer) for layer in LAYERS)
        if now > done:
            done, moved_at = now, time.monotonic()
        assert time.monotonic() < moved_at + STALLED_SECONDS, f"stalled after {done} micro-batches"
        if done >= len(samples) * batches / SAMPLES:
            samples.append((done, memory(settings)))
        time.sleep(0.5)
    return samples


def curve(samples: Sequence[tuple[int, Sample]]) -> str:
    parts = sorted({part for _, sample in samples for part in sample})
    rows = [
        ["batches", *parts],
        *([f"{done:,}", *(f"{sample.get(part, 0):.0f}" for part in parts)] for done, sample in samples),
    ]
    return "\n".join("  ".join(cell.rjust(18) for cell in row) for row in rows)


def grown(samples: Sequence[tuple[int, Sample]]) -> dict[str, tuple[float, float]]:
    """Parts whose median in the last third exceeds what that of the second third allows, with both."""
    third = len(samples) // 3
    found: dict[str, tuple[float, float]] = {}
    for part in samples[-1][1]:
        factor, more = GROWTH[part.rpartition(" ")[2]]
        before, after = (
            median(sample.get(part, 0.0) for _, sample in some) for some in (samples[third:-third], samples[-third:])
        )
        if after > before * factor + more:
            found[part] = (round(before), round(after))
    return found


@pytest.mark.nightly
@pytest.mark.timeout(6 * 3600)
def test_memory_of_every_process_is_flat_after_warm_up(settings: Settings, capsys: pytest.CaptureFixture[str]) -> None:
    with receipts_arriving(settings):
        samples = sampled(settings, BATCHES)

    with capsys.disabled():
        sys.stdout.write(f"\n{curve(samples)}\n")
    assert set(samples[-1][1]) >= {f"{name} {program}" for name in LAYERS for program in ("java", "python")}
    assert grown(samples) == {}


@pytest.mark.parametrize(("leak_mb", "parts"), [(0.0, set()), (0.05, {"speed python"})])
def test_a_leak_of_a_twentieth_of_a_megabyte_per_micro_batch_is_seen(leak_mb: float, parts: set[str]) -> None:
    samples = [(done, {"speed python": 300 + leak_mb * done, "speed java": 900.0}) for done in range(0, 3001, 50)]

    assert set(grown(samples)) == parts
