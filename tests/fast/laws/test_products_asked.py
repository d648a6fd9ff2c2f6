"""Totals by category and brand: each sale counts where its product is on the business day of its store.

The oracle knows nothing of cells, states or versions of a product master: it goes through the lines that were drawn,
looks for the last row of the product that had begun on that day, and adds up.
"""

import asyncio
import io
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, timedelta
from decimal import Decimal
from typing import Any, NamedTuple

import orjson
import pytest
from hypothesis import Phase, assume, given, settings
from hypothesis import strategies as st

from master_dataset.registry.products import ProductSpool
from master_dataset.registry.products_file import read_stream
from master_dataset.registry.stores import Store
from serving_layer.api.metrics import MetricQuery
from serving_layer.keys.key import OPERATOR
from serving_layer.products.reader import ProductReader
from serving_layer.query.catalogue import Catalogue
from serving_layer.service import Clocks, QueryService
from tests.support import World, receipt
from tests.support.chains import FIRST, LAST, Chain, Sale, chains
from tests.support.examples import examples
from tests.support.products import WorldProducts
from tests.support.sensors import BEGIN
from tests.support.world_tables import WorldTables
from views.core.cut import floor_to
from views.metrics import registered_metrics
from views.registry import registered_views

FEW = settings(max_examples=examples(100), deadline=None, phases=[Phase.explicit, Phase.reuse, Phase.generate])
MANY, PARTS = settings(FEW, max_examples=2_500), range(4)
CATALOGUE = Catalogue({view.name: view for view in registered_views()}, registered_metrics())
TENANTS = ("default", "acme")
SKUS = ("a", "b", "c")
PATHS = ("", "Food", "Food/Dairy", "Food/Dairy/Milk", "Food/Bread", "Drugs")


class Row(NamedTuple):
    """A line of a product file. `begins`: None for always."""

    tenant: str
    sku: str
    category: str
    brand: str
    begins: date | None

    @property
    def text(self) -> str:
        return ",".join((self.sku, f"title {self.begins}", self.brand, self.category, str(self.begins or "")))


class Line(NamedTuple):
    """A line of a receipt, `late` minutes on its way."""

    store: int
    minute: int
    sku: str
    minor: int
    late: int


class History(NamedTuple):
    """A chain of two tenants, their products, and what they sold."""

    chain: Chain
    rows: tuple[Row, ...]
    lines: tuple[Line, ...]

    def body(self, **said: object) -> dict[str, Any]:
        """The answer about item sales. Made without an app, which takes longer than the answer."""
        world = self.world()
        tables, products = WorldTables(world), self.products(world)
        clocks = Clocks(lambda: 0.0, world.now)
        reader = ProductReader(products, lambda: 0.0)
        service = QueryService(tables.readers, CATALOGUE, reader, timedelta(days=7), clocks)
        request = MetricQuery.model_validate({"from": str(FIRST), "to": str(LAST), **said}).to_request("sku_net_sales")

        async def ask() -> bytes:
            return await service.metrics(request, await service.read_version(request.first, OPERATOR), OPERATOR)

        found: dict[str, Any] = orjson.loads(asyncio.run(ask()))
        return found

    def world(self) -> World:
        world = World(*self.chain.stores)
        for number, line in sorted(enumerate(self.lines), key=lambda each: each[1].minute + each[1].late):
            item = {"title": "thing", "price": abs(line.minor) / 100, "sku": line.sku}
            sold = receipt(
                (BEGIN + timedelta(minutes=line.minute)).isoformat(),
                [item | {"amount": 1 if line.minor > 0 else -1}],
                number=number,
                store=self.chain.stores[line.store].id,
            )
            world.receive(sold, BEGIN + timedelta(minutes=line.minute + line.late, seconds=1))
        world.pass_time("2026-04-02T00:00:00Z")
        if self.chain.cut is not None:
            world.rebuild(floor_to(BEGIN + timedelta(minutes=self.chain.cut), timedelta(minutes=5)))
        return world

    def products(self, world: World) -> WorldProducts:
        products = WorldProducts(world.now)
        for tenant in {row.tenant for row in self.rows}:
            lines = ["sku,title,brand,category,valid_from", *(row.text for row in self.rows if row.tenant == tenant)]
            with ProductSpool() as spool:
                read_stream(io.BytesIO("\n".join(lines).encode()), spool)
                products.load(tenant, spool, replace=True)
        return products

    def day(self, line: Line) -> date:
        return self.chain.day(Sale(line.store, line.minute, line.minor, line.late))

    def row(self, line: Line, attributes: str) -> Row | None:
        """What the product of a line is: the last row that has begun, or the last of all."""
        tenant, day = self.chain.stores[line.store].tenant, self.day(line)
        rows = sorted(
            (row for row in self.rows if (row.tenant, row.sku) == (tenant, line.sku)),
            key=lambda row: row.begins or date.min,
        )
        begun = [row for row in rows if attributes == "current" or row.begins is None or row.begins <= day]
        return begun[-1] if begun else None

    def value(self, line: Line, name: str, attributes: str) -> str | None:
        """What a line has in a dimension."""
        if name == "sku":
            return line.sku
        row = self.row(line, attributes)
        if row is None or name == "brand":
            return (row.brand or None) if row else None
        levels = 2 if name == "category:2" else 1
        return "/".join(row.category.split("/")[:levels]) or None

    def region(self, line: Line, attributes: str) -> str | None:
        groups, day = self.chain.stores[line.store].groups, self.day(line)
        begun = [
            each for each in groups if attributes == "current" or each.valid_from is None or each.valid_from <= day
        ]
        return begun[-1].values.get("region") if begun else None

    def counts(self, line: Line, only: Mapping[str, Sequence[str]], attributes: str) -> bool:
        row = self.row(line, attributes)
        path = row.category.split("/") if row else []
        is_there = {
            "category": lambda text: path[: len(text.split("/"))] == text.split("/"),
            "brand": lambda text: row is not None and row.brand == text,
            "sku": lambda text: line.sku == text,
        }
        return all(any(map(is_there[name], texts)) for name, texts in only.items())


@st.composite
def drawn(draw: st.DrawFn) -> History:
    chain = draw(chains())
    tenants = [draw(st.sampled_from(TENANTS)) for _ in chain.stores]
    stores = tuple(
        Store(**(vars(store) | {"tenant": tenant})) for store, tenant in zip(chain.stores, tenants, strict=True)
    )
    days = st.none() | st.dates(FIRST - timedelta(days=1), LAST)
    rows = st.builds(
        Row,
        st.sampled_from(TENANTS),
        st.sampled_from(SKUS),
        st.sampled_from(PATHS),
        st.sampled_from(("", "Farm", "Own")),
        days,
    )
    lines = st.builds(
        Line,
        st.integers(0, len(stores) - 1),
        st.integers(0, 4000),
        st.sampled_from(SKUS),
        st.integers(-500, 5000).filter(bool),
        st.integers(0, 900),
    )
    return History(
        chain._replace(stores=stores, sales=(), counts=()),
        tuple(draw(st.lists(rows, max_size=8, unique_by=lambda row: (row.tenant, row.sku, row.begins)))),
        tuple(draw(st.lists(lines, max_size=14))),
    )


Key = tuple[str | None, ...]
Sums = dict[Key, dict[date | None, int]]


def added(history: History, lines: Iterable[Line], by: Sequence[str], grain: str, attributes: str) -> Sums:
    """The sales in minor units by currency, store or group, values of dimensions, and day."""
    found: Sums = {}
    for line in lines:
        store = history.chain.stores[line.store]
        key: list[str | None] = [store.currency.code]
        for name in by:
            if name == "total":
                continue
            values = {"store": store.id, "group:region": history.region(line, attributes)}
            key.append(values[name] if name in values else history.value(line, name, attributes))
        day = history.day(line) if grain == "day" else None
        points = found.setdefault(tuple(key), {})
        points[day] = points.get(day, 0) + line.minor
    return found


def answered(body: Mapping[str, Any]) -> Sums:
    found: Sums = {}
    for series in body["series"]:
        code = series["dimensions"].get("currency") or series.get("currency") or body.get("currency")
        whose = [series["store"]] if "store" in series else list(series.get("group", {}).values())
        dimensions = [value for name, value in series["dimensions"].items() if name != "currency"]
        points = {
            date.fromisoformat(point["date"]) if body["grain"] == "day" else None: int(
                Decimal(str(point["value"])) * 100
            )
            for point in series["points"]
        }
        found[code, *whose, *dimensions] = points
    return found


def without_zeros(sums: Sums) -> Sums:
    counted = {key: {day: value for day, value in points.items() if value} for key, points in sums.items()}
    return {key: points for key, points in counted.items() if points}


BY = (
    ("total", "category"),
    ("total", "category:2", "brand"),
    ("total", "sku", "category"),
    ("group:region", "category"),
    ("store", "category", "currency"),
    ("total", "brand", "currency"),
)
ONLY = st.dictionaries(
    st.sampled_from(["category", "brand", "sku"]),
    st.sampled_from([("Food",), ("Food/Dairy", "Drugs"), ("Farm",), ("Own", "Farm"), ("a",), ("a", "c")]),
    max_size=2,
)


class Question(NamedTuple):
    """What is asked of item sales. `only`: the products that count."""

    by: tuple[str, ...]
    only: Mapping[str, tuple[str, ...]]
    grain: str
    attributes: str


QUESTIONS = st.builds(
    Question, st.sampled_from(BY), ONLY, st.sampled_from(["day", "total"]), st.sampled_from(["as_then", "current"])
)


def check_totals(history: History, question: Question) -> None:
    by, only, grain, attributes = question
    regions = {name for store in history.chain.stores for version in store.groups for name in version.values}
    assume("group:region" not in by or "region" in regions)
    tenants = {store.tenant for store in history.chain.stores}
    rows = [row for row in history.rows if row.tenant in tenants]
    known = {
        "category": {"/".join(row.category.split("/")[:levels]) for row in rows for levels in (1, 2, 3)},
        "brand": {row.brand for row in rows},
        "sku": set(SKUS),
    }
    only = {name: texts for name, texts in only.items() if known[name].issuperset(texts)}

    body = history.body(by=list(by), grain=grain, attributes=attributes, **only)

    lines = [line for line in history.lines if history.counts(line, only, attributes)]
    names = [name for name in by if name != "currency"]
    assert without_zeros(answered(body)) == without_zeros(added(history, lines, names, grain, attributes))


@FEW
@given(history=drawn(), question=QUESTIONS)
def test_products_count_where_they_are_on_each_business_day(history: History, question: Question) -> None:
    check_totals(history, question)


@pytest.mark.nightly
@pytest.mark.parametrize("part", PARTS)
@MANY
@given(history=drawn(), question=QUESTIONS)
def test_products_count_where_they_are_in_ten_thousand_histories(
    part: int, history: History, question: Question
) -> None:
    assert part in PARTS
    check_totals(history, question)


@FEW
@given(drawn(), st.sampled_from(["category", "category:2", "brand"]), st.integers(1, 3))
def test_the_top_and_the_rest_of_categories_are_all_that_was_sold(history: History, by: str, top: int) -> None:
    body = history.body(by=["total", by], top=top, grain="total", share=True)

    by_currency: dict[str, list[Any]] = {}
    for series in body["series"]:
        by_currency.setdefault(series.get("currency") or body["currency"], []).append(series)
    for code, several in by_currency.items():
        sold = [line for line in history.lines if history.chain.stores[line.store].currency.code == code]
        values = [Decimal(str(series["points"][0]["value"])) for series in several]
        assert sum(values) * 100 == sum(line.minor for line in sold)
        assert len(several) <= top + 1
        assert (
            [bool(series.get("other")) for series in several] == [False] * top + [True] if len(several) > top else True
        )


@FEW
@given(drawn())
def test_a_load_of_products_changes_no_number_but_only_where_it_counts(history: History) -> None:
    without = history._replace(rows=())

    split = history.body(by=["total", "category"], grain="total")
    whole = without.body(by=["total"], grain="total")

    def by_currency(body: Mapping[str, Any]) -> dict[str, Decimal]:
        found: dict[str, Decimal] = {}
        for series in body["series"]:
            code = series.get("currency") or body["currency"]
            found[code] = found.get(code, Decimal(0)) + Decimal(str(series["points"][0]["value"]))
        return {code: value for code, value in found.items() if value}

    assert by_currency(split) == by_currency(whole)
    unknown = without.body(by=["total", "category"], grain="total")
    assert {series["dimensions"]["category"] for series in unknown["series"]} <= {None}
