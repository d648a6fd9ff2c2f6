"""Adding a view is one file: dropped into `views/`, it is streamed, rebuilt, served, verified and documented."""

import json
import os
import shutil
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.integration.conftest import PATIENCE_SECONDS, Stack, around_now, settings_of

VIEW = '''"""How do people pay attention to the basket? Receipts by the number of their lines."""

from master_dataset.sources.pos_transactions import POS_TRANSACTIONS
from views.core import Count, Max, Mean, View

BASKETS = View(
    name="baskets",
    source=POS_TRANSACTIONS,
    dimensions={"size": "if(line_count > 1, 'several', 'one')"},
    metrics={"receipts": Count(), "lines": Mean("line_count"), "largest": Max("line_count")},
)
'''
PACKAGES = ("views", "master_dataset", "batch_layer", "speed_layer", "serving_layer", "dags", "deploy")


def receipt(number: int, lines: int) -> bytes:
    body = {
        "happened_at": datetime.now(UTC).isoformat(timespec="milliseconds"),
        "operation_id": "7",
        "transaction_id": number,
        "vendor_fiscal_module": 1,
        "transactions": [{"title": "Milk 1 l", "price": 1.09, "amount": 1}] * lines,
    }
    return json.dumps(body).encode() + b"\n"


def states(stack: Stack, **question: str) -> dict[str, dict[str, object]]:
    """Of the new view's cells: size to states."""
    cells = stack.get("/v1/views/baskets/cells", store="7", **around_now(), **question)["cells"]
    return {cell["dimensions"]["size"]: cell["merged"] for cell in cells}


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    """The product's own packages, as somebody who adds a view has them."""
    for package in PACKAGES:
        shutil.copytree(Path(package), tmp_path / package, ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path


def test_one_new_file_is_streamed_rebuilt_served_verified_and_documented(sources: Path) -> None:
    (sources / "views" / "baskets.py").write_text(VIEW)
    settings, environment = settings_of(sources / "home")
    stack = Stack(settings, {**environment, "PYTHONPATH": str(sources)})
    receipts = sources / "receipts.jsonl"
    receipts.write_bytes(receipt(1, 1) + receipt(2, 3) + receipt(2, 3) + receipt(3, 5))
    expected = {
        "one": {"receipts": 1, "lines": {"sum": 1, "n": 1}, "largest": 1},
        "several": {"receipts": 2, "lines": {"sum": 8, "n": 2}, "largest": 5},
    }

    try:
        stack.run("up", "--detach", "--without-airflow", source=sources)
        stack.run("ingest", "pos_transactions", str(receipts), source=sources)
        deadline = time.monotonic() + PATIENCE_SECONDS
        while states(stack, partial="true") != expected and time.monotonic() < deadline:
            time.sleep(0.5)
        streamed = states(stack)  # without `partial`: the speed layer answers
        stack.galatea("rebuild", "--wait", source=sources)
        rebuilt = states(stack)
        verdict = stack.galatea("verify", source=sources)
        stack.run_python("-m", "deploy.reference", source=sources)
    finally:
        stack.run("down", source=sources)

    assert streamed == expected
    assert rebuilt == expected
    assert verdict["differing"] == 0
    assert any("baskets" in page.read_text() for page in (sources / "docs").rglob("*.md"))
    assert os.environ.get("GALATEA_HOME") != str(settings.home)
