"""The chain on the overview: totals, groups and the best stores of those that the visitor can see."""

from datetime import UTC, datetime

import pytest

from master_dataset.registry.stores import GroupVersion, Store, currency
from tests.support import World, receipt
from tests.support.world_api import Asking
from tests.support.world_clients import Browsing


def asking_of(*stores: Store, number: int = 1) -> Asking:
    """So many receipts of each store, today and yesterday, a store more than the one before it."""
    world = World(*stores)
    for place, store in enumerate(stores, 1):
        for day in ("2026-11-20", "2026-11-21"):
            for each in range(number):
                value = receipt(f"{day}T09:00:00Z", minor=100_000 * place, store=store.id, number=each)
                world.receive(value, f"{day}T09:00:0{place % 10}Z")
    world.pass_time(datetime(2026, 11, 21, 12, tzinfo=UTC))
    return Asking(world)


def grouped(id_: str, region: str, code: str = "EUR", tenant: str = "default") -> Store:
    groups = (GroupVersion(None, {"region": region, "size": "big"}),)
    return Store(id=id_, timezone="UTC", name=f"Shop {id_}", groups=groups, currency=currency(code), tenant=tenant)


@pytest.fixture
def chain() -> Asking:
    return asking_of(grouped("1", "West"), grouped("2", "West"), grouped("3", "East"))


def test_the_chain_is_the_total_of_all_stores_by_region_with_the_best_first(chain: Asking) -> None:
    said = Browsing(chain).words("/")

    assert "The chain Net sales today EUR 6,000.00" in said
    assert "3 stores, provisional" in said
    assert "The last 7 days EUR 6,000.00" in said
    assert "By region, the last 7 days" in said
    assert said.index("West EUR 3,000.00") < said.index("Best stores")
    best = said[said.index("Best stores") :]
    assert best.index("Shop 3 EUR 3,000.00") < best.index("Shop 2 EUR 2,000.00") < best.index("Shop 1 EUR 1,000.00")


def test_currencies_stand_side_by_side() -> None:
    said = Browsing(asking_of(grouped("1", "West"), grouped("2", "West", "CZK"))).words("/")

    assert "Net sales today CZK 2,000.00" in said
    assert "Net sales today EUR 1,000.00" in said


def test_a_visitor_sees_the_total_of_his_own_stores() -> None:
    stores = [grouped("1", "West"), grouped("2", "West"), grouped("9", "Secret", tenant="acme")]
    said = Browsing(asking_of(*stores)).words("/")

    assert "Net sales today EUR 3,000.00" in said
    assert "Secret" not in said


def test_a_single_store_and_a_search_have_no_chain(chain: Asking) -> None:
    assert "The chain" not in Browsing(asking_of(grouped("1", "West"))).words("/")
    assert "The chain" not in Browsing(chain).words("/?q=Shop")


def test_without_groups_the_best_stores_are_shown() -> None:
    said = Browsing(asking_of(Store(id="1", timezone="UTC"), Store(id="2", timezone="UTC"))).words("/")

    assert "Best stores, the last 7 days" in said
    assert "By " not in said[said.index("The chain") :]
