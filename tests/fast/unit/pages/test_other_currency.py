"""Money is written in the currency in which it was received, also if the store has another one now."""

from dataclasses import replace

import pytest

from master_dataset.registry.stores import Store, currency
from tests.support import World, receipt
from tests.support.world_api import Asking
from tests.support.world_clients import Browsing


@pytest.fixture(scope="module")
def browsing() -> Browsing:
    """10.00 euros a week ago and 25.50 today, of a store that is registered with yen since."""
    world = World(Store(id="1", timezone="UTC", name="North"))
    line = {"title": "tea", "price": 25.5, "amount": 1, "sku": "tea"}
    world.receive(receipt("2026-11-14T08:10:00Z", minor=1000), "2026-11-14T08:10:01Z")
    world.receive(receipt("2026-11-21T08:10:00Z", [line], number=2), "2026-11-21T08:10:01Z")
    world.rebuild("2026-11-21T09:00:00Z")
    world.pass_time("2026-11-21T09:31:00Z")
    world.stores["1"] = replace(world.stores["1"], currency=currency("JPY"))
    return Browsing(Asking(world))


@pytest.mark.parametrize(
    "path",
    [
        "/stores/1",
        "/stores?view=cards",
        "/stores?view=table",
        "/receipts?store=1&from=2026-11-21T08:00:00%2B00:00",
    ],
)
def test_amounts_have_the_currency_of_their_answer(browsing: Browsing, path: str) -> None:
    page, said = browsing.get(path), browsing.words(path)

    assert "\N{EURO SIGN}25.50" in said
    assert "\N{YEN SIGN}" not in said
    assert 'data-symbol="\N{YEN SIGN}"' not in page


def test_comparisons_charts_and_products_have_it_too(browsing: Browsing) -> None:
    page, said = browsing.get("/stores/1"), browsing.words("/stores/1")

    assert "was \N{EURO SIGN}10.00" in said
    assert "highest \N{EURO SIGN}25.50, 08:00" in said
    assert "tea \N{EURO SIGN}25.50" in said
    assert 'data-symbol="\N{EURO SIGN}"' in page.partition('id="chart-1"')[2].partition("</figure>")[0]
