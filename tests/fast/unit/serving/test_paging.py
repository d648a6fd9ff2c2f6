"""More stores than one answer holds are asked for in pages, and every page says what it rests on."""

import base64
import csv
import io
from datetime import date
from typing import Any

import pytest

from master_dataset.registry.stores import Store
from serving_layer.api.parameters import read_page_token
from serving_layer.errors import BadQuestionError
from tests.support import World, receipt
from tests.support.world_api import Asking, Body

NET = "/v1/metrics/net_sales"
DAY = {"from_": "2026-11-21", "to": "2026-11-22"}


@pytest.fixture
def world() -> World:
    """250 stores, of which the first has sold something."""
    world = World(*(Store(id=f"{number:03}", timezone="UTC") for number in range(250)))
    world.receive(receipt("2026-11-21T09:00:00Z", minor=100, store="000"), "2026-11-21T09:00:01Z")
    return world


def pages(asking: Asking, **arguments: Any) -> list[Body]:
    arguments = {"limit": 100} | arguments
    found = [asking.body(NET, **DAY, **arguments)]
    while found[-1]["next"]:
        found.append(asking.body(NET, **DAY, **arguments | {"after": found[-1]["next"]}))
    return found


def stores(body: Body) -> list[str]:
    return [series["store"] for series in body["series"]]


def test_all_stores_come_a_hundred_at_a_time_in_the_order_of_their_ids(world: World) -> None:
    found = pages(Asking(world))

    assert [len(stores(page)) for page in found] == [100, 100, 50]
    assert [store for page in found for store in stores(page)] == sorted(world.stores)


@pytest.mark.parametrize("limit", [1, 7, 99, 100])
def test_a_limit_says_how_many_stores_a_page_has(world: World, limit: int) -> None:
    first = Asking(world).body(NET, **DAY, limit=limit)

    assert stores(first) == sorted(world.stores)[:limit]


def test_an_answer_with_all_stores_says_nothing_of_pages_unless_they_were_requested() -> None:
    asking = Asking(World())

    assert "next" not in asking.body(NET, **DAY)
    assert asking.body(NET, **DAY, limit=100)["next"] is None


def test_named_stores_can_be_paged_and_more_than_a_hundred_are_refused(world: World) -> None:
    asking = Asking(world)

    found = pages(asking, store=["007", "003", "005"], limit=2)

    assert [stores(page) for page in found] == [["003", "005"], ["007"]]
    assert stores(asking.body(NET, **DAY, store=["007", "003"])) == ["007", "003"]
    too_many = [f"{number:03}" for number in range(101)]
    assert asking.refusal(NET, **DAY, store=too_many, limit=5)["code"] == "too_many_stores"


def test_pages_go_on_over_publications_and_over_stores_that_come_and_go(world: World) -> None:
    asking = Asking(world)
    first = asking.body(NET, **DAY, limit=2)
    del world.stores["001"]
    world.stores |= {store: Store(id=store, timezone="UTC") for store in ("0005", "0015")}
    world.rebuild("2026-11-22T00:00:00Z")

    second = asking.body(NET, **DAY, limit=2, after=first["next"])

    assert [stores(first), stores(second)] == [["000", "001"], ["0015", "002"]]
    assert [page["as_of"]["publication"] for page in (first, second)] == [0, 1]


def test_behind_the_last_store_there_is_an_empty_page(world: World) -> None:
    asking = Asking(world)
    token = asking.body(NET, **DAY, store=["249", "248"], limit=1)["next"]
    del world.stores["249"]

    last = asking.body(NET, **DAY, after=token)

    assert (last["series"], last["next"]) == ([], None)


@pytest.mark.parametrize("form", ["json", "csv", "parquet"])
def test_more_stores_than_an_answer_holds_are_rejected_unless_pages_are_requested(world: World, form: str) -> None:
    asking = Asking(world)

    refused = asking.refusal(NET, **DAY, format=form)

    assert refused["code"] == "too_many_stores"
    assert all(word in refused["detail"] for word in ("by=total", "limit=100"))
    assert len(stores(asking.body(NET, **DAY, limit=100))) == 100


def test_a_table_says_in_a_header_where_the_next_page_begins(world: World) -> None:
    asking = Asking(world)

    page = asking.response(NET, **DAY, format="csv", limit=100)
    last = asking.response(NET, **DAY, format="csv", limit=100, store="000")

    assert page.headers["galatea-next"] == asking.body(NET, **DAY, limit=100)["next"]
    assert len(list(csv.DictReader(io.StringIO(page.text)))) == 100
    assert "galatea-next" not in last.headers


def test_cells_and_the_index_have_no_pages(world: World) -> None:
    asking = Asking(world)

    assert asking.refusal("/v1/views/sales/cells", **DAY)["code"] == "too_many_stores"
    assert asking.refusal("/v1/index/net_sales", **DAY)["code"] == "too_many_stores"
    assert asking.refusal("/v1/views/sales/cells", **DAY, limit=5)["code"] == "unknown_argument"


@pytest.mark.parametrize("said", [b'{"a":1}', b'["a","b"]', b"[1]", b"[]", b'"a"', b' ["a"]', b"a"])
def test_a_token_that_no_answer_has_given_is_refused(world: World, said: bytes) -> None:
    token = base64.urlsafe_b64encode(said).decode()

    assert Asking(world).refusal(NET, **DAY, limit=1, after=token)["code"] == "bad_question"


def test_a_position_is_a_list() -> None:
    def read(said: bytes) -> date:
        return read_page_token(base64.urlsafe_b64encode(said).decode(), date.fromisoformat)

    assert read(b'["2026-11-21"]') == date(2026, 11, 21)
    with pytest.raises(BadQuestionError):
        read(b'{"2026-11-21":1}')
