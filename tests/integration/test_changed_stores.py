"""A load that changes how records are read waits until the archive has read those that were sent before it."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.integration.conftest import Stack

LATE, NEW = "sends-before-its-load", "has-a-currency"


def receipt(store: str, number: int) -> bytes:
    body = {
        "happened_at": datetime.now(UTC).isoformat(timespec="milliseconds"),
        "operation_id": store,
        "transaction_id": str(number),
        "vendor_fiscal_module": "1",
        "transactions": [{"title": "Milk 1 l", "price": 1.5, "amount": 2, "sku": "8580001"}],
    }
    return json.dumps(body).encode()


def load(stack: Stack, folder: Path, store: str, currency: str) -> dict[str, Any]:
    file = folder / f"{store}.yaml"
    file.write_text(f'stores:\n  - {{id: "{store}", timezone: UTC, currency: {currency}}}\n')
    loaded: dict[str, Any] = stack.galatea("stores", "load", str(file))
    return loaded


def test_receipts_that_the_archive_has_not_read_yet_fix_the_currency(stack: Stack, tmp_path: Path) -> None:
    stack.ingest("pos_transactions", [receipt(LATE, 1)])

    with pytest.raises(AssertionError, match="has events in EUR, so its currency is not KWD"):
        load(stack, tmp_path, LATE, "KWD")

    assert load(stack, tmp_path, NEW, "KWD") == {"loaded": 1, "received_before": []}
