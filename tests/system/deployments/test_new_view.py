"""Adding a view is one file, and adding a source is one: dropped in, they are read, rebuilt, served and documented."""

import json
import os
import shutil
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.fast.house.tree import PACKAGES
from tests.integration.conftest import PATIENCE_SECONDS, Stack, around_now, settings_of

pytestmark = pytest.mark.nightly

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
SOURCE = '''"""Somebody takes things to try on into a fitting room."""

import msgspec

from master_dataset.fields import Id, Instant, Label, Whole
from master_dataset.source import Record, Source
from master_dataset.registry.stores import Terms


class Fitting(msgspec.Struct, frozen=True, gc=False):
    """How many things went in."""

    room: str
    things: int


def fitting(record: Record, _: Terms) -> Fitting:
    """Give it as it was sent."""
    return Fitting(record["room"], record["things"])


FITTING_ROOMS = Source(
    topic="fitting_rooms",
    store="operation_id",
    happened_at="happened_at",
    identity=("operation_id", "room", "happened_at"),
    fields={
        "operation_id": Id(about="The store."),
        "room": Label(about="The room."),
        "happened_at": Instant(about="When somebody went in."),
        "things": Whole(0, 100, about="How many things."),
    },
    payload=Fitting,
    derive=fitting,
    content=("things",),
    example={"happened_at": "2026-03-07T10:00:00Z", "operation_id": 1, "room": "A", "things": 3},
)
'''
VIEW_OF_SOURCE = '''"""How much do they try on? Things by room."""

from master_dataset.sources.fitting_rooms import FITTING_ROOMS
from views.core import Count, Sum, View

FITTINGS = View(
    name="fittings",
    source=FITTING_ROOMS,
    dimensions={"room": "room"},
    metrics={"fittings": Count(), "things": Sum("things")},
)
'''


def receipt(number: int, lines: int) -> bytes:
    body = {
        "happened_at": datetime.now(UTC).isoformat(timespec="milliseconds"),
        "operation_id": "7",
        "transaction_id": number,
        "vendor_fiscal_module": 1,
        "transactions": [{"title": "Milk 1 l", "price": 1.09, "amount": 1}] * lines,
    }
    return json.dumps(body).encode() + b"\n"


def fitting(room: str, things: int) -> bytes:
    at = datetime.now(UTC) - timedelta(seconds=things)  # two at once in one room would be one event
    body = {"happened_at": at.isoformat(), "operation_id": "7", "room": room, "things": things}
    return json.dumps(body).encode() + b"\n"


def fittings(stack: Stack) -> dict[str, dict[str, int]]:
    """Of the new source: room to states."""
    cells = stack.get("/v1/views/fittings/cells", store="7", **around_now())["cells"]
    return {cell["dimensions"]["room"]: cell["merged"] for cell in cells}


def states(stack: Stack, **question: str) -> dict[str, dict[str, object]]:
    """Of the new view's cells: size to states."""
    cells = stack.get("/v1/views/baskets/cells", store="7", **around_now(), **question)["cells"]
    return {cell["dimensions"]["size"]: cell["merged"] for cell in cells}


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    """The product's own packages and pages, as somebody who adds a view has them."""
    for folder in (*PACKAGES, "docs"):
        shutil.copytree(Path(folder), tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path


def test_one_new_file_is_streamed_rebuilt_served_verified_and_documented(sources: Path) -> None:
    (sources / "views" / "baskets.py").write_text(VIEW)
    (sources / "master_dataset" / "sources" / "fitting_rooms.py").write_text(SOURCE)
    (sources / "views" / "fittings.py").write_text(VIEW_OF_SOURCE)
    settings, environment = settings_of(sources / "home")
    stack = Stack(settings, {**environment, "PYTHONPATH": str(sources)})
    receipts = sources / "receipts.jsonl"
    twice = receipt(2, 3)
    receipts.write_bytes(receipt(1, 1) + twice + twice + receipt(3, 5))
    rooms = sources / "rooms.jsonl"
    rooms.write_bytes(fitting("A", 3) + fitting("A", 2) + fitting("B", 1))
    tried = {"A": {"fittings": 2, "things": 5}, "B": {"fittings": 1, "things": 1}}
    expected = {
        "one": {"receipts": 1, "lines": {"sum": 1, "n": 1}, "largest": 1},
        "several": {"receipts": 2, "lines": {"sum": 8, "n": 2}, "largest": 5},
    }

    try:
        stack.run("up", "--detach", "--without-airflow", source=sources)
        stack.run("ingest", "pos_transactions", str(receipts), source=sources)
        stack.run("ingest", "fitting_rooms", str(rooms), source=sources)
        deadline = time.monotonic() + PATIENCE_SECONDS
        while (states(stack, partial="true") != expected or fittings(stack) != tried) and time.monotonic() < deadline:
            time.sleep(0.5)
        streamed = states(stack)  # without `partial`: the speed layer answers
        stack.galatea("rebuild", "--wait", source=sources)
        rebuilt, fitted = states(stack), fittings(stack)
        verdict = stack.galatea("verify", source=sources)
        stack.run_python("-m", "galatea.cli.reference", source=sources)
    finally:
        stack.run("down", source=sources)

    assert streamed == expected
    assert rebuilt == expected
    assert fitted == tried
    assert verdict["differing"] == 0
    assert any("baskets" in page.read_text() for page in (sources / "docs" / "reference").rglob("*.md"))
    assert (sources / "docs" / "reference" / "schemas" / "fitting_rooms.schema.json").exists()
    assert os.environ.get("GALATEA_HOME") != str(settings.home)
