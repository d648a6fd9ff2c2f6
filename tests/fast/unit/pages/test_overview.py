"""The overview: totals of all stores that the visitor can see over a period, how they developed, who leads."""

import re
from datetime import UTC, datetime
from urllib.parse import unquote

import pytest

from master_dataset.registry.stores import GroupVersion, Store, currency
from tests.support import World, receipt
from tests.support.world_api import Asking
from tests.support.world_clients import Browsing

DAYS = ("2026-11-14", "2026-11-20", "2026-11-21")


def asking_of(*stores: Store) -> Asking:
    """A receipt of each store a day, each 1,000 more than that of the store before it."""
    world = World(*stores)
    for place, store in enumerate(stores, 1):
        for number, day in enumerate(DAYS):
            value = receipt(f"{day}T09:00:00Z", minor=100_000 * place, store=store.id, number=number)
            world.receive(value, f"{day}T09:00:0{place % 10}Z")
    world.pass_time(datetime(2026, 11, 21, 12, tzinfo=UTC))
    return Asking(world)


def grouped(id_: str, region: str, code: str = "EUR", tenant: str = "default", zone: str = "UTC") -> Store:
    groups = (GroupVersion(None, {"region": region, "size": "big"}),)
    return Store(id=id_, timezone=zone, name=f"Shop {id_}", groups=groups, currency=currency(code), tenant=tenant)


@pytest.fixture(scope="module")
def chain() -> Browsing:
    """Seven stores, more than lead."""
    return Browsing(asking_of(*(grouped(str(number), "East" if number == 7 else "West") for number in range(1, 8))))


def test_totals_are_of_all_stores_with_what_they_are_compared_with(chain: Browsing) -> None:
    said = chain.words("/")

    assert "7 stores · Sat, 21 Nov 2026, so far · compared with the previous week, both up to 12:00 UTC" in said
    assert "Net sales €28,000.00 ±0.0 % by 12:00 UTC provisional" in said
    assert "Receipts 7 ±0.0 % by 12:00 UTC provisional" in said
    assert "Average receipt €4,000.00" in said
    assert "Visitors \N{EN DASH} No sensor in this store measures it" in said


def test_the_best_and_the_worst_stores_and_the_groups_are_ranked(chain: Browsing) -> None:
    said = chain.words("/")
    top, bottom, groups = (said.index(f"{title}: Net sales") for title in ("Top stores", "Bottom stores", "By region"))

    assert re.findall(r"Shop \d", said[top:bottom]) == [f"Shop {number}" for number in (7, 6, 5, 4, 3)]
    assert re.findall(r"Shop \d", said[bottom:groups]) == [f"Shop {number}" for number in (1, 2, 3, 4, 5)]
    assert said.index("West €21,000.00", groups) < said.index("East €7,000.00", groups)


def test_a_sale_of_this_quarter_hour_is_in_every_number_and_in_no_comparison() -> None:
    asking = asking_of(grouped("1", "West"), grouped("2", "West"))
    asking.world.receive(
        receipt("2026-11-21T12:01:00Z", minor=50_000, store="1", number=9), "2026-11-21T12:01:01Z"
    )  # fmt: skip
    asking.world.pass_time(datetime(2026, 11, 21, 12, 2, tzinfo=UTC))
    browsing = Browsing(asking)

    overview, store, products = (browsing.words(path) for path in ("/", "/stores/1", "/products?store=1"))

    assert "Net sales €3,500.00 ±0.0 %" in overview
    assert "Shop 1 €1,500.00 ±0.0 %" in overview
    assert "West €3,500.00 ±0.0 %" in overview
    assert "thing €1,500.00 ±0.0 %" in store
    assert "thing €1,500.00 100.0 % ±0.0 % 2" in products


def test_a_range_is_in_the_address_and_goes_along_to_the_stores(chain: Browsing) -> None:
    page = chain.get("/?range=last_7_days&compare=none")

    assert "€56,000.00" in chain.words("/?range=last_7_days&compare=none")
    assert '<a href="/stores/7?range=last_7_days&amp;compare=none">Shop 7</a>' in page
    assert 'href="/?range=last_28_days&amp;compare=none"' in page
    assert 'data-show="change"' not in page


def test_chosen_days_are_both_included(chain: Browsing) -> None:
    said = chain.words("/?range=custom&first=2026-11-20&last=2026-11-21")

    assert "Net sales €56,000.00" in said
    assert "20 Nov \N{EN DASH} 21 Nov 2026, so far" in said


def test_a_period_ahead_has_no_chart(chain: Browsing) -> None:
    page = chain.get("/?day=2026-12-24")

    assert "started." in page
    assert "data-plot" not in page


def test_the_totals_are_those_of_rest(chain: Browsing) -> None:
    page = chain.get("/?range=last_7_days")
    path = re.findall(r'data-query="(/v1/metrics/net_sales[^"]+)"[^>]*data-show="value"', page)[0]

    assert '"value":56000.0' in chain.get(unquote(path.replace("&amp;", "&")))


def test_currencies_stand_side_by_side_each_with_its_own_bars() -> None:
    browsing = Browsing(
        asking_of(
            grouped("1", "West"), grouped("2", "West", "JPY", zone="Asia/Tokyo"), grouped("3", "West", "CZK"),
            grouped("4", "East"),
        )
    )  # fmt: skip
    said, page = browsing.words("/"), browsing.get("/")

    assert all(each in said for each in ("€5,000.00", "CZK\N{NO-BREAK SPACE}3,000.00".replace("\xa0", " ")))
    assert "Net sales in €" in said
    widths = re.findall(
        r'class="value" width="([\d.]+)%"', page.partition('id="ranking-1"')[2].partition("</table>")[0]
    )
    assert widths.count("100.0") >= 3
    assert 'data-zone="UTC"' in page


def test_hours_are_those_of_a_store_with_the_currency_that_is_drawn() -> None:
    first = Store(id="0", timezone="Asia/Tokyo", name="A", currency=currency("JPY"))
    browsing = Browsing(asking_of(first, grouped("1", "West"), grouped("2", "West")))

    page = browsing.get("/")

    assert 'data-symbol="€"' in page
    assert 'data-zone="UTC"' in page


def test_a_visitor_sees_the_total_of_their_own_stores() -> None:
    browsing = Browsing(asking_of(grouped("1", "West"), grouped("2", "West"), grouped("9", "Secret", tenant="acme")))
    said = browsing.words("/")

    assert "Net sales €3,000.00" in said
    assert "Secret" not in said
    assert "Shop 9" not in said


def test_without_groups_stores_are_ranked_alone() -> None:
    said = Browsing(asking_of(Store(id="1", timezone="UTC"), Store(id="2", timezone="UTC"))).words("/")

    assert "Top stores" in said
    assert "Store 2 €2,000.00" in said
    assert "Bottom stores" not in said
    assert "By " not in said[said.index("Top stores") :].partition("Open alerts")[0]


def test_open_alerts_are_there_with_their_store() -> None:
    asking = asking_of(grouped("1", "West"))
    asking.alert_tables.raised("2026-11-21T09:20:00Z", store="1", sentence="The queue Q1 is too long.")

    said = Browsing(asking).words("/")

    assert "The queue Q1 is too long. Shop 1 · since Sat 21 Nov, 09:20" in said
