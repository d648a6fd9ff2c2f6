"""Top products by department: the API over real receipts of a few stores, against the tables that they come from."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from lab.demo.journey import load_journey, product_master, receipt_messages
from lab.demo.scenario import TENANT
from lab.demo.shops import registry_entries
from lab.demo.top_products import PRODUCTS, TopProduct, ask_top_products, compare_top_products
from master_dataset.registry.products import ProductSpool
from tests.support import World
from tests.support.world_api import Asking

pytestmark = pytest.mark.nightly

STORES = (3270, 244, 721)
NOW = datetime(2026, 11, 24, 12, tzinfo=UTC)
SINCE: dict[str, Any] = {"days": 366, "passed": (-1, -1, -1, -1)}
PERIOD = {"from": f"{NOW.date() - timedelta(days=366)}", "to": f"{NOW.date()}", "store": ",".join(map(str, STORES))}


@pytest.fixture(scope="module")
def asking() -> Asking:
    """The real receipts of three small stores, of which a publication covers most, and the products of all."""
    data = load_journey()
    few = data.receipts[data.receipts["store"].isin(STORES)].reset_index(drop=True)
    data = replace(data, receipts=few)
    world = World(*registry_entries(data, NOW))
    for value in receipt_messages(data, data.receipts, NOW)[1]:
        world.receive(value, NOW - timedelta(hours=1))
    world.rebuild(NOW)
    asking = Asking(world)
    with ProductSpool() as spool:
        for line, product in enumerate(product_master(), 1):
            spool.add(line, product)
        asking.products.load(TENANT, spool, replace=True)
    return asking


@pytest.fixture(scope="module")
def shown(asking: Asking) -> list[TopProduct]:
    def ask(path: str, query: Mapping[str, str]) -> Any:
        return asking.body(path, **{"from_" if name == "from" else name: value for name, value in query.items()})

    return ask_top_products(ask, PERIOD, departments=3)


def test_the_products_that_sell_most_in_each_department_are_those_of_the_data(shown: list[TopProduct]) -> None:
    found = compare_top_products(shown, 3, stores=STORES, **SINCE)

    assert (found.differing, found.examples) == (0, [])
    assert found.compared == 3 * PRODUCTS
    assert all(product.title for product in shown)


def test_a_cent_too_many_and_a_product_that_is_missing_differ(shown: list[TopProduct]) -> None:
    wrong = [shown[0]._replace(cents=shown[0].cents + 1), *shown[1:-1]]

    found = compare_top_products(wrong, 3, stores=STORES, **SINCE)

    assert found.differing == 2
    assert "rank 1" in found.examples[0]


def test_another_title_differs(shown: list[TopProduct]) -> None:
    found = compare_top_products([shown[0]._replace(title="Milk"), *shown[1:]], 3, stores=STORES, **SINCE)

    assert found.differing == 1


def test_an_answer_without_products_differs() -> None:
    found = compare_top_products([], 3, stores=STORES, **SINCE)

    assert found.differing == 1
    assert found.examples == [f"0 products are shown, {3 * PRODUCTS} recomputed"]
