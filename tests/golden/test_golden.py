"""Example 6.1 of the metrics catalogue: events in, cells and numbers out, all worked out by hand.

Store 1 has 200 m2 and, on this Saturday, is open from 10:00 to 10:30, so that per area and per hour are easy to follow:
5.82 / 200 and 5.82 / 0.5. `sku_attach_rate` without `by` adds the receipts of all items: 4 of 3 sale receipts.
"""

import json
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from master_dataset.stores import Store
from tests.world import World
from tests.world.asking import Asking

HERE = Path(__file__).parent
VIEWS = ("sales", "sales_by_sku", "sales_by_till")
CUTS = (None, "2026-03-07T09:00:00Z", "2026-03-07T09:10:00Z", "2026-03-07T09:25:00Z", "2026-03-08T00:00:00Z")
"""Speed alone, three splits (the second between the first delivery and its duplicate), batch alone."""
SPAN = {"store": "1", "from_": "2026-03-07T10:00:00+01:00", "to": "2026-03-07T10:30:00+01:00"}


def world_of(view: str, cut: str | None) -> World:
    """The events received as they happened, the duplicate six minutes late, and one publication."""
    world = World(Store(id="1", timezone="Europe/Bratislava", floor_m2=200, opening_hours={"sat": ("10:00-10:30",)}))
    lines = (HERE / view / "events.jsonl").read_bytes().splitlines()
    delays = (1, 1, 360, 1, 1)
    sent = [
        (datetime.fromisoformat(json.loads(line)["happened_at"]) + timedelta(seconds=delay), line)
        for line, delay in zip(lines, delays, strict=True)
    ]
    for at, line in sorted(sent):
        world.receive(line, at)
    if cut:
        world.rebuild(cut)
    return world


@pytest.mark.parametrize("cut", CUTS)
@pytest.mark.parametrize("view", VIEWS)
def test_the_cells_are_those_worked_out_by_hand_wherever_the_cut_lies(view: str, cut: str | None) -> None:
    asking = Asking(world_of(view, cut))

    cells = asking.body(f"/v1/views/{view}/cells", **SPAN)["cells"]

    shown = [{name: cell[name] for name in ("window", "dimensions", "merged")} for cell in cells]
    assert shown == json.loads((HERE / view / "expected.json").read_text())


@pytest.mark.parametrize("cut", CUTS)
def test_the_metrics_are_those_worked_out_by_hand_wherever_the_cut_lies(cut: str | None) -> None:
    asking = Asking(world_of("sales", cut))
    expected = json.loads((HERE / "sales" / "metrics.json").read_text())

    answers = {metric: asking.body(f"/v1/metrics/{metric}", grain="total", **SPAN) for metric in expected}

    values = {metric: answer["series"][0]["points"][0]["value"] for metric, answer in answers.items()}
    assert values == expected
    assert {listed["metric"] for listed in asking.body("/v1/metrics")["metrics"]} == set(expected)
