"""Targets over REST: loaded all or none, by whoever may operate, for the stores of one tenant."""

import csv
from datetime import date, timedelta
from typing import Any

import pytest

from master_dataset.registry.stores import Store, currency
from tests.support import World, receipt
from tests.support.world_api import OPERATOR_KEY, Asking

MONDAY = date(2026, 3, 23)
CSV = b"""store,day,metric,value
1,2026-03-23,net_sales,2.50
1,2026-03-24,net_sales,4
1,2026-03-23,sales_transactions_count,2
"""
WEEK = {"store": "1", "from_": "2026-03-23", "to": "2026-03-25", "compare": "target"}


@pytest.fixture
def asking() -> Asking:
    stores = [Store(id="1", timezone="UTC"), Store(id="yen", timezone="UTC", currency=currency("JPY"))]
    world = World(*stores, Store(id="other", timezone="UTC", tenant="acme"))
    for number in range(2):
        at = f"{MONDAY + timedelta(days=number)}T12:00:00Z"
        world.receive(receipt(at, minor=500, number=number), at)
    world.pass_time("2026-03-30T12:00:00Z")
    return Asking(world)


def post(asking: Asking, body: bytes, path: str = "/v1/targets", key: str = OPERATOR_KEY, **headers: str) -> Any:
    usual = {"content-type": "text/csv", "authorization": f"Bearer {key}"}
    return asking.request("POST", path, headers=usual | headers, content=body)


def targets_of(asking: Asking, metric: str = "net_sales") -> list[object]:
    [series] = asking.body(f"/v1/metrics/{metric}", **WEEK)["series"]
    return [point["before"] for point in series["points"]]


def test_targets_are_compared_with_as_soon_as_they_are_loaded(asking: Asking) -> None:
    response = post(asking, CSV)

    assert response.status_code == 200
    assert {name: response.json()[name] for name in ("tenant", "count")} == {"tenant": "default", "count": 3}
    assert set(response.json()) == {"tenant", "version", "count", "loaded_at"}
    assert targets_of(asking) == [2.5, 4.0]
    assert ("POST /v1/targets", 200) in {act[1:] for act in asking.acts}


def test_files_have_a_column_for_attainment_if_targets_are_asked_for(asking: Asking) -> None:
    post(asking, CSV)

    with_targets = asking.response("/v1/metrics/net_sales", **WEEK, format="csv").text.splitlines()
    without = asking.response("/v1/metrics/net_sales", **WEEK | {"compare": "previous_week"}, format="csv").text

    header, *rows = csv.reader(with_targets)
    assert [row[header.index("attainment")] for row in rows] == ["200.0", "125.0"]
    assert "attainment" not in without


def test_a_load_keeps_what_it_does_not_name_unless_it_replaces_all(asking: Asking) -> None:
    post(asking, CSV)
    lines = b'{"store": 1, "day": "2026-03-24", "metric": "net_sales", "value": 8}\n'

    assert post(asking, lines, **{"content-type": "application/x-ndjson"}).json()["count"] == 3
    assert targets_of(asking) == [2.5, 8.0]
    assert post(asking, lines, "/v1/targets?replace=true").json()["count"] == 1
    assert targets_of(asking) == [None, 8.0]


@pytest.mark.parametrize(
    ("line", "code", "says"),
    [
        (b"9,2026-03-23,net_sales,1\n", "unknown_store", "`store` of line 5 is no store of the tenant: `9`"),
        (b"other,2026-03-23,net_sales,1\n", "unknown_store", "`store` of line 5 is no store of the tenant"),
        (b"1,2026-03-23,conversion_rate,1\n", "unknown_metric", "`metric` of line 5 cannot have targets"),
        (b"yen,2026-03-23,net_sales,1.5\n", "bad_number", "`value` of line 5 must be whole"),
        (b"1,2026-03-24,net_sales,5\n", "duplicate_target", "Lines 3 and 5 are both the target of store `1`"),
    ],
)
def test_a_wrong_line_is_named_and_nothing_is_loaded(asking: Asking, line: bytes, code: str, says: str) -> None:
    response = post(asking, CSV + line)

    assert (response.status_code, response.json()["code"]) == (422, code)
    assert response.json()["title"].startswith(says)
    assert targets_of(asking) == [None, None]


def test_bodies_are_limited_in_kind_and_size(asking: Asking) -> None:
    assert post(asking, CSV, **{"content-type": "application/json"}).status_code == 415
    assert post(asking, b"a" * 8_000_001).status_code == 413
    assert post(asking, b"").json()["code"] == "no_targets"
    assert post(asking, CSV, "/v1/targets?replce=true").status_code == 422
    assert targets_of(asking) == [None, None]


def test_only_operators_load_targets_and_each_tenant_has_its_own(asking: Asking) -> None:
    assert asking.request("POST", "/v1/targets", content=CSV, headers={"content-type": "text/csv"}).status_code == 401
    assert post(asking, CSV, key=asking.keys.make("default", "read")).status_code == 403
    assert post(asking, CSV, key=asking.keys.make("acme", "read", "operate")).status_code == 403
    assert post(asking, CSV, "/v1/targets?tenant=acme").json()["code"] == "unknown_store"

    loaded = post(asking, CSV.replace(b"\n1,", b"\nother,"), "/v1/targets?tenant=acme")

    assert (loaded.status_code, loaded.json()["tenant"]) == (200, "acme")
    assert targets_of(asking) == [None, None]


def test_a_process_without_targets_says_so(asking: Asking) -> None:
    asking.app.state.targets = None

    assert post(asking, CSV).json()["code"] == "not_offered"
