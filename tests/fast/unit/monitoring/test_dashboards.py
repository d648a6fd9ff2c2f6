"""Grafana dashboards: written from the code, of metrics that are documented, and with SQL that this product answers."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from galatea.cli.reference.dashboards import COLUMNS, DASHBOARDS, Dashboard
from master_dataset.registry.stores import Store
from tests.support import World, receipt
from tests.support.world_sql import AskingSql

ROOT = Path(__file__).parents[4]
METRICS = ROOT / "docs" / "how-to" / "monitoring.md"
BY_UID = [pytest.param(each, id=each.uid) for each in DASHBOARDS]
OF_SQL = [pytest.param(each, id=each.uid) for each in DASHBOARDS if each.source != "prometheus"]


@pytest.fixture(scope="module")
def sql() -> Iterator[AskingSql]:
    world = World(Store(id="1", timezone="Europe/Bratislava", name="One"))
    for number, hour in enumerate((9, 12, 15)):
        at = f"2026-03-05T{hour:02}:00:00Z"
        world.receive(receipt(at, minor=100, number=number, store="1"), at)
    world.pass_time("2026-03-06T10:00:00Z")
    with AskingSql(world) as asking:
        yield asking


def panels(of: Dashboard) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = of.json()["panels"]
    return found


@pytest.mark.parametrize("dashboard", BY_UID)
def test_a_file_is_what_the_code_writes(dashboard: Dashboard) -> None:
    file = ROOT / "deploy" / "monitoring" / "dashboards" / f"{dashboard.uid}.json"

    assert json.loads(file.read_text(encoding="utf-8")) == dashboard.json()


@pytest.mark.parametrize("dashboard", BY_UID)
def test_panels_lie_beside_each_other(dashboard: Dashboard) -> None:
    taken = [
        (x, y)
        for place in (panel["gridPos"] for panel in panels(dashboard))
        for x in range(place["x"], place["x"] + place["w"])
        for y in range(place["y"], place["y"] + place["h"])
    ]

    assert len(taken) == len(set(taken))
    assert max(x for x, _ in taken) < COLUMNS
    assert len({panel["id"] for panel in panels(dashboard)}) == len(panels(dashboard))


@pytest.mark.parametrize("dashboard", BY_UID)
def test_metrics_are_documented(dashboard: Dashboard) -> None:
    documented = set(re.findall(r"^\| `(galatea_\w+)`", METRICS.read_text(encoding="utf-8"), re.MULTILINE))
    documented |= {f"{name}_{part}" for name in documented for part in ("count", "bucket")}
    expressions = [target.get("expr", "") for panel in panels(dashboard) for target in panel["targets"]]

    read = {name for each in expressions for name in re.findall(r"galatea_\w+", each)}
    assert read <= documented
    assert not any("_bucket" in each and "le)" not in each.replace("le, ", "le) ") for each in expressions)


@pytest.mark.parametrize("dashboard", OF_SQL)
def test_statements_are_answered(dashboard: Dashboard, sql: AskingSql) -> None:
    statements = [target["rawSql"] for panel in panels(dashboard) for target in panel["targets"]]
    statements += dashboard.variables.values()

    for statement in statements:
        between = re.sub(
            r"\$__timeFilter\(([^()]+)\)",
            r"\1 between '2026-03-01T00:00:00Z'::timestamptz and '2026-03-06T00:00:00Z'::timestamptz",
            statement,
        )
        sql.rows(between.replace("$store", "1"))
