"""The notebook and the pages do what they show: their code runs against the real application, over a socket."""

import json
import re
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from deploy.secret_files import write_private
from galatea.client import Client
from master_dataset.registry.stores import GroupVersion, Store
from tests.fast.house.tree import ROOT
from tests.support import World, receipt
from tests.support.world_api import OPERATOR_KEY, Asking, WorldRecomputing
from tests.support.world_clients import served

NOTEBOOK = ROOT / "docs" / "tutorial" / "client.ipynb"
WHERE = "http://127.0.0.1:8000"


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    """Three receipts, of which a publication covers two; an operator's key in the working directory."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".galatea").mkdir()
    write_private(tmp_path / ".galatea" / "operator.key", OPERATOR_KEY)
    world = World(
        Store(id="1", timezone="Europe/Bratislava", groups=(GroupVersion(None, {"region": "West"}),)),
    )
    for number, day in enumerate((10, 16, 17)):
        world.receive(receipt(f"2026-11-{day}T10:07:00Z", minor=250, number=number), f"2026-11-{day}T10:07:10Z")
    world.rebuild("2026-11-17T00:00Z")
    return world


def executed(blocks: list[str], world: World) -> dict[str, Any]:
    """What is there after all blocks ran, one after the other."""
    scope: dict[str, Any] = {}
    assert any(WHERE in block for block in blocks)
    with served(Asking(world)) as address:
        for number, block in enumerate(blocks):
            code = compile(block.replace(WHERE, address), f"block {number}", "exec")
            exec(code, scope)  # noqa: S102 - what a reader of the page would do
        for client in (each for each in scope.values() if isinstance(each, Client)):
            client.close()
    return scope


def cells() -> list[str]:
    return [
        "".join(cell["source"]) for cell in json.loads(NOTEBOOK.read_text())["cells"] if cell["cell_type"] == "code"
    ]


def blocks(page: str) -> list[str]:
    return re.findall(r"^```python\n(.+?)^```", (ROOT / page).read_text(), re.MULTILINE | re.DOTALL)


def test_the_notebook_runs_from_its_first_cell_to_its_last(world: World, tmp_path: Path) -> None:
    scope = executed(cells(), world)

    assert scope["days"]["value"].sum() == Decimal("7.50")
    assert scope["wide"].columns == ["start", "net_sales", "total_transactions_count"]
    assert (tmp_path / "sales.csv").read_text().count("net_sales") == 14


def test_the_notebook_is_kept_without_what_it_printed() -> None:
    kept = json.loads(NOTEBOOK.read_text())["cells"]

    assert [cell["id"] for cell in kept if cell.get("outputs") or cell.get("execution_count")] == []


def test_what_the_readme_shows_runs(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    in_this_world = [block.replace('store="367"', 'store="1"') for block in blocks("README.md")]

    scope = executed(in_this_world, world)

    assert capsys.readouterr().out == "1 2.50\n"
    assert len(scope["frame"]) == 7


def test_what_the_guide_shows_runs(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def publish_at_once(self: WorldRecomputing, *_: object) -> str:
        id_ = start(self, *_)  # type: ignore[arg-type]
        self.world.rebuild("2026-11-17T00:05Z")
        self.world.recomputes[id_] = replace(self.world.recomputes[id_], state="published", publication=2)
        return id_

    start = WorldRecomputing.start
    monkeypatch.setattr(WorldRecomputing, "start", publish_at_once)

    scope = executed(blocks("docs/how-to/python-client.md"), world)

    said = capsys.readouterr().out.splitlines()
    assert said[0] == "2026-11-15 23:00:00+00:00 2.50 True None"
    assert said[-4:] == ["1 () ()", "default 1", "published 2 None", "5.00"]
    assert len(scope["receipts"]) == 1
    assert scope["planned"].dry_run
    assert (tmp_path / "week.csv").read_text().count("net_sales") == 7
