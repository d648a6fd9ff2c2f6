"""Receipts as they were received: a page is bounded by bytes, too, and whoever follows `next` gets all of them."""

import pytest

from serving_layer.store.readers import RECEIPT_PAGE_BYTES
from tests.support import World, receipt
from tests.support.world_api import OPERATOR_KEY, Asking, Body
from tests.support.world_clients import Browsing, client
from tests.support.world_sql import AskingSql

RAW = "/v1/raw/pos_transactions"
OF = {"store": "1", "day": "2026-11-21"}
LARGE = 900_000
NEWEST_FIRST = [*range(29, -1, -1)]
"""Numbers of the receipts: of the first 20, each has `LARGE` bytes."""


@pytest.fixture
def world() -> World:
    world = World()
    for number in range(30):
        line = {"title": "thing", "price": 1, "amount": 1, "sku": "1", "note": "x" * LARGE if number < 20 else ""}
        at = f"2026-11-21T09:{number:02}:00Z"
        world.receive(receipt(at, [line], number=number), at)
    return world


def pages(asking: Asking, limit: int) -> list[Body]:
    found = [asking.body(RAW, **OF, limit=limit)]
    while found[-1]["next"]:
        found.append(asking.body(RAW, **OF, limit=limit, after=found[-1]["next"]))
    return found


def numbers(page: Body) -> list[int]:
    return [int(each["transaction_id"]) for each in page["receipts"]]


@pytest.mark.parametrize(("limit", "sizes"), [(1000, [14, 4, 4, 4, 4]), (12, [12, 4, 4, 4, 4, 2]), (3, [3] * 10)])
def test_a_page_ends_before_large_receipts_exceed_it(world: World, limit: int, sizes: list[int]) -> None:
    found = pages(Asking(world), limit)

    assert [len(numbers(page)) for page in found] == sizes
    assert [number for page in found for number in numbers(page)] == NEWEST_FIRST


def test_no_answer_is_much_larger_than_its_receipts(world: World) -> None:
    response = Asking(world).response(RAW, **OF, limit=1000)

    assert 3 * LARGE < len(response.content) < RECEIPT_PAGE_BYTES + 100_000


def test_the_client_reads_all_of_them(world: World) -> None:
    with client(Asking(world), OPERATOR_KEY) as galatea:
        assert [int(each.transaction_id) for each in galatea.raw_receipts("1", "2026-11-21")] == NEWEST_FIRST


def test_sql_reads_all_of_them(world: World) -> None:
    with AskingSql(world) as sql:
        rows = sql.rows("select transaction_id from receipts order by happened_at desc")

    assert [int(number) for (number,) in rows] == NEWEST_FIRST


def test_the_page_of_an_hour_says_how_many_are_shown(world: World) -> None:
    shown = Browsing(Asking(world)).words("/receipts?store=1&from=2026-11-21T09:00:00Z")

    assert "The newest 14 in this hour are shown." in shown
