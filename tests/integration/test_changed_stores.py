"""A load that changes how records are read: it waits for the archive, and each record is read in one way for ever."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from master_dataset.sources.people_counts import PEOPLE_COUNTS
from tests.integration.conftest import Stack, around_now

FLAG = "flag_"
LATE, NEW, GAINS_SENSORS = "sends-before-its-load", "has-a-currency", "gains-sensors"


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

    assert load(stack, tmp_path, NEW, "KWD")["takes_effect_at"]
    assert load(stack, tmp_path, NEW, "KWD") == {"loaded": 1, "takes_effect_at": None, "moved": []}


def counted(sensor: str, minute: int) -> bytes:
    """What a camera counted in a minute of an hour ago."""
    began_at = datetime.now(UTC).replace(minute=minute, second=0, microsecond=0) - timedelta(hours=2)
    begins = began_at.isoformat(timespec="milliseconds")
    own = {"happened_at": begins, "operation_id": GAINS_SENSORS, "sensor_id": sensor, "interval_ms": 60_000}
    return json.dumps({**PEOPLE_COUNTS.example, **own}).encode()


def count(stack: Stack, minutes: range) -> None:
    stack.ingest("people_counts", [counted(sensor, minute) for sensor in ("cam-1", "cam-2") for minute in minutes])


@pytest.mark.nightly
def test_a_new_generation_reads_records_as_the_archive_read_them_when_they_came(stack: Stack, tmp_path: Path) -> None:
    """Before a publication, both are counted: its cut would hide that the speed layer reads them again."""
    count(stack, range(20))
    file = tmp_path / "stores.yaml"
    sensors = "[{id: cam-1, source: people_counts}]"
    file.write_text(f'stores:\n  - {{id: "{GAINS_SENSORS}", timezone: UTC, sensors: {sensors}}}\n')
    stack.run("stores", "load", str(file))
    count(stack, range(30, 50))

    stack.run("speed", "restart", "--wait")

    verdict = stack.verify()
    assert (verdict.differing, verdict.examples) == (0, [])
    cells = stack.get("/v1/views/traffic/cells", store=GAINS_SENSORS, **around_now())["cells"]
    unregistered = sum(cell["merged"][f"{FLAG}unregistered_sensor"] for cell in cells)
    assert (unregistered, sum(cell["merged"]["covered_ms"] for cell in cells)) == (20, 80 * 60_000)
