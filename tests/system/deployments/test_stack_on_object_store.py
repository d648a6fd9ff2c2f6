"""The whole stack with tables and checkpoints on an object store: what is sent is archived, answered and compacted."""

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from http.client import OK
from pathlib import Path

import pytest

from master_dataset.sources.pos_transactions import POS_TRANSACTIONS
from master_dataset.storage import exists, names_in, open_table
from tests.integration.conftest import PATIENCE_SECONDS, Stack, around_now, settings_of, started
from tests.support.object_stores import ROOT, LocalObjectStore, object_store_for_stacks

STORE = "remote"
CELLS = "/v1/views/sales/cells"
MASTER, CORRECTED, CHECKPOINTS = f"{ROOT}/master", f"{ROOT}/corrected", f"{ROOT}/checkpoints"


def receipts(first: int, number: int) -> Iterator[bytes]:
    now = datetime.now(UTC)
    for each in range(first, first + number):
        sold = {
            "happened_at": (now - timedelta(hours=each % 40)).isoformat(timespec="milliseconds"),
            "operation_id": STORE,
            "transaction_id": f"{each}",
            "vendor_fiscal_module": "1",
            "transactions": [{"title": "Milk 1 l", "price": 1.09, "amount": 2, "sku": "8580001"}],
        }
        yield json.dumps(sold).encode()


def sold_in(stack: Stack) -> int:
    """Receipts of all cells, as soon as speed has finished a micro-batch: before that there is no answer."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while (answer := stack.request("GET", CELLS, params={"store": STORE, **around_now()})).status_code != OK:
        assert answer.json()["code"] == "speed_unavailable", answer.text
        assert time.monotonic() < deadline, answer.text
        time.sleep(1)
    return sum(cell["merged"]["receipts"] for cell in answer.json()["cells"])


@contextmanager
def stack_on_object_store(home: Path) -> Iterator[tuple[Stack, LocalObjectStore]]:
    """A stack of its own."""
    with object_store_for_stacks() as served, started(*settings_of(home, **served.variables)) as stack:
        yield stack, served


@pytest.mark.nightly
def test_what_is_sent_is_archived_answered_compacted_and_exported(tmp_path: Path) -> None:
    with stack_on_object_store(tmp_path / "home") as (stack, served):
        served.lose_answers()
        for portion in range(6):
            stack.ingest(POS_TRANSACTIONS.topic, receipts(50 * portion, 50))
        stack.galatea("rebuild", "--wait")
        answered = sold_in(stack)
        compacted = stack.galatea("compact")
        exported = stack.galatea("export")
        verdict = stack.galatea("verify")
        balanced = stack.galatea("reconcile")
        rows = open_table(f"{MASTER}/{POS_TRANSACTIONS.topic}").count()
        own = f"{CHECKPOINTS}/archive/{POS_TRANSACTIONS.topic}"
        kept = names_in(f"{own}/{names_in(own)[0]}")
        has_local = [(tmp_path / "home" / name).exists() for name in ("master", "corrected", "checkpoints")]
        has_export = exists(f"{CORRECTED}/sales/_delta_log")

    assert (answered, rows) == (300, 300)
    assert verdict["differing"] == 0
    assert compacted["tables"]
    assert exported["uri"] == CORRECTED
    assert "300" in json.dumps(balanced)
    assert {"offsets", "commits", "metadata"} <= set(kept)
    assert has_local == [False] * 3
    assert has_export
