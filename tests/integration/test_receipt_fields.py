"""A running stack shows what receipts say beside their lines: discounts, payments, and what they call a SKU."""

import json
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.integration.conftest import PATIENCE_SECONDS, Stack, around_now

STORE = "receipt-fields"


def test_discounts_payments_and_titles_are_shown_as_they_arrive(stack: Stack, tmp_path: Path) -> None:
    stores = tmp_path / "stores.yaml"
    stores.write_text(f"stores:\n  - {{id: {STORE}, timezone: UTC}}\n")
    line = {"title": "Milk 1 l", "price": 2, "amount": 2, "discount": 0.5, "sku": "no master has it"}
    body = {
        "happened_at": datetime.now(UTC).isoformat(timespec="milliseconds"),
        "operation_id": STORE,
        "transaction_id": "1",
        "vendor_fiscal_module": "1",
        "transactions": [line],
        "payments": [{"type": "voucher", "amount": 1}, {"type": "cash", "amount": 2.5}],
    }
    stack.galatea("stores", "load", str(stores))
    stack.ingest("pos_transactions", [json.dumps(body).encode()])

    def ask(metric: str, **more: str) -> Any:
        question = {"store": STORE, **around_now(), "grain": "total", **more}
        return stack.get(f"/v1/metrics/{metric}", **question)["series"]

    deadline = time.monotonic() + PATIENCE_SECONDS
    while not (sold := ask("sku_net_sales", by="sku")):
        assert time.monotonic() < deadline
        time.sleep(0.2)

    assert [(each["title"], each.get("title_from")) for each in sold] == [("Milk 1 l", "receipts")]
    assert [each["points"][0]["value"] for each in sold] == [3.5]
    paid = {
        each["dimensions"]["payment_type"]: each["points"][0]["value"] for each in ask("payments", by="payment_type")
    }
    assert paid == {"cash": 2.5, "voucher": 1.0}
    assert ask("discounts")[0]["points"][0]["value"] == 0.5
    assert ask("discount_share")[0]["points"][0]["value"] == pytest.approx(12.5)
