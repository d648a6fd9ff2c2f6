"""The statements in the documentation are answered, and joins with versions count every sale once, as REST does."""

import io
from collections.abc import Iterator
from datetime import date
from decimal import Decimal

import pytest

from master_dataset.registry.products import ProductSpool
from master_dataset.registry.products_file import read_stream
from master_dataset.registry.stores import GroupVersion, Store
from tests.support import World, receipt
from tests.support.documented import ROOT, blocks
from tests.support.world_sql import AskingSql

PAGES = ("how-to/products.md", "how-to/sql.md", "explanation/sql.md")
GRAFANA = {"$__timeFilter(start)": "start > now() - interval '1 day'"}
PRODUCTS = """sku,title,category,valid_from
a,Milk,Food/Dairy,
a,Fresh milk,Fresh/Milk,2026-03-04
a,Milk again,Food/Dairy,2026-03-06
b,Soap,Drugs,2026-03-05
"""
DAYS = [f"2026-03-0{day}" for day in range(2, 8)]


def statements(page: str) -> list[str]:
    found = [block.text for block in blocks(ROOT / "docs" / page) if block.text.lstrip().startswith("select")]
    for variable, sql in GRAFANA.items():
        found = [each.replace(variable, sql) for each in found]
    return found


ALL = [(page, each) for page in PAGES for each in statements(page)]


@pytest.fixture(scope="module")
def sql() -> Iterator[AskingSql]:
    versions = (GroupVersion(None, {"region": "West"}), GroupVersion(date(2026, 3, 5), {"region": "East"}))
    world = World(Store(id="1", timezone="UTC", groups=versions))
    for number, day in enumerate(DAYS):
        for place, sku in enumerate("abc"):
            at = f"{day}T09:0{place}:00Z"
            lines = [{"title": sku, "price": 10**place, "amount": 1, "sku": sku}]
            world.receive(receipt(at, lines, number=10 * number + place), at)
    world.pass_time("2026-03-07T20:00:00Z")
    with AskingSql(world) as asking, ProductSpool() as spool:
        read_stream(io.BytesIO(PRODUCTS.encode()), spool)
        asking.rest.products.load("default", spool, replace=True)
        yield asking


def test_every_page_has_statements() -> None:
    assert {page for page, _ in ALL} == set(PAGES)


@pytest.mark.parametrize(("page", "statement"), ALL)
def test_a_statement_of_a_page_has_rows(sql: AskingSql, page: str, statement: str) -> None:
    assert sql.rows(statement), page


def test_departments_are_those_of_the_day_as_in_rest(sql: AskingSql) -> None:
    [statement] = statements("how-to/products.md")
    of_28_days = {"from_": "-28d", "grain": "total", "by": "total,category"}

    series = sql.rest.body("/v1/metrics/sku_net_sales", **of_28_days)["series"]
    rows = sql.rows(statement)

    assert {each["dimensions"]["category"]: Decimal(str(each["points"][0]["value"])) for each in series} == {
        department: value for department, _, value in rows
    }
    assert {department: value for department, _, value in rows} == {
        "Food": Decimal("4.00"),
        "Fresh": Decimal("2.00"),
        "Drugs": Decimal("30.00"),
        None: Decimal("630.00"),
    }


def test_the_newest_line_counts_for_all_days_where_that_is_asked(sql: AskingSql) -> None:
    [statement] = statements("how-to/products.md")
    first, second, third, *others = statement.splitlines()
    assert third.strip().startswith("and s.day >=")

    rows = sql.rows("\n".join([first, second, "and p.valid_to is null", *others]))

    assert {department: value for department, _, value in rows} == {
        "Food": Decimal("6.00"),
        "Drugs": Decimal("60.00"),
        None: Decimal("600.00"),
    }


def test_titles_are_those_of_the_day(sql: AskingSql) -> None:
    titles = next(each for each in statements("how-to/sql.md") if "p.title" in each)

    assert {title: value for title, _, value in sql.rows(titles)} == {
        "Milk": Decimal("2.00"),
        "Fresh milk": Decimal("2.00"),
        "Milk again": Decimal("2.00"),
        "Soap": Decimal("30.00"),
        None: Decimal("630.00"),
    }
