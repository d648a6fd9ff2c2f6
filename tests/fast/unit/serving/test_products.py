"""Products over REST: loaded all or none, listed page by page, and read by the buckets that a question needs."""

import asyncio
import io
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, date, datetime
from itertools import count
from typing import Any

import pytest

from master_dataset.errors import CassandraUnavailableError
from master_dataset.registry.products import Product, ProductSpool, bucket_of
from master_dataset.registry.products_file import read_stream
from master_dataset.registry.stores import Store
from serving_layer.products.attribution import AnswerProducts, ProductLabel
from serving_layer.products.dimensions import Attributes
from serving_layer.products.reader import BLOCKS_PER_PAGE, MasterNames, ProductFilter, ProductPlace, ProductReader
from tests.support import World
from tests.support.products import WorldProducts
from tests.support.world_api import OPERATOR_KEY, Asking

CSV = b"""sku,title,brand,category,gtin,valid_from
1,"Milk, fresh",Farm,Food/Dairy,4006381333931,
1,Milk,Farm,Food/Milk,,2026-03-01
2,Soap,,Drugs,,
3,Bread,,Food,,2026-02-01
"""
NOW = datetime(2026, 3, 7, tzinfo=UTC)


def loaded(text: bytes = CSV, buckets: int = 0, tenant: str = "default") -> WorldProducts:
    products = WorldProducts(lambda: NOW, buckets)
    with ProductSpool() as spool:
        read_stream(io.BytesIO(text), spool)
        products.load(tenant, spool, replace=True)
    return products


def reader_of(products: WorldProducts, clock: Iterator[float] | None = None) -> ProductReader:
    ticks = clock or count(0.0)
    return ProductReader(products, lambda: next(ticks))


def post(asking: Asking, body: bytes, path: str = "/v1/products", **headers: str) -> Any:
    usual = {"content-type": "text/csv", "authorization": f"Bearer {OPERATOR_KEY}"}
    return asking.request("POST", path, headers=usual | headers, content=body)


def test_products_are_listed_as_they_were_loaded() -> None:
    asking = Asking(World())

    assert asking.body("/v1/products")["products"] == []
    response = post(asking, CSV)
    assert (response.status_code, response.json()["count"]) == (200, 4)
    listed = asking.body("/v1/products")
    assert listed["version"] == response.json()["version"]
    assert (listed["count"], listed["next"], len(listed["products"])) == (4, None, 4)
    assert asking.body("/v1/products", sku=["1", "9"])["products"] == [
        {
            "sku": "1",
            "title": "Milk, fresh",
            "brand": "Farm",
            "category": "Food/Dairy",
            "gtin": "4006381333931",
            "valid_from": None,
        },
        {
            "sku": "1",
            "title": "Milk",
            "brand": "Farm",
            "category": "Food/Milk",
            "gtin": None,
            "valid_from": "2026-03-01",
        },
    ]


@pytest.mark.parametrize(
    ("said", "titles"),
    [
        ({"category": "Food"}, {"Milk, fresh", "Milk", "Bread"}),
        ({"category": "Food/Dairy"}, {"Milk, fresh"}),
        ({"category": "Foo"}, set()),
        ({"search": "mILk"}, {"Milk, fresh", "Milk"}),
        ({"search": "4006381"}, {"Milk, fresh"}),
        ({"category": "Food", "search": "bread"}, {"Bread"}),
        ({"sku": "1", "category": "Food/Milk"}, {"Milk"}),
    ],
)
def test_a_list_is_filtered(said: dict[str, object], titles: set[str]) -> None:
    asking = Asking(World())
    post(asking, CSV)

    assert {each["title"] for each in asking.body("/v1/products", **said)["products"]} == titles


def test_pages_hold_every_product_once() -> None:
    asking = Asking(World())
    post(asking, b"sku,title\n" + b"".join(b"%d,T\n" % sku for sku in range(1500)))

    found: list[str] = []
    after: dict[str, object] = {}
    while True:
        page = asking.body("/v1/products", limit=400, **after)
        found += [each["sku"] for each in page["products"]]
        if page["next"] is None:
            break
        assert len(page["products"]) == 400
        after = {"after": page["next"]}
    assert sorted(found, key=int) == [str(sku) for sku in range(1500)]


def test_pages_of_two_versions_are_not_mixed() -> None:
    asking = Asking(World())
    post(asking, b"sku,title\n" + b"".join(b"%d,T\n" % sku for sku in range(20)))
    first = asking.body("/v1/products", limit=5)
    post(asking, b"sku,title\n1,Other\n", "/v1/products?replace=true")

    refused = asking.refusal("/v1/products", limit=5, after=first["next"])

    assert (refused["status"], refused["code"]) == (422, "bad_question")
    assert refused["title"] == "The products were loaded again since the page before."


def test_wrong_products_are_refused_and_nothing_is_kept() -> None:
    asking = Asking(World())

    problem = post(asking, CSV + b"4,Tea,,,123,\n").json()
    assert (problem["status"], problem["code"]) == (422, "bad_gtin")
    assert "`gtin` of line 6" in problem["title"]
    assert post(asking, CSV, **{"content-type": "application/json"}).status_code == 415
    assert post(asking, b"a" * 8_000_001).status_code == 413
    assert asking.request("POST", "/v1/products", content=CSV, headers={"content-type": "text/csv"}).status_code == 401
    assert asking.body("/v1/products")["version"] is None


@pytest.mark.parametrize("said", [{"category": "a//b"}, {"after": "x"}, {"after": "WzEsMiwiYSJd"}, {"limit": 0}])
def test_a_wrong_question_is_refused(said: dict[str, object]) -> None:
    assert Asking(World()).refusal("/v1/products", **said)["status"] == 422


def test_the_products_of_another_tenant_are_not_there() -> None:
    asking = Asking(World(Store(id="1", timezone="UTC"), Store(id="2", timezone="UTC", tenant="acme")))
    post(asking, CSV, "/v1/products?tenant=acme")

    assert asking.body("/v1/products")["count"] == 0
    assert asking.refusal("/v1/products", tenant="acme")["status"] == 404
    assert asking.body("/v1/products", tenant="acme", key=OPERATOR_KEY)["count"] == 4


@pytest.mark.parametrize(
    ("attributes", "day", "titles"),
    [
        ("as_then", date(2026, 1, 1), {"1": "Milk, fresh", "2": "Soap", "3": None, "9": None}),
        ("as_then", date(2026, 3, 1), {"1": "Milk", "2": "Soap", "3": "Bread", "9": None}),
        ("current", date(2026, 1, 1), {"1": "Milk", "2": "Soap", "3": "Bread", "9": None}),
    ],
)
def test_titles_are_those_of_the_day_or_the_newest(
    attributes: Attributes, day: date, titles: dict[str, str | None]
) -> None:
    async def labels(tenant: str) -> dict[str, ProductLabel]:
        reader = reader_of(loaded())
        masters = [master for each in ("default", "acme") if (master := await reader.master(each))]
        return dict(await AnswerProducts(reader, masters, attributes).labels([tenant], titles, day))

    assert {sku: label.title for sku, label in asyncio.run(labels("default")).items()} == titles
    assert asyncio.run(labels("default"))["2"] == ProductLabel("Soap", "Drugs")
    assert asyncio.run(labels("acme")) == dict.fromkeys(titles, ProductLabel())


def test_only_the_buckets_of_the_skus_are_read_and_only_once() -> None:
    products = loaded(buckets=64)
    reader = reader_of(products)

    for _ in range(2):
        assert set(asyncio.run(reader.products("default", ["1", "2"]))) == {"1", "2"}
    assert sorted(products.reads) == sorted(bucket_of(sku, 64) for sku in "12")


def test_a_new_version_is_seen_within_a_second_and_one_removed_while_it_is_read_is_read_again() -> None:
    products = loaded()
    reader = reader_of(products, iter([0.0, 0.0, 0.5, 2.0, 2.0]))
    assert asyncio.run(reader.master("default")) == products.masters["default"]

    newer = loaded(b"sku,title\n2,Soap bar\n")
    products.masters = {"default": replace(newer.masters["default"], version="newer")}
    products.blocks = {("default", "newer", 0): newer.blocks["default", "0", 0]}
    assert asyncio.run(reader.products("default", ["2"])) == {"2": (Product("2", "Soap bar"),)}


def test_a_page_searches_a_bounded_number_of_blocks() -> None:
    products = loaded(buckets=256)
    reader = reader_of(products)

    page = asyncio.run(reader.page("default", ProductFilter(search="no such"), 10))
    assert len(products.reads) == BLOCKS_PER_PAGE
    assert (page.products, page.following) == ([], ProductPlace("0", BLOCKS_PER_PAGE, ""))


def test_names_are_searched_until_they_are_found_and_all_of_them_are_kept() -> None:
    lines = "".join(f"{number},Thing,Farm,Food/Dairy,,\n" for number in range(100, 300))
    products = loaded(CSV + lines.encode(), buckets=64)
    reader = reader_of(products)

    async def found(*categories: str) -> tuple[frozenset[str], int]:
        master = await reader.master("default")
        assert master is not None
        names = await reader.names(master, MasterNames(frozenset(categories), frozenset()))
        return names.categories, len(products.reads)

    some, first = asyncio.run(found("Food"))
    every, all_of_them = asyncio.run(found("Food/Diary"))

    assert (some >= {"Food"}, first < 10) == (True, True)
    assert every == {"Food", "Food/Dairy", "Food/Milk", "Drugs"}
    assert all_of_them == len(set(products.reads)) == 64
    assert asyncio.run(found("Nothing")) == (every, all_of_them)


def test_an_answer_reads_one_version_or_says_that_it_is_gone() -> None:
    products = loaded()
    reader = reader_of(products)

    async def versions() -> set[str]:
        master = await reader.master("default")
        assert master is not None
        return set(await reader.versions(master, ["1", "2", "7"]))

    assert asyncio.run(versions()) == {"1", "2"}
    products.blocks.clear()
    reader = reader_of(products)
    with pytest.raises(CassandraUnavailableError, match="were replaced several times"):
        asyncio.run(versions())


def test_a_key_of_all_tenants_names_one_that_has_stores() -> None:
    asking = Asking(World(Store(id="1", timezone="UTC", tenant="acme")))
    csv = b"sku,title\n1,Milk\n"

    for path, method in (("/v1/products", "GET"), ("/v1/products", "POST"), ("/v1/targets", "POST")):
        body = {"said": csv} if method == "POST" else {}
        wrong = asking.refusal(path, method=method, key=OPERATOR_KEY, tenant="acne", **body)
        assert (wrong["status"], wrong["code"]) == (404, "unknown_name"), wrong
        assert wrong["detail"] == "Did you mean `acme`?"

    assert asking.body("/v1/products", key=OPERATOR_KEY, tenant="acme")["count"] == 0
