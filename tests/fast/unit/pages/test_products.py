"""The page of products: what sold best, in which categories, in which currency, and what is bought together."""

import re
from typing import Any

import pytest

from master_dataset.registry.stores import GroupVersion, Store, currency
from serving_layer.pages import overview, products
from serving_layer.pages import store as store_page
from serving_layer.service import QueryService
from serving_layer.store.snapshot import ReadVersion
from tests.support import World, receipt
from tests.support.world_api import OPERATOR_KEY, Asking
from tests.support.world_clients import Browsing, words

MASTER = """sku,title,brand,category
milk,Milk,Meadow,Food/Dairy
bread,Bread,Mill,Food/Bakery
soap,Soap,,Home
"""


def line(sku: str, price: float, amount: int = 1) -> dict[str, object]:
    return {"title": f"till text of {sku}", "price": price, "amount": amount, "sku": sku}


@pytest.fixture(scope="module")
def browsing() -> Browsing:
    """Milk and bread on two receipts together; soap alone, and what no master knows; yen in another store."""
    world = World(
        Store(id="1", timezone="UTC", name="North"),
        Store(id="2", timezone="UTC", name="Ginza", currency=currency("JPY")),
    )
    sold = [[line("milk", 2.0), line("bread", 5.0)], [line("milk", 2.0, 2), line("bread", 5.0)], [line("soap", 3.0)]]
    sold += [[line("unknown", 1.0)]]
    for number, lines in enumerate(sold):
        world.receive(receipt("2026-11-21T08:00:00Z", lines, number=number, store="1"), "2026-11-21T08:00:01Z")
    world.receive(receipt("2026-11-21T08:00:00Z", [line("milk", 300)], store="2"), "2026-11-21T08:00:01Z")
    world.receive(receipt("2026-11-14T08:00:00Z", [line("milk", 3.0)], store="1", number=9), "2026-11-14T08:00:01Z")
    world.rebuild("2026-11-21T09:00:00Z")
    world.pass_time("2026-11-21T09:31:00Z")
    asking = Asking(world)
    headers = {"content-type": "text/csv", "authorization": f"Bearer {OPERATOR_KEY}"}
    loaded = asking.request("POST", "/v1/products", headers=headers, content=MASTER.encode())
    assert loaded.status_code == 200, loaded.text
    return Browsing(asking)


def rows(page: str, region: str) -> list[str]:
    """What the rows of a table say."""
    table = page.partition(f'id="{region}"')[2].partition("<tbody>")[2].partition("</tbody>")[0]
    return [words(row) for row in table.split("</tr>") if words(row)]


def test_products_are_listed_by_their_sales_with_units_and_their_category(browsing: Browsing) -> None:
    found = rows(browsing.get("/products?store=1"), "top-products")

    assert found[0].startswith("Bread Food \N{SINGLE RIGHT-POINTING ANGLE QUOTATION MARK} Bakery €10.00 50.0 %")
    assert found[1].startswith("Milk Food \N{SINGLE RIGHT-POINTING ANGLE QUOTATION MARK} Dairy €6.00 30.0 % +100.0 % 3")
    assert found[2].startswith("Soap Home €3.00 15.0 %")
    assert "till text of unknown" in found[3]
    assert 'class="spark"' in browsing.get("/products?store=1")


def test_two_currencies_are_not_added_up(browsing: Browsing) -> None:
    found = rows(browsing.get("/products"), "top-products")

    milk = [row for row in found if row.startswith("Milk")]
    assert len(milk) == 2
    assert any("¥300" in row and row.endswith(" 1") for row in milk)
    assert any("€6.00" in row and row.endswith(" 3") for row in milk)


def test_a_category_opens_and_leads_back(browsing: Browsing) -> None:
    top = browsing.get("/products?store=1")
    links = re.findall(r'href="(/products\?[^"]*category=[^"]+)"', top)
    food = next(link for link in links if "Food" in link).replace("&amp;", "&")

    inside = browsing.get(food)
    assert rows(top, "categories")[0].startswith("Food €16.00")
    assert [row.split()[0] for row in rows(inside, "top-products")] == ["Bread", "Milk"]
    assert {row.split()[0] for row in rows(inside, "categories")} == {"Bakery", "Dairy"}
    assert '<a href="/products?store=1">All categories</a>' in inside
    assert '<span aria-current="true">Food</span>' in inside
    dairy = browsing.get("/products?store=1&category=Food/Dairy")
    assert [row.split()[0] for row in rows(dairy, "top-products")] == ["Milk"]
    assert '<a href="/products?store=1&amp;category=Food">Food</a>' in dairy


def test_a_pair_is_shown_once(browsing: Browsing) -> None:
    assert rows(browsing.get("/products?store=1"), "pairs") == ["Bread + Milk 2"]


@pytest.mark.parametrize("query", ["day=2026-11-01", "category=None", "category=Food/Dairy/Deep/Deeper/Deepest/More"])
def test_without_any_product_the_page_says_so(browsing: Browsing, query: str) -> None:
    response = browsing.response("GET", f"/products?{query}")

    assert response.status_code == 200
    assert "Top products</h2>" not in response.text


def test_a_store_of_nobody_is_not_found(browsing: Browsing) -> None:
    assert browsing.get("/products?store=none", status=404)


def test_the_choice_of_a_store_keeps_the_period_and_the_category(browsing: Browsing) -> None:
    form = (
        browsing.get("/products?range=last_28_days&category=Food")
        .partition('class="search"')[2]
        .partition("</form>")[0]
    )

    assert 'name="range" value="last_28_days"' in form
    assert 'name="category" value="Food"' in form


@pytest.mark.parametrize("query", ["day=2026-11-21", "first=2026-11-15&last=2026-11-21", "range=today"])
@pytest.mark.parametrize("compare", ["none", "previous_week"])
def test_chosen_days_have_lines_as_named_ranges_have(browsing: Browsing, query: str, compare: str) -> None:
    page = browsing.get(f"/products?store=1&{query}&compare={compare}")

    assert page.count('class="spark"') == len(rows(page, "top-products")) == 4


def test_the_page_of_a_store_names_products_as_the_master_does(browsing: Browsing) -> None:
    found = rows(browsing.get("/stores/1"), "products-section")

    assert [row.split()[0] for row in found] == ["Bread", "Milk", "Soap", "till"]
    assert "till text of milk" not in browsing.words("/stores/1")


@pytest.mark.parametrize("query", ["", "day=2026-11-21"])
def test_all_numbers_of_a_page_are_of_one_moment(monkeypatch: pytest.MonkeyPatch, query: str) -> None:
    world = World(Store(id="1", timezone="UTC", name="North"))
    sent = iter(range(100))
    read_version = QueryService.read_version

    def sell() -> None:
        at = f"2026-11-21T08:00:{next(sent):02}Z"
        world.receive(receipt(at, [line("milk", 2.0)], number=int(at[-3:-1]), store="1"), at)

    async def sold_meanwhile(*arguments: Any, **named: Any) -> ReadVersion:
        version = await read_version(*arguments, **named)
        sell()
        return version

    sell()
    monkeypatch.setattr(QueryService, "read_version", sold_meanwhile)

    [row] = rows(Browsing(Asking(world)).get(f"/products?store=1&compare=none&{query}"), "top-products")
    assert row.endswith("\N{EURO SIGN}4.00 100.0 % 2")


LEADERS = {"a": "Food/Dairy", "b": "Home/Soap"}
"""Of the last full quarter of an hour `a`, of now `b`."""


@pytest.fixture
def overtaken(monkeypatch: pytest.MonkeyPatch) -> Browsing:
    """Tables have one row, and store, product and category `b` have just overtaken `a`.

    By 09:30 they sold 5.00 and 10.00, a week before 1.00 and 10.00; then `b` sells 20.00 more.
    """
    for module, name in ((products, "TOP"), (products, "CATEGORIES"), (store_page, "TOP_PRODUCTS")):
        monkeypatch.setattr(module, name, 1)
    monkeypatch.setattr(overview, "GROUPS_SHOWN", 1)
    stores = [
        Store(id=sku, timezone="UTC", name=sku, groups=(GroupVersion(None, {"region": f"of {sku}"}),))
        for sku in LEADERS
    ]
    world = World(*stores)
    sold = [
        ("14T08:00:00", "a", 10.0),
        ("14T08:05:00", "b", 1.0),
        ("21T08:00:00", "a", 10.0),
        ("21T08:05:00", "b", 5.0),
    ]
    for number, (at, sku, price) in enumerate(sold):
        value = receipt(f"2026-11-{at}Z", [line(sku, price)], number=number, store=sku)
        world.receive(value, f"2026-11-{at}Z")
    world.rebuild("2026-11-21T09:00:00Z")
    world.receive(receipt("2026-11-21T09:30:10Z", [line("b", 20.0)], number=9, store="b"), "2026-11-21T09:30:11Z")
    world.pass_time("2026-11-21T09:31:00Z")
    asking = Asking(world)
    master = "sku,title,brand,category\n" + "".join(f"{sku},{sku},,{path}\n" for sku, path in LEADERS.items())
    headers = {"content-type": "text/csv", "authorization": f"Bearer {OPERATOR_KEY}"}
    assert asking.request("POST", "/v1/products", headers=headers, content=master.encode()).status_code == 200
    return Browsing(asking)


def test_a_change_is_of_the_products_and_categories_that_are_shown(overtaken: Browsing) -> None:
    page = overtaken.get("/products")
    leader, others = rows(page, "top-products")

    assert leader.startswith("b Home \N{SINGLE RIGHT-POINTING ANGLE QUOTATION MARK} Soap \N{EURO SIGN}25.00")
    assert "+400.0 %" in leader
    assert others == "All others \N{EURO SIGN}10.00 28.6 %"
    assert rows(page, "categories") == ["Home \N{EURO SIGN}25.00 +400.0 %", "All others \N{EURO SIGN}10.00"]
    assert "both up to 09:30 UTC" in words(page)


def test_a_change_is_of_the_groups_and_products_of_a_store_that_are_shown(overtaken: Browsing) -> None:
    groups = overtaken.get("/").partition("By region</h2>")[2]

    assert rows(f'id="groups"{groups}', "groups") == [
        "of b \N{EURO SIGN}25.00 +400.0 %",
        "All others \N{EURO SIGN}10.00",
    ]
    assert rows(overtaken.get("/stores/b"), "products-section") == ["b \N{EURO SIGN}25.00 +400.0 %"]


def test_all_others_have_a_change_once_the_day_is_over(overtaken: Browsing) -> None:
    overtaken.asking.world.pass_time("2026-11-22T09:00:00Z")

    leader, others = rows(overtaken.get("/products?day=2026-11-21"), "top-products")

    assert "\N{EURO SIGN}25.00 71.4 % from \N{EURO SIGN}1.00" in leader
    assert others.startswith("All others \N{EURO SIGN}10.00 28.6 % \N{PLUS-MINUS SIGN}0.0 %")
