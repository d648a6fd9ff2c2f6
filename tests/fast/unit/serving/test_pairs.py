"""Metrics of pairs of items: what is refused, and what the rest of a ranking says. Values are the law's."""

import pytest

from serving_layer.query.catalogue import Catalogue
from serving_layer.sql.metrics_table import MetricsTable
from tests.support import World, receipt
from tests.support.world_api import Asking
from views.metrics import registered_metrics
from views.registry import registered_views

LIFT = "/v1/metrics/pair_lift"
DAY = {"from_": "2026-03-27", "to": "2026-03-28", "grain": "total"}


@pytest.fixture
def asking() -> Asking:
    world = World()
    for number, skus in enumerate(["ab", "ab", "ac", "bc", "d"]):
        lines: list[dict[str, object]] = [{"title": sku, "price": 1, "amount": 1, "sku": sku} for sku in skus]
        world.receive(receipt("2026-03-27T12:00:00Z", lines, number=number), f"2026-03-27T12:00:0{number}Z")
    return Asking(world)


@pytest.mark.parametrize("said", [{}, {"by": "total"}, {"by": "sku"}, {"by": "with_sku", "sku": "a"}])
def test_lift_without_both_items_is_refused_with_the_next_step(asking: Asking, said: dict[str, str]) -> None:
    problem = asking.refusal(LIFT, **DAY, **said)

    assert problem["status"] == 422
    assert "`by=sku,with_sku`" in problem["detail"]


def test_the_pairs_that_are_left_out_of_a_ranking_have_no_lift_together(asking: Asking) -> None:
    series = asking.body(LIFT, **DAY, by="total,sku,with_sku", top=1)["series"]

    assert [(each["dimensions"], each["points"][0]["value"]) for each in series] == [
        ({"sku": "a", "with_sku": "b"}, 2 * 5 / (3 * 3)),
        ({}, None),
    ]
    assert series[1]["other"] is True


def test_a_single_pair_that_is_left_out_keeps_its_lift(asking: Asking) -> None:
    series = asking.body(LIFT, **DAY, by="total,sku,with_sku", top=1, sku="a")["series"]

    assert [each["points"][0]["value"] for each in series] == [2 * 5 / (3 * 3), 1 * 5 / (3 * 2)]


def test_the_table_of_metrics_has_none_that_needs_a_split() -> None:
    table = MetricsTable(Catalogue({view.name: view for view in registered_views()}, registered_metrics()))

    assert "pair_confidence" in table.metrics
    assert "pair_lift" not in table.metrics
