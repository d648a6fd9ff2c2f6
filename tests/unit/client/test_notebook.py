"""The notebook does what it shows: its cells run against the real application, over a socket."""

import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
import uvicorn

from tests.house.tree import ROOT
from tests.world import World, receipt
from tests.world.asking import Asking

NOTEBOOK = ROOT / "docs" / "notebooks" / "client.ipynb"
WHERE = "http://127.0.0.1:8000"


@contextmanager
def served(asking: Asking) -> Iterator[str]:
    """The application on a free port of this machine; its address."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        server = uvicorn.Server(uvicorn.Config(asking.app, log_level="critical", lifespan="off"))
        serving = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        serving.start()
        try:
            while not server.started:
                time.sleep(0.01)
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            server.should_exit = True
            serving.join()


def cells() -> list[str]:
    return [
        "".join(cell["source"]) for cell in json.loads(NOTEBOOK.read_text())["cells"] if cell["cell_type"] == "code"
    ]


def test_the_notebook_runs_from_its_first_cell_to_its_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    world = World()
    for number, day in enumerate((10, 16, 17)):
        world.receive(receipt(f"2026-11-{day}T10:07:00Z", minor=250, number=number), f"2026-11-{day}T10:07:10Z")
    world.rebuild("2026-11-17T00:00Z")
    scope: dict[str, Any] = {}

    with served(Asking(world)) as address:
        for number, cell in enumerate(cells()):
            code = compile(cell.replace(WHERE, address), f"cell {number}", "exec")
            exec(code, scope)  # noqa: S102 - what a reader of the notebook would do

    assert scope["days"]["value"].sum() == Decimal("7.50")
    assert scope["wide"].columns == ["start", "net_sales", "total_transactions_count"]
    assert (tmp_path / "sales.csv").read_text().count("net_sales") == 14


def test_the_notebook_is_kept_without_what_it_printed() -> None:
    kept = json.loads(NOTEBOOK.read_text())["cells"]

    assert WHERE in cells()[0]
    assert [cell["id"] for cell in kept if cell.get("outputs") or cell.get("execution_count")] == []
