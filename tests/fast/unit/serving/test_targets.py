"""`compare=target`: what stores were to reach beside what they did, and what is refused."""

from datetime import date, timedelta
from typing import Any

import pytest

from master_dataset.registry.stores import GroupVersion, Store, currency
from master_dataset.registry.targets import Targets
from serving_layer.query.targets import can_have_targets
from tests.support import World, receipt
from tests.support.sensors import record, source_of
from tests.support.world_api import Asking, Body
from views.metrics import registered_metrics
from views.registry import registered_views

NET = "/v1/metrics/net_sales"
MONDAY = date(2026, 3, 23)
WEEK = {"from_": "2026-03-23", "to": "2026-03-30", "compare": "target"}


def chain(*stores: Store) -> World:
    """Each store sells for 1.00 on Monday, 2.00 on Tuesday, and so on until Sunday, at noon UTC."""
    world = World(*stores)
    for number in range(7):
        at = f"{MONDAY + timedelta(days=number)}T12:00:00Z"
        for store in stores:
            world.receive(receipt(at, minor=100 * (number + 1), store=store.id, number=number), at)
    world.pass_time("2026-03-30T12:00:00Z")
    return world


def store(id_: str, **more: Any) -> Store:
    return Store(id=id_, timezone="UTC", **more)


def net(store: str, *major: float | None) -> Targets:
    """Targets of net sales from Monday on; None: no target that day."""
    days = {MONDAY + timedelta(days=n): round(value * 10**6) for n, value in enumerate(major) if value is not None}
    return {store: {"net_sales": days}}


def asking(world: World, *targets: Targets, tenant: str = "default") -> Asking:
    found = Asking(world)
    found.targets.load(tenant, {store: own for each in targets for store, own in each.items()})
    return found


def points(body: Body, *names: str) -> list[list[Any]]:
    [series] = body["series"]
    return [[point.get(name) for name in names] for point in series["points"]]


def test_a_day_has_its_target_beside_it_and_how_much_of_it_was_reached() -> None:
    body = asking(chain(store("1")), net("1", 0.8, 4, -1, 0, 2.5, 12, 7)).body(NET, store="1", **WEEK)

    assert points(body, "value", "before", "change", "attainment") == [
        [1.0, 0.8, 25.0, 125.0],
        [2.0, 4.0, -50.0, 50.0],
        [3.0, -1.0, 400.0, None],  # no part of less than nothing
        [4.0, 0.0, None, None],
        [5.0, 2.5, 100.0, 200.0],
        [6.0, 12.0, -50.0, 50.0],
        [7.0, 7.0, 0.0, 100.0],
    ]
    assert (body["compare"], body["change_unit"]) == ("target", "percent")
    assert body["series"][0]["targets"] == {"found": 7, "missing": 0}
    assert "compared" not in body["series"][0]


def test_a_missing_target_is_said_and_is_no_zero() -> None:
    known = asking(chain(store("1")), net("1", 1, None, 3))

    assert points(known.body(NET, store="1", **WEEK), "before", "change", "before_flags")[:4] == [
        [1.0, 0.0, None],
        [None, None, ["no_target"]],
        [3.0, 0.0, None],
        [None, None, ["no_target"]],
    ]
    week = known.body(NET, store="1", grain="week", **WEEK)
    assert points(week, "value", "before", "change", "attainment", "before_flags") == [
        [28.0, 4.0, None, None, ["targets_missing"]]
    ]
    assert week["series"][0]["targets"] == {"found": 2, "missing": 5}


@pytest.mark.parametrize("grain", ["week", "month", "year", "total"])
def test_a_longer_point_has_the_sum_of_its_days(grain: str) -> None:
    body = asking(chain(store("1")), net("1", 1, 2, 3, 4, 5, 6, 35)).body(NET, store="1", grain=grain, **WEEK)

    assert points(body, "value", "before", "attainment") == [[28.0, 56.0, 50.0]]


def test_weekdays_have_the_sum_of_theirs() -> None:
    span = WEEK | {"to": "2026-04-06"}
    targets = net("1", *[10.0] * 14)

    found = points(asking(chain(store("1")), targets).body(NET, store="1", grain="weekday", **span), "value", "before")

    assert found[:2] == [[1.0, 20.0], [2.0, 20.0]]


def test_a_total_has_the_sum_over_stores_and_says_what_is_missing() -> None:
    world = chain(store("1"), store("2"))
    whole = asking(world, net("1", *[1.0] * 7), net("2", *[3.0] * 7))
    half = asking(world, net("1", *[1.0] * 7))

    assert points(whole.body(NET, by="total", **WEEK), "value", "before", "change")[0] == [2.0, 4.0, -50.0]
    body = half.body(NET, by="total", grain="total", **WEEK)
    assert points(body, "value", "before", "change", "before_flags") == [[56.0, 7.0, None, ["targets_missing"]]]
    assert body["series"][0]["targets"] == {"found": 7, "missing": 7}


def test_a_group_has_the_targets_of_the_days_on_which_stores_are_in_it() -> None:
    moved = (
        GroupVersion(None, {"region": "West"}),
        GroupVersion(MONDAY + timedelta(days=5), {"region": "East"}),
    )
    stays = (GroupVersion(None, {"region": "East"}),)
    world = chain(store("1", groups=moved), store("2", groups=stays))
    known = asking(world, net("1", *[1.0] * 7), net("2", *[10.0] * 7))
    query = WEEK | {"by": "group:region", "grain": "total"}

    then = {each["group"]["region"]: each["points"][0]["before"] for each in known.body(NET, **query)["series"]}
    now = known.body(NET, attributes="current", **query)

    assert then == {"West": 5.0, "East": 72.0}
    assert points(now, "before") == [[77.0]]


def test_currencies_are_never_added_and_targets_have_the_digits_of_theirs() -> None:
    world = chain(store("1"), store("2", currency=currency("JPY")))
    known = asking(world, net("1", *[1.5] * 7), net("2", *[1000.0] * 7))

    body = known.body(NET, by="total", grain="total", **WEEK)

    assert {each["currency"]: each["points"][0]["before"] for each in body["series"]} == {"EUR": 10.5, "JPY": 7000}


def test_what_top_leaves_out_has_the_targets_of_the_other_stores() -> None:
    known = asking(chain(*(store(n) for n in "123")), *(net(n, *[float(n)] * 7) for n in "123"))

    series = known.body(NET, sort="name", top=1, grain="total", **WEEK)["series"]

    assert [(each.get("store"), each["points"][0]["before"]) for each in series] == [("1", 7.0), (None, 35.0)]


def test_an_unfinished_day_has_its_whole_target() -> None:
    world = chain(store("1"))
    body = asking(world, net("1", *[10.0] * 8)).body(
        NET, store="1", **(WEEK | {"from_": "2026-03-29", "to": "2026-03-31"})
    )

    assert points(body, "value", "before", "partial") == [[7.0, 10.0, None], [None, 10.0, True]]
    assert body["partial"] is True


def test_targets_that_another_tenant_has_loaded_for_a_store_are_not_its_targets() -> None:
    known = asking(chain(store("1")), net("1", 2))
    known.targets.load("acme", net("1", *[1.0] * 7))

    assert points(known.body(NET, store="1", **WEEK), "before")[:2] == [[2.0], [None]]


def test_new_targets_are_in_the_next_answer() -> None:
    known = asking(chain(store("1")), net("1", 1))
    first = points(known.body(NET, store="1", **WEEK), "before")[0]
    known.targets.load("default", net("1", 2))

    assert [first, points(known.body(NET, store="1", **WEEK), "before")[0]] == [[1.0], [2.0]]


@pytest.mark.parametrize(
    ("metric", "question", "words"),
    [
        ("conversion_rate", {}, "is not a sum"),
        ("sku_net_sales", {"by": "sku"}, "whole stores"),
        ("net_sales", {"grain": "hour"}, "business days"),
        ("net_sales", {"hours": "open"}, "whole business days"),
        ("net_sales", {"timezone": "Asia/Tokyo"}, "business days of store `1`"),
        ("net_sales", {"from_": "2026-03-23T06:00:00Z"}, "whole business days"),
        ("net_sales", {"sort": "change"}, "an earlier time"),
    ],
)
def test_what_has_no_target_is_refused(metric: str, question: dict[str, str], words: str) -> None:
    problem = asking(chain(store("1"))).refusal(f"/v1/metrics/{metric}", **({"store": "1"} | WEEK | question))

    assert problem["status"] == 422
    assert words in problem["title"]


def test_sums_can_have_targets_and_nothing_else() -> None:
    views = {view.name: view for view in registered_views()}
    found = {metric.id for metric in registered_metrics().values() if can_have_targets(metric, views)}

    assert {"net_sales", "sales_transactions_count", "traffic_in", "labor_hours"} <= found
    assert not {"conversion_rate", "avg_transaction_value", "occupancy", "unique_devices", "max_queue_length"} & found


def of_unknown_traffic(*ids: str) -> Asking:
    """Store 1 counted 90 people on Monday; of the others nothing is known. Each was to count 90."""
    world = World(*(store(id_) for id_ in ids))
    value = record("people_counts", (0, 90, 0), "1").replace(b"2026-03-27", b"2026-03-23")
    world.receive(value, "2026-03-23T12:16:00Z", source_of("people_counts"))
    world.pass_time("2026-03-30T12:00:00Z")
    return asking(world, *({id_: {"traffic_in": {MONDAY: 90 * 10**6}}} for id_ in ids))


@pytest.mark.parametrize("more", [{"by": "total"}, {"by": "total", "sort": "name"}, {"sort": "name", "top": 1}])
def test_stores_of_which_nothing_is_known_have_no_part_in_the_target_of_others(more: dict[str, Any]) -> None:
    query = {"from_": "2026-03-23", "to": "2026-03-24", "compare": "target"}

    body = of_unknown_traffic("0", "1", "2").body("/v1/metrics/traffic_in", **query, **more)

    series = body["series"][-1]
    [point] = series["points"]
    assert (point["value"], point["before"], point["attainment"]) == (90, 90, 100.0)
    assert (series["stores"]["counted"], series["targets"]) == (1, {"found": 1, "missing": 0})


def test_a_store_of_which_nothing_is_known_has_its_target_and_no_attainment() -> None:
    query = {"from_": "2026-03-23", "to": "2026-03-24", "compare": "target", "store": "2"}
    known = of_unknown_traffic("1", "2")

    for more in ({}, {"sort": "name"}, {"by": "total"}):
        [point] = known.body("/v1/metrics/traffic_in", **query, **more)["series"][0]["points"]
        assert (point["value"], point["before"], point["attainment"]) == (None, 90, None)
        assert "no_source" in point["flags"]
