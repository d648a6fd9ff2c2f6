"""Product masters in real Cassandra: a load switches at once, keeps or replaces, and loses no other load."""

import asyncio
import io
import time
from collections.abc import Iterator
from datetime import date
from zoneinfo import ZoneInfo

import pytest
from cassandra.cluster import Session

from master_dataset.errors import BadFileError, ProductsChangedError
from master_dataset.registry.products import MOST_PRODUCTS, ProductMaster, ProductSpool, ProductTables, Versions
from master_dataset.registry.products_file import read_stream
from serving_layer.products.attribution import AnswerProducts, ProductLabel
from serving_layer.products.dimensions import ProductSelection
from serving_layer.products.reader import ProductFilter, ProductReader
from serving_layer.tables import AsyncSession
from serving_layer.tables.registry import ProductBlockTables
from views.core.local_time import BusinessDays


def load(session: Session, text: str, tenant: str, *, replace: bool = False) -> ProductMaster:
    with ProductSpool() as spool:
        read_stream(io.BytesIO(text.encode()), spool)
        return ProductTables(session).load(tenant, spool, replace=replace)


def titles(session: Session, tenant: str) -> dict[str, str]:
    async def read() -> dict[str, str]:
        reader = ProductReader(ProductBlockTables(AsyncSession(session)), time.monotonic)
        page = await reader.page(tenant, ProductFilter(), 10_000)
        return {each.sku: each.title for each in page.products}

    return asyncio.run(read())


def versions(session: Session, tenant: str) -> set[str]:
    rows = session.execute("SELECT DISTINCT tenant, version FROM product_blocks")
    return {row.version for row in rows if row.tenant == tenant}


def test_a_load_keeps_other_skus_unless_it_replaces_all(shared_cassandra: Session) -> None:
    first = load(shared_cassandra, "sku,title\n1,Milk\n2,Soap\n", "keeping")
    second = load(shared_cassandra, "sku,title\n2,Soap bar\n3,Bread\n", "keeping")
    assert (first.count, second.count) == (2, 3)
    assert titles(shared_cassandra, "keeping") == {"1": "Milk", "2": "Soap bar", "3": "Bread"}

    many = load(shared_cassandra, "sku,title\n" + "".join(f"m{n},T{n}\n" for n in range(3000)), "keeping")
    assert (many.buckets, many.count) == (8, 3003)
    few = {"1": "Milk", "2": "Soap bar", "3": "Bread"}
    assert titles(shared_cassandra, "keeping") == few | {f"m{n}": f"T{n}" for n in range(3000)}
    again = load(shared_cassandra, "sku,title\n1,Oat milk\n", "keeping")
    assert (again.buckets, again.count) == (8, 3003)
    assert versions(shared_cassandra, "keeping") == {many.version, again.version}

    load(shared_cassandra, "sku,title\n9,Tea\n", "keeping", replace=True)
    assert titles(shared_cassandra, "keeping") == {"9": "Tea"}


def test_a_load_that_fails_changes_nothing(shared_cassandra: Session) -> None:
    before = load(shared_cassandra, "sku,title\n1,Milk\n", "failing")
    with pytest.raises(BadFileError, match="Lines 2 and 3"):
        load(shared_cassandra, "sku,title\n1,Tea\n1,Coffee\n", "failing")
    assert titles(shared_cassandra, "failing") == {"1": "Milk"}
    assert versions(shared_cassandra, "failing") == {before.version}


def test_of_two_loads_at_once_the_second_fails(shared_cassandra: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    load(shared_cassandra, "sku,title\n1,Milk\n", "racing")
    by_bucket = ProductSpool.by_bucket

    def overtaken(self: ProductSpool, buckets: int) -> Iterator[tuple[int, dict[str, Versions]]]:
        monkeypatch.setattr(ProductSpool, "by_bucket", by_bucket)
        load(shared_cassandra, "sku,title\n2,Soap\n", "racing")
        return by_bucket(self, buckets)

    monkeypatch.setattr(ProductSpool, "by_bucket", overtaken)
    with pytest.raises(ProductsChangedError):
        load(shared_cassandra, "sku,title\n3,Bread\n", "racing")
    assert titles(shared_cassandra, "racing") == {"1": "Milk", "2": "Soap"}
    assert len(versions(shared_cassandra, "racing")) == 2


def test_an_answer_that_has_begun_reads_the_products_of_its_version(shared_cassandra: Session) -> None:
    load(shared_cassandra, "sku,title,category\n1,Milk,Food/Dairy\n2,Soap,Drugs\n", "reading")
    reader = ProductReader(ProductBlockTables(AsyncSession(shared_cassandra)), time.monotonic)

    async def read() -> tuple[list[str | None], ProductLabel]:
        master = await reader.master("reading")
        assert master is not None
        await asyncio.to_thread(load, shared_cassandra, "sku,title,category\n1,Oat milk,Drinks\n", "reading")
        products = AnswerProducts(reader, [master], "as_then")
        await products.refuse_unknown(ProductSelection.read(["Food/Dairy"], [], []))
        store = await products.of_store("reading", BusinessDays(ZoneInfo("UTC")), ["1", "2", "3"])
        labels = await products.labels(["reading"], ["1"], date(2026, 3, 27))
        return store.column("category", ["2", "1", "3", "1"], [0, 900, 1800, 2700]), labels["1"]

    assert asyncio.run(read()) == (["Drugs", "Food", None, "Food"], ProductLabel("Milk", "Food/Dairy"))


@pytest.mark.nightly
def test_a_million_products_are_loaded_labelled_and_one_more_is_refused(shared_cassandra: Session) -> None:
    text = "sku,title,category,brand\n" + "".join(
        f"m{number},Product {number},Department {number % 40}/Shelf {number % 900},Brand {number % 5000}\n"
        for number in range(MOST_PRODUCTS)
    )
    reader = ProductReader(ProductBlockTables(AsyncSession(shared_cassandra)), time.monotonic)

    loaded = load(shared_cassandra, text, "million")
    with pytest.raises(BadFileError, match="more than 1,000,000 products"):
        load(shared_cassandra, "sku,title\none more,Milk\n", "million")

    async def labels() -> dict[str, ProductLabel]:
        master = await reader.master("million")
        assert master is not None
        products = AnswerProducts(reader, [master], "as_then")
        await products.refuse_unknown(ProductSelection.read(["Department 7"], ["Brand 4999"], []))
        return dict(await products.labels(["million"], ["m0", "m999999", "one more"], date(2026, 3, 27)))

    assert loaded.count == MOST_PRODUCTS
    assert asyncio.run(labels()) == {
        "m0": ProductLabel("Product 0", "Department 0/Shelf 0"),
        "m999999": ProductLabel("Product 999999", "Department 39/Shelf 99"),
        "one more": ProductLabel(),
    }
