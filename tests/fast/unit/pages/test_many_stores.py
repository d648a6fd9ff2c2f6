"""Pages about a chain of thousands of stores: short, with search instead of lists."""

import html
import re
from dataclasses import replace
from urllib.parse import urlencode

import pytest

from master_dataset.registry.stores import Store
from serving_layer.pages import stores as stores_page
from serving_layer.pages.pickers import MOST_LISTED, store_named
from serving_layer.query.resolve import MOST_TOP
from tests.fast.unit.pages.test_stores import NAMES, chain
from tests.support.world_api import OPERATOR_KEY, Asking
from tests.support.world_clients import TOKEN, Browsing, words

COUNT = 5_000
MOST_BYTES = 500_000
"""Of a page before it is compressed."""
PATHS = (
    "/stores",
    "/stores?view=cards",
    "/stores?sort=name&page=50",
    "/products",
    "/corrections",
    "/recomputes",
    "/alerts/rules/new?kind=level",
    "/annotations",
    "/sensors",
    "/views",
    "/stores/s1",
)


@pytest.fixture(scope="module")
def browsing() -> Browsing:
    """5,000 stores, of which every hundredth sells something."""
    world = chain({number: (1000 + number, 2000 + number) for number in range(100, COUNT + 1, 100)}, COUNT)
    browsing = Browsing(Asking(world))
    browsing.sign_in(OPERATOR_KEY)
    return browsing


@pytest.mark.parametrize("path", PATHS)
def test_a_page_lists_no_thousands_of_stores(browsing: Browsing, path: str) -> None:
    page = browsing.get(path)

    assert len(page.encode()) < MOST_BYTES
    assert page.count("<option") + page.count('type="checkbox"') < MOST_LISTED


def test_the_overview_is_short_and_counts_every_store() -> None:
    world = chain({number: (1000, 2000 + number) for number in range(100, 1001, 100)}, 1_000)  # as many as are quick

    page = Browsing(Asking(world)).get("/")

    assert "1,000 stores ·" in words(page)
    assert len(page.encode()) < MOST_BYTES
    assert re.findall(r">(Shop \d+)</a>", page)[:2] == ["Shop 1000", "Shop 900"]


def test_pages_of_stores_are_sorted_and_searched(browsing: Browsing) -> None:
    first = browsing.get("/stores")

    assert NAMES.findall(first)[:3] == ["Shop 5000", "Shop 4900", "Shop 4800"]
    assert len(NAMES.findall(first)) == stores_page.PAGE_SIZE
    assert "5,000 stores" in words(first)
    assert f"The first {MOST_TOP:,} are sorted." in words(first)
    assert "Page 1 of 105" in words(first)
    assert NAMES.findall(browsing.get("/stores?q=s4321")) == ["Shop 4321"]
    assert len(NAMES.findall(browsing.get("/stores?group=region:West&sort=name&page=53"))) == 2500 - 52 * 48


def test_a_store_is_found_by_its_name_where_there_are_too_many_to_list(browsing: Browsing) -> None:
    page = browsing.get("/products?" + urlencode({"store": "shop 4321"}))

    assert '<input id="store" name="store" maxlength="256" value="s4321"' in page
    assert "Shop 4321 ·" in words(page)
    assert "There is no store" in words(browsing.get("/products?store=shop", 404))
    assert 'value="s4321"' in browsing.get("/corrections?store=shop+4321")


def test_an_unknown_name_of_thousands_is_not_answered_with_all_of_them(browsing: Browsing) -> None:
    said = words(browsing.get("/stores/%C3%BC%C3%BC%C3%BC", 404))

    assert len(said) < 2_000
    assert f"and {COUNT - 50:,} more" in said


@pytest.mark.parametrize(
    ("text", "found"),
    [("s1", "s1"), ("shop 1", "shop 1"), ("SHOP 12", "s12"), ("", ""), ("nobody", "nobody"), ("Twin", "Twin")],
)
def test_a_name_stands_for_a_store_only_if_no_other_has_it(text: str, found: str) -> None:
    stores = [Store(id=f"s{number}", timezone="UTC", name=f"Shop {number}") for number in (1, 10, 12)]
    twin = Store(id="a", timezone="UTC", name="Twin")

    assert store_named(text, [*stores, twin, replace(twin, id="b")]) == found


def test_a_rule_and_a_recompute_take_typed_ids_of_stores(browsing: Browsing) -> None:
    asking = browsing.asking
    form = {"kind": "level", "of": "queue", "above": "5", "minutes": "5", "on": "yes", "name": "Queue", "do": "try"}
    tried = browsing.send("/alerts/rules", form_of="/alerts/rules/new?kind=level", other_stores="s1, s2", **form)

    assert "Watches 2 stores: Shop 1, Shop 2" in words(tried.text)
    assert 'name="other_stores" value="s1, s2"' in html.unescape(tried.text)

    token = TOKEN.search(browsing.get("/recomputes"))
    assert token
    fields = {"token": token[1], "other_stores": "s1, s2", "mode": "preview", "reason": "to see"}
    assert browsing.post("/recomputes", urlencode(fields)).status_code == 303
    assert asking.recomputing.requests[-1].stores == ("s1", "s2")
