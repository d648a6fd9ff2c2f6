"""Products in queries: what series and problems say, what is refused, what is cached. Values are the law's."""

import asyncio
import csv
import io
from collections.abc import Collection
from datetime import date
from typing import Any

import orjson
import pytest

from master_dataset.registry.products import ProductSpool
from master_dataset.registry.products_file import read_stream
from master_dataset.registry.stores import Store
from serving_layer.api.metrics import MetricQuery
from serving_layer.keys.key import OPERATOR
from serving_layer.live import Live
from serving_layer.products.attribution import AnswerProducts
from serving_layer.query import answer as answer_module
from serving_layer.query.answer import LABELLED_AT_ONCE
from tests.support import World, receipt
from tests.support.world_api import OPERATOR_KEY, Asking, Body

NET = "/v1/metrics/sku_net_sales"
DAY = {"from_": "2026-03-27", "to": "2026-03-28", "grain": "total"}
FILE = """sku,title,brand,category,valid_from
1,"Milk, fresh",Farm,Food/Dairy/Milk,
2,Soap,Own,Drugs,
3,Bread,,Food/Bread,
4,Cheese,Farm,Food/Dairy,2026-03-28
"""
SOLD = {"1": 100, "2": 20, "3": 7, "4": 5, "9": 3}
"""By SKU, in minor units; 9 is no product, and 4 was none on that day."""


def load(asking: Asking, text: str = FILE, tenant: str = "default") -> None:
    with ProductSpool() as spool:
        read_stream(io.BytesIO(text.encode()), spool)
        asking.products.load(tenant, spool, replace=True)


def sold(*stores: Store) -> World:
    """Each store sold each SKU at 12:00 UTC."""
    world = World(*stores)
    for store in stores:
        for number, (sku, minor) in enumerate(SOLD.items()):
            line = {"title": f"{sku} of {store.tenant}", "price": minor / 100, "amount": 1, "sku": sku}
            world.receive(
                receipt("2026-03-27T12:00:00Z", [line], number=number, store=store.id), "2026-03-27T12:00:01Z"
            )
    world.pass_time("2026-03-30T00:00:00Z")
    return world


@pytest.fixture
def asking() -> Asking:
    asking = Asking(sold(Store(id="1", timezone="UTC")))
    load(asking)
    return asking


def values(body: Body, dimension: str) -> dict[str | None, float]:
    return {series["dimensions"][dimension]: series["points"][0]["value"] for series in body["series"]}


@pytest.mark.parametrize(
    ("by", "expected"),
    [
        ("category", {"Food": 1.07, "Drugs": 0.2, None: 0.08}),
        ("category:1", {"Food": 1.07, "Drugs": 0.2, None: 0.08}),
        ("category:2", {"Food/Dairy": 1.0, "Food/Bread": 0.07, "Drugs": 0.2, None: 0.08}),
        ("category:6", {"Food/Dairy/Milk": 1.0, "Food/Bread": 0.07, "Drugs": 0.2, None: 0.08}),
        ("brand", {"Farm": 1.0, "Own": 0.2, None: 0.15}),
    ],
)
def test_a_series_per_category_or_brand_with_the_unknown_as_null(
    asking: Asking, by: str, expected: dict[str | None, float]
) -> None:
    assert values(asking.body(NET, **DAY, by=by), by) == expected


def test_current_attributes_count_products_that_came_later(asking: Asking) -> None:
    found = asking.body(NET, **DAY, by="category", attributes="current")

    assert values(found, "category") == {"Food": 1.12, "Drugs": 0.2, None: 0.03}


@pytest.mark.parametrize(
    ("only", "expected"),
    [
        ({"category": "Food"}, {"1", "3"}),
        ({"category": "Food/Dairy"}, {"1"}),
        ({"category": ["Food/Bread", "Drugs"]}, {"2", "3"}),
        ({"brand": ["Farm", "Own"]}, {"1", "2"}),
        ({"sku": "1,9"}, {"1", "9"}),
        ({"sku": ["1", "2"], "category": "Drugs"}, {"2"}),
        ({"category": "Food/Dairy", "attributes": "current"}, {"1", "4"}),
        ({"sku": "77"}, set()),
    ],
)
def test_only_the_products_that_were_asked_for_count(asking: Asking, only: dict[str, Any], expected: set[str]) -> None:
    split = asking.body(NET, **DAY, by="sku", **only)
    whole = asking.body(NET, **DAY, **only)

    assert set(values(split, "sku")) == expected
    [series] = whole["series"]
    assert round((series["points"][0]["value"] or 0) * 100) == sum(SOLD[sku] for sku in expected)


def test_a_quotient_counts_products_above_and_everything_below(asking: Asking) -> None:
    split = asking.body("/v1/metrics/sku_attach_rate", **DAY, by="category")
    dairy = asking.body("/v1/metrics/sku_attach_rate", **DAY, category="Food")

    assert values(split, "category") == {"Food": 40.0, "Drugs": 20.0, None: 40.0}
    assert dairy["series"][0]["points"][0]["value"] == 40.0


def test_series_of_a_sku_say_its_title_and_category(asking: Asking) -> None:
    body = asking.body(NET, **DAY, by="total,sku", top=3)

    labels = {
        series["dimensions"].get("sku"): (series.get("title", ""), series.get("category", ""))
        for series in body["series"]
    }
    assert labels == {
        "1": ("Milk, fresh", "Food/Dairy/Milk"),
        "2": ("Soap", "Drugs"),
        "3": ("Bread", "Food/Bread"),
        None: ("", ""),
    }
    assert all("title_from" not in series for series in body["series"])
    assert "title" not in asking.body(NET, **DAY, by="category")["series"][0]


@pytest.mark.parametrize(
    ("said", "status", "code", "do"),
    [
        ({"category": "Food/Diary"}, 404, "unknown_name", "Did you mean `Food/Dairy`?"),
        ({"brand": "farm"}, 404, "unknown_name", "Did you mean `Farm`?"),
        ({"category": "food//x"}, 422, "bad_question", "Use a path such as `Food/Dairy`."),
        ({"category": " "}, 422, "bad_question", "Use a path such as `Food/Dairy`."),
        ({"sku": "1,,2"}, 422, "bad_question", "Separate ids by one comma each"),
        ({"category": "a/b/c/d/e/f/g"}, 404, "unknown_name", "Use one of: `Drugs`, "),
        ({"by": "category:7"}, 404, "unknown_name", "Did you mean `category:6`?"),
        ({"by": "weekday"}, 404, "unknown_name", "Time is split by `grain`: use `grain=weekday`."),
        ({"by": "categroy"}, 404, "unknown_name", "Did you mean `category`?"),
        ({"by": "category", "attributes": "as_them"}, 422, "bad_question", "Did you mean `as_then`?"),
        ({"grain": "weekdays"}, 422, "bad_question", "Did you mean `weekday`?"),
        ({"sort": "-values"}, 422, "bad_question", "Did you mean `-value`?"),
        ({"hours": "opened"}, 422, "bad_question", "Did you mean `open`?"),
        ({"compare": "previous_weak"}, 404, "unknown_name", "Did you mean `previous_week`?"),
    ],
)
def test_a_wrong_name_is_refused_with_the_right_one(
    asking: Asking, said: dict[str, Any], status: int, code: str, do: str
) -> None:
    problem = asking.refusal(NET, **DAY | said)

    assert (problem["status"], problem["code"]) == (status, code)
    assert problem["detail"].startswith(do)


def test_what_is_not_counted_by_sku_has_no_products_and_says_what_has(asking: Asking) -> None:
    for said, code in (
        ({"by": "category"}, "unknown_name"),
        ({"by": "sku"}, "unknown_name"),
        ({"brand": "Farm"}, "bad_question"),
        ({"sku": "1"}, "bad_question"),
    ):
        problem = asking.refusal("/v1/metrics/net_sales", **DAY, **said)

        assert problem["code"] == code
        assert "`sku_net_sales`" in problem["detail"]


def test_without_a_product_master_everything_is_null_and_no_category_is_known() -> None:
    asking = Asking(sold(Store(id="1", timezone="UTC")))

    assert values(asking.body(NET, **DAY, by="category"), "category") == {None: 1.35}
    problem = asking.refusal(NET, **DAY, category="Food")
    assert (problem["code"], problem["detail"]) == ("unknown_name", "Load products with `galatea products load`.")


def test_a_tag_changes_with_the_products_where_the_answer_reads_them(asking: Asking) -> None:
    questions = [
        (NET, {"by": "category"}, 200),
        (NET, {"by": "sku"}, 200),
        (NET, {"category": "Food"}, 200),
        (NET, {}, 304),
        (NET, {"sku": "1"}, 304),
        ("/v1/metrics/net_sales", {}, 304),
    ]
    tags = [asking.response(path, **DAY, **said).headers["etag"] for path, said, _ in questions]

    load(asking, FILE.replace("Drugs", "Food/Soap"))

    for (path, said, status), tag in zip(questions, tags, strict=True):
        assert asking.response(path, **DAY, **said, known=tag).status_code == status, (path, said)
    assert values(asking.body(NET, **DAY, by="category"), "category") == {"Food": 1.27, None: 0.08}


@pytest.mark.parametrize("at_once", [1, 2, LABELLED_AT_ONCE])
def test_a_sku_that_the_product_master_lacks_has_the_title_of_receipts(
    asking: Asking, at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []
    labels = AnswerProducts.labels

    async def noting(products: AnswerProducts, tenants: Any, skus: Collection[str], day: date) -> Any:
        asked.append(len(skus))
        return await labels(products, tenants, skus, day)

    monkeypatch.setattr(AnswerProducts, "labels", noting)
    monkeypatch.setattr(answer_module, "LABELLED_AT_ONCE", at_once)
    for by in ("sku", "total,sku"):
        series = asking.body(NET, **DAY, by=by, sku="3,4,9")["series"]
        said = [(each["title"], each.get("title_from"), each["category"]) for each in series]
        assert said == [
            ("Bread", None, "Food/Bread"),
            ("4 of default", "receipts", None),
            ("9 of default", "receipts", None),
        ]
    assert max(asked) == min(at_once, 3)
    current = asking.body(NET, **DAY, by="sku", sku="4", attributes="current")["series"][0]
    assert (current["title"], current.get("title_from")) == ("Cheese", None)


def test_without_a_product_master_every_title_is_that_of_receipts() -> None:
    asking = Asking(sold(Store(id="1", timezone="UTC"), Store(id="2", timezone="UTC")))

    series = asking.body(NET, **DAY, by="total,sku", top=2)["series"]

    assert [each.get("title") for each in series] == ["1 of default", "2 of default", None]
    assert [each.get("title_from") for each in series] == ["receipts", "receipts", None]


def test_the_last_title_counts_and_not_the_last_delivery() -> None:
    world = World(Store(id="1", timezone="UTC"))
    titles = [
        ("12:00", "old"),
        ("12:31", "Same window"),
        ("12:40", "same window"),
        ("12:44", "Same"),
        ("12:10", "late"),
    ]
    for number, (at, title) in enumerate(titles):
        line = {"title": title, "price": 1, "amount": 1, "sku": "1"}
        world.receive(receipt(f"2026-03-27T{at}:00Z", [line], number=number), f"2026-03-27T13:00:0{number}Z")
    nameless: list[dict[str, object]] = [{"title": "", "price": 1, "amount": 1, "sku": sku} for sku in ("1", "2")]
    world.receive(receipt("2026-03-27T13:00:00Z", nameless, number=9), "2026-03-27T13:00:09Z")

    series = Asking(world).body(NET, **DAY, by="sku")["series"]

    assert [(each["title"], each.get("title_from")) for each in series] == [("same window", "receipts"), (None, None)]


def test_a_new_title_reaches_a_body_that_was_remembered() -> None:
    world = sold(Store(id="1", timezone="UTC"))
    asking = Asking(world)
    first = asking.response(NET, **DAY, by="sku", sku="1")
    line = {"title": "renamed", "price": 1, "amount": 1, "sku": "1"}
    world.receive(receipt("2026-03-30T00:00:00Z", [line], number=99), "2026-03-30T00:00:01Z")

    again = asking.response(NET, **DAY, by="sku", sku="1", known=first.headers["etag"])

    assert again.status_code == 200
    assert [first.json()["series"][0]["title"], again.json()["series"][0]["title"]] == ["1 of default", "renamed"]


def test_a_tenant_never_sees_the_products_of_another() -> None:
    asking = Asking(sold(Store(id="1", timezone="UTC"), Store(id="2", timezone="UTC", tenant="acme")))
    load(asking)
    key = asking.keys.make("acme")

    assert values(asking.body(NET, **DAY, by="category", key=key), "category") == {None: 1.35}
    titles = [each["title"] for each in asking.body(NET, **DAY, by="sku", key=key)["series"]]
    assert titles == [f"{sku} of acme" for sku in SOLD]
    problem = asking.refusal(NET, **DAY, category="Food", key=key)
    assert "Food/" not in problem["detail"] + problem["title"]
    tag = asking.response(NET, **DAY, by="category", key=key).headers["etag"]
    load(asking, FILE.replace("Drugs", "Food/Soap"))
    assert asking.response(NET, **DAY, by="category", key=key, known=tag).status_code == 304


def test_each_store_of_an_answer_has_the_products_of_its_own_tenant() -> None:
    asking = Asking(sold(Store(id="1", timezone="UTC"), Store(id="2", timezone="UTC", tenant="acme")))
    load(asking)
    load(asking, "sku,title,category\n1,Milk,Drinks\n2,Soap,Drugs\n", "acme")

    body = asking.body(NET, **DAY, by="total,category", key=OPERATOR_KEY)
    skus = asking.body(NET, **DAY, by="total,sku", sku="1,2", key=OPERATOR_KEY)

    assert values(body, "category") == {"Food": 1.07, "Drugs": 0.4, "Drinks": 1.0, None: 0.23}
    titles = {each["dimensions"]["sku"]: each["title"] for each in skus["series"]}
    assert titles == {"1": None, "2": "Soap"}  # the tenants call SKU 1 differently
    seen = asking.body(NET, **DAY, by="total,sku", sku="3,9", key=OPERATOR_KEY)["series"]
    assert [(each["title"], each.get("title_from")) for each in seen] == [("Bread", None), (None, None)]


def test_products_are_columns_of_files(asking: Asking) -> None:
    response = asking.response(NET, **DAY, by="total,sku,category", sku="1,9", format="csv")

    rows = list(csv.DictReader(io.StringIO(response.text)))
    assert [(row["sku"], row["category"], row["sku_title"], row["sku_category"]) for row in rows] == [
        ("1", "Food", "Milk, fresh", "Food/Dairy/Milk"),
        ("9", "", "9 of default", ""),
    ]


def test_a_comparison_takes_the_category_of_the_earlier_day() -> None:
    world = World(Store(id="1", timezone="UTC"))
    for number, day in enumerate(("20", "27")):
        line = {"title": "thing", "price": 1 + number, "amount": 1, "sku": "1"}
        world.receive(receipt(f"2026-03-{day}T12:00:00Z", [line], number=number), f"2026-03-{day}T12:00:01Z")
    world.rebuild("2026-03-30T00:00:00Z")
    asking = Asking(world)
    load(asking, "sku,title,category,valid_from\n1,Milk,Food,\n1,Milk,Drinks,2026-03-25\n")

    def compared(**said: str) -> dict[str, tuple[float, float | None]]:
        body = asking.body(NET, **DAY, by="category", compare="previous_week", **said)
        return {
            series["dimensions"]["category"]: (series["points"][0]["value"], series["points"][0]["before"])
            for series in body["series"]
        }

    assert compared() == {"Drinks": (2.0, 0.0), "Food": (0.0, 1.0)}
    assert compared(attributes="current") == {"Drinks": (2.0, 1.0)}


def test_followers_get_a_new_answer_when_products_are_loaded(asking: Asking) -> None:
    question = {"from": "2026-03-27", "to": "2026-03-28", "grain": "total", "by": ["category"]}
    request = MetricQuery.model_validate(question).to_request("sku_net_sales")

    async def follow() -> list[dict[str | None, float]]:
        async with Live(asking.answers).follow(request, OPERATOR) as follower:
            events = follower.events(None)
            first = await anext(events)
            load(asking, FILE.replace("Drugs", "Food/Soap"))
            second = await asyncio.wait_for(anext(events), 60)
            return [values(orjson.loads(event.data), "category") for event in (first, second)]

    before, after = asyncio.run(follow())
    assert (before["Drugs"], after) == (0.2, {"Food": 1.27, None: 0.08})


def test_weekdays_add_up_all_business_days_of_their_name() -> None:
    world = World(Store(id="1", timezone="Europe/Bratislava", day_starts_at="04:00"))
    for number, at in enumerate(("2026-03-02T12:00", "2026-03-09T12:00", "2026-03-10T02:30", "2026-03-10T12:00")):
        world.receive(receipt(f"{at}:00+01:00", minor=100, number=number), f"{at}:01+01:00")
    world.rebuild("2026-03-30T00:00:00Z")
    asking = Asking(world)
    query = {"from_": "2026-03-02", "to": "2026-03-12", "grain": "weekday"}

    alone = asking.body("/v1/metrics/net_sales", **query)
    total = asking.body("/v1/metrics/net_sales", **query, by="total", compare="previous_week")

    points = alone["series"][0]["points"]
    assert [(point["weekday"], point["value"], point["days_present"]) for point in points] == [
        (1, 3.0, 2),
        (2, 1.0, 2),
        (3, 0.0, 2),
        *((number, 0.0, 1) for number in (4, 5, 6, 7)),
    ]
    assert [point["value"] for point in total["series"][0]["points"]] == [point["value"] for point in points]
    assert [point["weekday"] for point in total["series"][0]["points"]] == [1, 2, 3, 4, 5, 6, 7]
    rows = list(csv.DictReader(io.StringIO(asking.response("/v1/metrics/net_sales", **query, format="csv").text)))
    assert [rows[0][name] for name in ("weekday", "days_present", "value")] == ["1", "2", "3.00"]
