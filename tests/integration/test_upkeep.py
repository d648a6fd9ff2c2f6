"""What is done beside the daily work, on a stack that goes on: nothing that readers see changes."""

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from batch_layer.master import Master, files_at
from batch_layer.run import read_manifest
from batch_layer.verify.verification import Sample
from deploy.cassandra import session_of
from master_dataset.delta.tables import MasterTables
from master_dataset.sources import registered_sources
from master_dataset.sources.pos_transactions import POS_TRANSACTIONS
from tests.integration.conftest import Stack, around_now
from views.control.publication import PointerRow

STORE = "upkeep"


def receipts(first: int, now: datetime) -> Iterator[bytes]:
    """A receipt of each of the last three days, at that time of day."""
    for days in range(3):
        sold = {
            "happened_at": (now - timedelta(days=days)).isoformat(timespec="milliseconds"),
            "operation_id": STORE,
            "transaction_id": f"{first + days}",
            "vendor_fiscal_module": "1",
            "transactions": [{"title": "Milk 1 l", "price": 1.09, "amount": 2, "sku": "8580001"}],
        }
        yield json.dumps(sold).encode()


def shown(stack: Stack) -> list[tuple[str, Any]]:
    cells = stack.get("/v1/views/sales/cells", store=STORE, **around_now())["cells"]
    return sorted((cell["window"], cell["merged"]) for cell in cells)


def stepped_back(stack: Stack, path: str) -> set[date]:
    """What the next rebuild would alarm."""
    pointer = PointerRow(session_of(stack.settings.cassandra.address))
    base = pointer.read()
    published = pointer.publication(base.publication)
    assert published is not None
    version = published.master_versions[POS_TRANSACTIONS.topic]
    return Master.newest(path).days_stepped_back(version, base.cut - stack.settings.layers.epoch)


def known_days(stack: Stack) -> set[date]:
    """Those with events of any source, and those that are published."""
    session, tables = session_of(stack.settings.cassandra.address), MasterTables(stack.settings.paths.master_uri)
    archived = [Master.newest(tables.path(topic)).days() for topic in registered_sources()]
    return {day for _, day in read_manifest(session, PointerRow(session).read().manifest)}.union(*archived)


@contextmanager
def hidden(path: str, but: date) -> Iterator[None]:
    """No file of another day is there."""
    files = [Path(path, file.path) for file in files_at(path, Master.newest(path).version) if file.day != but]
    assert files
    for file in files:
        file.rename(f"{file}.away")
    try:
        yield
    finally:
        for file in files:
            Path(f"{file}.away").rename(file)


@pytest.mark.nightly
def test_compaction_and_collection_change_no_answer_and_raise_no_alarm_and_a_sample_reads_its_days_alone(
    stack: Stack,
) -> None:
    path, now = MasterTables(stack.settings.paths.master_uri).path(POS_TRANSACTIONS.topic), datetime.now(UTC)
    for number in range(4):
        version = Master.newest(path).version
        stack.ingest(POS_TRANSACTIONS.topic, receipts(10 * number, now))
        while Master.newest(path).version == version:  # a file of each day for each of them
            time.sleep(0.1)
    stack.rebuild()
    before = shown(stack)

    compacted = {each["table"]: each for each in stack.galatea("compact")["tables"]}
    collected = stack.galatea("gc", "--keep", "1")
    known, own = known_days(stack), Master.newest(path).days()
    seed, drawn = next((seed, day) for seed in count() for day in Sample(1, seed).draw(known) if day in own)
    with hidden(path, drawn):
        verdict = stack.galatea("verify", "--sample", "1", "--seed", f"{seed}")

    assert compacted[POS_TRANSACTIONS.topic]["files_before"] - compacted[POS_TRANSACTIONS.topic]["files_after"] >= 9
    assert stepped_back(stack, path) == set()
    assert len(before) == 3
    assert shown(stack) == before
    assert collected["publication"] == stack.get("/v1/freshness")["publication"]
    assert (verdict["differing"], verdict["days"], verdict["seed"]) == (0, [str(drawn)], seed)
    assert verdict["cells"] > 0
