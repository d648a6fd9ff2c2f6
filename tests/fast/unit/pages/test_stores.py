"""The page of all stores: sorted, searched, by group, as a table or as cards, a page at a time."""

import re
from dataclasses import replace

import pytest

from master_dataset.registry.stores import GroupVersion, Store, currency
from serving_layer.pages import stores as stores_page
from serving_layer.query.resolve import MOST_TOP
from serving_layer.service import QueryService
from tests.support import World, receipt
from tests.support.world_api import Asking
from tests.support.world_clients import Browsing, words

NAMES = re.compile(r'<a href="/stores/[^"]+">(Shop [^<]+)</a>')


def shop(number: int) -> Store:
    region = "West" if number % 2 else "East"
    return Store(
        id=f"s{number}", timezone="UTC", name=f"Shop {number}", groups=(GroupVersion(None, {"region": region}),)
    )


def chain(sales: dict[int, tuple[int, int]], count: int) -> World:
    """So many stores. `sales`: in minor units, of a store: a week ago and today."""
    world = World(*(shop(number) for number in range(1, count + 1)))
    for number, (before, now) in sales.items():
        for day, minor in (("2026-11-14", before), ("2026-11-21", now)):
            value = receipt(f"{day}T09:00:00Z", minor=minor, store=f"s{number}", number=int(day[-2:]))
            world.receive(value, f"{day}T09:00:01Z")
    world.rebuild("2026-11-21T09:30:00Z")
    world.pass_time("2026-11-21T12:00:00Z")
    return world


@pytest.fixture(scope="module")
def browsing() -> Browsing:
    """The third rose most, the second sells most, the fifth sells nothing."""
    return Browsing(Asking(chain({1: (1000, 900), 2: (5000, 5500), 3: (100, 800), 4: (400, 100)}, 5)))


def order(browsing: Browsing, query: str) -> list[str]:
    return [name.removeprefix("Shop ") for name in NAMES.findall(browsing.get(f"/stores?{query}"))]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("", "21345"),
        ("sort=sales", "21345"),
        ("sort=least", "43125"),
        ("sort=rise", "32145"),
        ("sort=fall", "41235"),
        ("sort=name", "12345"),
        ("sort=visitors", "12345"),
        ("sort=sales&view=table", "21345"),
        ("sort=sales&group=region:West", "135"),
        ("sort=sales&group=region%3AEast&q=shop", "24"),
        ("q=s3", "3"),
        ("q=SHOP+3", "3"),
    ],
)
def test_stores_are_sorted_with_those_without_sales_last(browsing: Browsing, query: str, expected: str) -> None:
    assert "".join(order(browsing, query)) == expected


@pytest.mark.parametrize("query", ["group=region:None", "group=none", "group=:", "q=%25", "q=%00", "group=region:"])
def test_filters_that_match_nothing_say_so(browsing: Browsing, query: str) -> None:
    said = browsing.words(f"/stores?{query}")

    assert "No store matches" in said
    assert "Show all stores" in said


@pytest.mark.parametrize("query", ["page=0", "page=x", "sort=luck", "view=map", "q=" + "x" * 101, "range=ever"])
def test_parameters_that_are_none_are_refused(browsing: Browsing, query: str) -> None:
    assert "Go back and correct it." in browsing.words(f"/stores?{query}", status=422)


def test_few_stores_are_cards_and_many_a_table_unless_chosen(
    monkeypatch: pytest.MonkeyPatch, browsing: Browsing
) -> None:
    assert 'class="stores few"' in browsing.get("/stores")
    assert "stores-table" in browsing.get("/stores?view=table")
    monkeypatch.setattr(stores_page, "TABLE_FROM", 5)
    assert "stores-table" in browsing.get("/stores")
    assert 'class="stores few"' in browsing.get("/stores?view=cards")


def test_a_link_keeps_the_other_choices(browsing: Browsing) -> None:
    page = browsing.get("/stores?range=last_7_days&compare=previous_year&sort=rise&q=shop&view=table")

    assert (
        '<a href="/stores?range=last_7_days&amp;compare=previous_year&amp;q=shop&amp;sort=rise&amp;view=cards">' in page
    )
    assert 'href="/stores?range=today&amp;compare=previous_year&amp;q=shop&amp;sort=rise&amp;view=table"' in page
    assert 'name="compare" value="previous_year"' in page
    assert 'href="/stores/s3?range=last_7_days&amp;compare=previous_year"' in page


def test_there_is_a_second_page_and_beyond_the_last_one_is_the_last(
    monkeypatch: pytest.MonkeyPatch, browsing: Browsing
) -> None:
    monkeypatch.setattr(stores_page, "PAGE_SIZE", 2)

    assert [order(browsing, f"page={number}") for number in (1, 2, 3)] == [["2", "1"], ["3", "4"], ["5"]]
    assert order(browsing, "page=9999") == ["5"]
    second = browsing.get("/stores?page=2&view=table")
    assert 'rel="prev" href="/stores?view=table&amp;page=1"' in second
    assert "Page 2 of 3" in second
    assert "Page 3 of 3" in browsing.get("/stores?page=9999")
    head = second.partition("<thead>")[2].partition("</thead>")[0]
    assert "sort=rise" in head
    assert "page=" not in head


def test_a_store_with_two_currencies_has_its_own_line_and_the_rest_stay_by_name() -> None:
    world = chain({1: (100, 100), 2: (300, 300), 3: (200, 200)}, 3)
    world.stores["s1"] = replace(world.stores["s1"], currency=currency("CZK"))
    world.receive(receipt("2026-11-21T11:00:00Z", minor=500, store="s1", number=99), "2026-11-21T11:00:01Z")

    said = Browsing(Asking(world)).words("/stores")

    assert "Sorted by name. These stores cannot be compared with each other" in said
    assert "has amounts in CZK and EUR." in said
    assert said.index("Shop 2 s2") < said.index("€3.00") < said.index("Shop 3 s3") < said.index("€2.00")


def test_more_stores_than_can_be_sorted_take_few_questions(monkeypatch: pytest.MonkeyPatch) -> None:
    count = MOST_TOP + 50
    browsing = Browsing(Asking(chain({7: (0, 700), 11: (0, 1100), count: (0, 900)}, count)))
    asked = []
    answer = QueryService.metrics

    async def counted(self: QueryService, *args: object) -> bytes:
        asked.append(args[0])
        return await answer(self, *args)  # type: ignore[arg-type]

    monkeypatch.setattr(QueryService, "metrics", counted)
    page = browsing.get("/stores")

    assert NAMES.findall(page)[:4] == ["Shop 11", f"Shop {count}", "Shop 7", "Shop 1"]
    assert len(NAMES.findall(page)) == stores_page.PAGE_SIZE
    assert f"The first {MOST_TOP:,} are sorted." in words(page)
    assert len(asked) <= 5


def test_a_currency_without_sales_is_written_with_its_symbol() -> None:
    world = World(Store(id="1", timezone="Asia/Tokyo", name="Shop 1", currency=currency("JPY")))
    world.pass_time("2026-11-21T12:00:00Z")
    world.rebuild("2026-11-21T11:00:00Z")

    assert "¥0" in Browsing(Asking(world)).words("/stores")
    assert "¥0" in Browsing(Asking(world)).words("/stores/1")


@pytest.mark.parametrize(
    ("query", "said"),
    [("", "Nothing sold yet today"), ("range=yesterday", "Nothing sold"), ("day=2026-11-20", "Nothing sold")],
)
def test_a_script_says_that_nothing_was_sold_as_its_page_does(browsing: Browsing, query: str, said: str) -> None:
    page = browsing.get(f"/stores?{query}")
    card = page.partition("Shop 5</a>")[2].partition("</li>")[0]

    assert f'data-nothing="{said}"' in card
    assert f"<p>{said}</p>" in card


def test_half_a_percent_is_rounded_up_as_the_script_does() -> None:
    world = World(shop(1))
    world.receive(receipt("2026-11-18T09:00:00Z", minor=9950, store="s1"), "2026-11-18T09:00:01Z")
    world.rebuild("2026-11-21T09:30:00Z")
    world.receive(receipt("2026-11-21T12:01:00Z", minor=50, store="s1", number=1), "2026-11-21T12:01:01Z")

    assert "1 % of it provisional" in Browsing(Asking(world)).words("/stores?first=2026-11-18&last=2026-11-21")
