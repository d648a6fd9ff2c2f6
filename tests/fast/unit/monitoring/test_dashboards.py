"""Grafana dashboards: written from the code, of metrics that are documented, and with SQL that this product answers."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from galatea.cli.reference.dashboards import COLUMNS, DASHBOARDS, TENANT, Dashboard
from master_dataset.registry.stores import Store, currency
from master_dataset.sources.people_counts import PEOPLE_COUNTS
from tests.support import World, receipt
from tests.support.world_api import OPERATOR_KEY
from tests.support.world_sql import AskingSql

ROOT = Path(__file__).parents[4]
METRICS = ROOT / "docs" / "how-to" / "monitoring.md"
BY_UID = [pytest.param(each, id=each.uid) for each in DASHBOARDS]
OF_SQL = [pytest.param(each, id=each.uid) for each in DASHBOARDS if each.source != "prometheus"]


@pytest.fixture(scope="module")
def sql() -> Iterator[AskingSql]:
    """Two stores of different currencies with people counts, and a product with two versions."""
    world = World(
        Store(id="1", timezone="Europe/Bratislava", name="One"),
        Store(id="2", timezone="Europe/London", name="Two", currency=currency("GBP")),
    )
    for number, day in enumerate(("03", "04", "05")):
        for store in ("1", "2"):
            at = f"2026-03-{day}T12:00:00Z"
            world.receive(receipt(at, minor=100, number=number, store=store), at)
            world.receive(people_count(at, store), at, PEOPLE_COUNTS)
    world.pass_time("2026-03-06T10:00:00Z")
    lines = b"sku,title,valid_from\n1,Milk,\n1,Oat milk,2026-03-05\n"
    with AskingSql(world) as asking:
        sent = {"content-type": "text/csv", "authorization": f"Bearer {OPERATOR_KEY}"}
        loaded = asking.rest.request("POST", "/v1/products?tenant=default", headers=sent, content=lines)
        assert loaded.status_code == 200, loaded.text
        yield asking


def people_count(at: str, store: str) -> bytes:
    """Nine people in and eight out in the quarter hour that begins then."""
    counted = {"sensor_id": "cam-1", "line": "A", "interval_ms": 900_000, "people_in": 9, "people_out": 8}
    return json.dumps({"operation_id": store, "happened_at": at, **counted}).encode()


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
    growing = {name for each in expressions for name in re.findall(r"(?:rate|increase)\((\w+)", each)}
    assert all(name.endswith(("_total", "_count", "_bucket")) for name in growing)
    assert all(re.search(r"sum by \(.*\ble\b", each) for each in expressions if "_bucket" in each)


@pytest.mark.parametrize("dashboard", OF_SQL)
def test_statements_are_answered(dashboard: Dashboard, sql: AskingSql) -> None:
    for statement in [*written(dashboard).values(), *dashboard.variables.values()]:
        assert sql.rows(filled(statement)), statement


def written(dashboard: Dashboard) -> dict[str, str]:
    """The statement of each panel by its title."""
    return {panel["title"]: panel["targets"][0]["rawSql"] for panel in panels(dashboard)}


def filled(statement: str) -> str:
    """As Grafana sends it."""
    between = r"\1 BETWEEN '2026-03-01T00:00:00Z' AND '2026-03-06T00:00:00Z'"
    return re.sub(r"\$__timeFilter\(([^()]+)\)", between, statement).replace("$store", "1")


def test_amounts_of_a_tenant_are_apart_by_currency_and_products_by_their_version(sql: AskingSql) -> None:
    statements = written(TENANT)

    days = sql.rows(filled(statements["Net sales per day"]))
    stores = sql.rows(filled(statements["Stores"]))
    products = sql.rows(filled(statements["Products"]))

    assert [(at.day, code, value) for at, code, value in days] == [
        (day, code, 1) for day in (3, 4, 5) for code in ("EUR", "GBP")
    ]
    assert sorted((store, code, value) for store, _, code, value, _ in stores) == [("1", "EUR", 3), ("2", "GBP", 3)]
    assert sorted(products) == [("Milk", "EUR", 2), ("Milk", "GBP", 2), ("Oat milk", "EUR", 1), ("Oat milk", "GBP", 1)]
