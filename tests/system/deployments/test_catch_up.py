"""Archive and speed are down for two days, receipts come in, publications follow: nothing is lost, nothing is late."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from batch_layer.fence import Fence
from deploy.batch import recompute, verification_of
from deploy.cassandra import session_of
from deploy.jars import ensure_jars
from deploy.local.stack import Stack
from deploy.settings import Settings
from master_dataset.cassandra_tables import ArchivePositions
from master_dataset.kafka.topics import Topics
from master_dataset.sources import registered_sources
from master_dataset.sources.pos_transactions import POS_TRANSACTIONS
from serving_layer.responses.encoding import iso_instant
from tests.integration.conftest import PATIENCE_SECONDS
from tests.integration.conftest import Stack as Asking
from tests.support.free_settings import settings_on_free_ports
from tests.system.drills.receipts import stamped_by
from views.control.generation import Generations, Offsets, reached
from views.control.recompute import RecomputeRequest

pytestmark = pytest.mark.nightly

HOUR = timedelta(hours=1)
NOW = datetime.now(UTC).replace(microsecond=0)
RECORDS_AT_ONCE = 700
ROUNDED = 2 * len(registered_sources())
"""Spark divides them among the partitions of all topics, and rounds up."""
BUSY, QUIET = "11", "12"
"""Stores, each in a partition of its own: one of thousands of receipts, one of a few."""
Receipts = list[tuple[str, int, datetime, datetime]]
"""Store, number, happened at, received at."""


class Nothing:
    """A progress that nobody looks at."""

    def step(self, done: int, total: int, what: str) -> None: ...


@pytest.fixture
def settings(tmp_path: Path) -> Iterator[Settings]:
    """A stack without archive and speed."""
    found = settings_on_free_ports(
        tmp_path, epoch_seconds=60, skew_seconds=1, archive_seconds=1, records_per_batch=RECORDS_AT_ONCE
    )
    ensure_jars(found)
    with Stack(found, only=("kafka", "cassandra", "api")):
        yield found


@contextmanager
def running(settings: Settings, name: str) -> Iterator[None]:
    """A process of the product, ended as by `kill -9`."""
    environment = {**os.environ, **settings.environment()}
    with (settings.home / "logs" / f"{name}.log").open("ab") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", f"deploy.services.{name}"],
            env=environment,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
        try:
            yield
            assert process.poll() is None
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def arrive(settings: Settings, receipts: Receipts) -> None:
    """Records with these receipt times, whatever the clock says."""
    producer = Producer({**settings.kafka.connection.client(), "enable.idempotence": True})
    with stamped_by(settings, "CreateTime"):
        for store, number, happened_at, received_at in receipts:
            body = {
                "happened_at": iso_instant(happened_at),
                "operation_id": store,
                "transaction_id": number,
                "vendor_fiscal_module": 1,
                "transactions": [{"title": "Milk 1 l", "price": 1.09, "amount": 1}],
            }
            producer.produce(
                POS_TRANSACTIONS.topic,
                json.dumps(body),
                store,
                partition=int(store) % 2,
                timestamp=int(received_at.timestamp() * 1000),
            )
            producer.poll(0)
        assert producer.flush(PATIENCE_SECONDS) == 0


def spread(store: str, numbers: range, since: datetime, until: datetime) -> Receipts:
    """Receipts delivered evenly over a time, each five minutes after it happened."""
    received = [since + (until - since) / len(numbers) * place for place, _ in enumerate(numbers)]
    return [(store, number, at - HOUR / 12, at) for number, at in zip(numbers, received, strict=True)]


def read_to_the_end(settings: Settings, positions: Callable[[], Offsets]) -> None:
    """Wait for a reader."""
    ends = {POS_TRANSACTIONS.topic: Topics(settings.kafka.connection).end_offsets(POS_TRANSACTIONS.topic)}
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not reached(positions(), ends):
        assert time.monotonic() < deadline, f"{positions()} never came to {ends}"
        time.sleep(0.2)


def published(settings: Settings, cut: datetime, monkeypatch: pytest.MonkeyPatch) -> int:
    """Publish at a cut of the past, as if it were now."""
    with monkeypatch.context() as clock:
        clock.setattr(Fence, "newest_cut", lambda _: cut)
        done = recompute(settings, RecomputeRequest(), why="a test", by="a test", steps=Nothing())
    assert done.report
    assert done.report.cut == cut
    assert done.publication
    return done.publication


def as_published(settings: Settings) -> tuple[dict[str, int], dict[str, Any]]:
    """Receipts by store, and what the answer rests on."""
    body = Asking(settings, {}).get(
        "/v1/metrics/total_transactions_count",
        store=[BUSY, QUIET],
        grain="total",
        **{"from": iso_instant(NOW - 72 * HOUR), "to": iso_instant(NOW + 24 * HOUR)},
    )
    return {each["store"]: each["points"][0]["value"] for each in body["series"]}, body["as_of"]


def test_two_days_of_receipts_are_caught_up_with_across_two_publications(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    generations = Generations(session_of(settings.cassandra.address))
    archived = ArchivePositions(session_of(settings.cassandra.address)).read
    cut = (NOW - 48 * HOUR).replace(second=0)
    first = spread(BUSY, range(100), NOW - 49 * HOUR, cut - HOUR / 2) + spread(QUIET, range(1), cut - HOUR, cut)
    meanwhile = spread(BUSY, range(100, 5_100), cut, NOW - HOUR) + spread(QUIET, range(1, 31), cut, NOW - 30 * HOUR)
    again = [(store, number, at, received + 20 * HOUR) for store, number, at, received in meanwhile[:2_000:4]]
    arrive(settings, first)
    with running(settings, "archive"), running(settings, "speed"):
        read_to_the_end(settings, lambda: generations.positions(generations.pointer().generation))
        read_to_the_end(settings, archived)
        published(settings, cut, monkeypatch)

    arrive(settings, sorted([*meanwhile, *again], key=lambda each: each[-1]))
    with running(settings, "archive"):
        read_to_the_end(settings, archived)
        published(settings, (NOW - 20 * HOUR).replace(second=0), monkeypatch)
        behind, _ = as_published(settings)
        with running(settings, "speed"):
            last = published(settings, (NOW - 10 * HOUR).replace(second=0), monkeypatch)
            read_to_the_end(settings, lambda: generations.positions(generations.pointer().generation))
            caught_up, as_of = as_published(settings)
            verdict = verification_of(settings).run(lambda *_: None)

    log = (settings.home / "logs" / "speed.log").read_text()
    micro_batches = [int(rows) for rows in re.findall(r"rows=(\d+)", log)]
    assert behind[BUSY] < 5_100
    assert caught_up == {BUSY: 5_100, QUIET: 31}
    assert (as_of["publication"], as_of["waiting_for_batch"]) == (last, 0)
    assert verdict.differing == 0
    assert max(micro_batches) <= RECORDS_AT_ONCE + ROUNDED
