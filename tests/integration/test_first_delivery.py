"""Two deliveries of one receipt, read in one micro-batch, with a cut between them: counted once before and after."""

import json
import os
import signal
import time
from datetime import UTC, datetime
from typing import Any

import pytest

from tests.integration.conftest import Stack, around_now

STORE = "first-delivery"


def line() -> bytes:
    body = {
        "happened_at": datetime.now(UTC).isoformat(timespec="milliseconds"),
        "operation_id": STORE,
        "transaction_id": "once",
        "vendor_fiscal_module": "1",
        "transactions": [{"title": "Milk 1 l", "price": 1.09, "amount": 2, "sku": "8580001"}],
    }
    return json.dumps(body).encode()


def speed_pid(stack: Stack) -> int:
    return int(next(each["pid"] for each in stack.galatea("status")["components"] if each["name"] == "speed"))


def receipts(stack: Stack) -> list[dict[str, Any]]:
    cells: list[dict[str, Any]] = stack.get("/v1/views/sales/cells", store=STORE, **around_now())["cells"]
    return cells


@pytest.mark.nightly
def test_a_cut_between_two_deliveries_of_one_micro_batch_counts_the_receipt_once(stack: Stack) -> None:
    once = [line()]
    stopped = speed_pid(stack)
    os.killpg(stopped, signal.SIGSTOP)

    try:
        stack.ingest("pos_transactions", once)
        stack.rebuild()
        time.sleep(2)  # the second delivery lies in another epoch, behind the cut
        stack.ingest("pos_transactions", once)
    finally:
        os.killpg(stopped, signal.SIGCONT)
    verdict = stack.verify()

    assert verdict.differing == 0
    cells = receipts(stack)
    assert [cell["merged"]["receipts"] for cell in cells] == [1]
    assert cells[0]["speed"] is None
    stack.rebuild()
    assert [cell["merged"]["gross_sales"] for cell in receipts(stack)] == [218]
