"""The tables that are lists hold what the routes of REST list: nothing more, nothing less, nothing changed."""

import io
import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pytest

from master_dataset.registry.products import ProductSpool
from master_dataset.registry.products_file import read_stream
from master_dataset.registry.stores import GroupVersion, Store, currency
from serving_layer.admin.ledger import Ledger
from serving_layer.keys.key import Caller
from serving_layer.sql import list_tables, table
from serving_layer.sql.session import SqlLimits
from tests.support import World, receipt
from tests.support.world import at
from tests.support.world_api import OPERATOR_KEY
from tests.support.world_sql import AskingSql

FRIDAY, SATURDAY = date(2026, 11, 20), date(2026, 11, 21)
DAYS = [f"2026-11-{day}" for day in range(17, 25)]
WINDOW = 1795168800  # 2026-11-20T10:00:00Z
PRODUCTS: Sequence[Mapping[str, str]] = [
    {"sku": "1", "title": "Milk", "category": "Food/Dairy/Milk", "brand": "Cow", "gtin": "4006381333931"},
    {"sku": "1", "title": "Fresh milk", "category": "Food/Dairy", "valid_from": "2026-11-20"},
    {"sku": "1", "title": "Oat drink", "valid_from": "2026-11-22"},
    {"sku": "2", "title": "Tea", "category": "Drinks", "valid_from": "2026-11-01"},
    *({"sku": f"of {number}", "title": f"Thing {number}"} for number in range(7)),
]


def stores() -> Sequence[Store]:
    """Two stores of one tenant that differ in everything, and one of another tenant."""
    groups = (
        GroupVersion(None, {"region": "north", "format": "city"}),
        GroupVersion(date(2026, 11, 20), {"region": "south"}),
        GroupVersion(date(2026, 12, 1), {"region": "south", "format": "mall"}),
    )
    return [
        Store(id="1", timezone="Europe/Bratislava", groups=groups),
        Store(
            id="2",
            timezone="America/New_York",
            name="Two",
            currency=currency("USD"),
            country="US",
            subdivision="US-NY",
            floor_m2=Decimal("120.5"),
            open_since=date(2020, 1, 2),
            comp_start_date=date(2021, 2, 1),
            conversion_target=Decimal("12.5"),
            day_starts_at="04:00",
            week_starts_on="sun",
            opening_hours={"mon": ("08:00-12:00", "13:00-20:00"), "sat": ("20:00-02:00",)},
        ),
        Store(id="9", timezone="UTC", tenant="another", groups=(GroupVersion(None, {"region": "west"}),)),
    ]


def corrected(number: int, **said: object) -> dict[str, object]:
    """A line of a ledger."""
    row = {"window": WINDOW + 900 * number, "dimensions": {"currency": "EUR"}, "state": "gross_sales", "shown": number}
    row |= {"corrected": number + 5, "difference": 5, "cause": "waited", "events": [], "events_total": number}
    return row | said


def history() -> World:
    """Receipts of four days, some late and some twice; publications of which one was collected and one restored."""
    world = World(*stores())
    arrivals: list[tuple[str, bytes]] = []
    for number in range(12):
        happened = f"2026-11-{20 + number // 4}T0{number % 4 + 6}:10:00Z"
        store = "129"[number % 3]
        value = receipt(happened, minor=100 + number, number=number, store=store, till=f"t{number % 2}")
        arrivals += [(happened, value)] * (2 if number == 5 else 1)
    waits = receipt("2026-11-18T09:00:00Z", minor=900, number=90, store="1")
    arrivals.append(("2026-11-22T12:00:00Z", waits))  # more than 23 hours late, on a day without other events
    for stamp, value in sorted(arrivals):
        world.receive(value, stamp)
    for cut in ("2026-11-20T10:00:00Z", "2026-11-21T10:00:00Z", "2026-11-22T08:00:00Z"):
        world.rebuild(cut)
    world.restore(2)
    world.collect(1)
    totals = {"cells": 6, "rows": 6, "causes": {"waited": {"cells": 5}, "unexplained": {"cells": 1}}}
    for number, run in ((2, "run-2"), (4, "run-4")):
        world.ledgers[str(number)] = Ledger(str(number), run, number - 1, at("2026-11-22T10:01:00Z"), totals)
    world.corrections["run-2", "sales"] = {
        ("1", FRIDAY): json.dumps([corrected(0, shown=None), corrected(1, corrected=None, cause="unexplained")]),
        ("2", FRIDAY): json.dumps([corrected(2, dimensions={"currency": None})]),
        ("9", FRIDAY): json.dumps([corrected(3)]),
    }
    world.corrections["run-2", "wifi_visits"] = {("1", SATURDAY): json.dumps([corrected(4, dimensions={})])}
    world.corrections["run-4", "sales_by_till"] = {("1", FRIDAY): json.dumps([corrected(5)])}
    world.pass_time("2026-11-23T10:00:00Z")
    return world


@pytest.fixture(scope="module")
def asking() -> Iterator[AskingSql]:
    with AskingSql(history()) as sql:
        for tenant, rows in (("default", PRODUCTS), ("another", [{"sku": "1", "title": "Wool"}])):
            with ProductSpool() as spool:
                read_stream(io.BytesIO("\n".join(map(json.dumps, rows)).encode()), spool)
                sql.rest.products.load(tenant, spool, replace=True)
        tables = sql.rest.alert_tables
        tables.raised("2026-11-19T10:00:00Z", store="2", baseline=Decimal("0.1"), late=True)
        over = tables.raised("2026-11-20T10:00:00Z", rule="limit", dimensions={"queue": "Q1"})
        tables.followed(over, "resolved", "2026-11-20T11:00:00Z")
        wrong = tables.raised("2026-11-20T10:00:00.500Z", value=None, publication=2)
        tables.followed(wrong, "retracted", "2026-11-21T01:00:00Z", reason="waited")
        tables.raised("2026-11-21T09:00:00Z", store="9", tenant="another")
        yield sql


@pytest.fixture(params=[500, 2])
def sql(asking: AskingSql, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> AskingSql:
    """With pages that hold everything, and with small ones."""
    monkeypatch.setattr(list_tables, "PAGE", request.param)
    return asking


def rows(sql: AskingSql, statement: str) -> list[dict[str, Any]]:
    """The rows of a statement by the names of their columns."""
    answer = sql.answer(statement)
    return [dict(zip([each.name for each in answer.columns or ()], row, strict=True)) for row in answer.rows]


def listed(sql: AskingSql, path: str, name: str, **arguments: object) -> list[dict[str, Any]]:
    """All pages of a route, read by an operator who sees the default tenant first."""
    found, page = list[dict[str, Any]](), sql.rest.body(path, key=OPERATOR_KEY, limit=3, **arguments)
    found += page[name]
    while page["next"] is not None:
        following = {"before" if path == "/v1/publications" else "after": page["next"]}
        page = sql.rest.body(path, key=OPERATOR_KEY, limit=3, **arguments, **following)
        found += page[name]
    return found


def instant(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)


def day(text: str | None) -> date | None:
    return None if text is None else date.fromisoformat(text)


def test_receipts_are_all_that_arrived_also_those_that_wait_for_the_next_publication(sql: AskingSql) -> None:
    of_rest = [
        {
            "store": store,
            "happened_at": instant(each["happened_at"]),
            "received_at": instant(each["received_at"]),
            "till": each["vendor_fiscal_module"],
            "transaction_id": each["transaction_id"],
            "receipt": each["receipt"],
        }
        for store in ("1", "2")
        for of_day in DAYS
        for each in listed(sql, "/v1/raw/pos_transactions", "receipts", store=store, day=of_day)
    ]

    found = rows(sql, "select * from receipts order by store, happened_at::date, happened_at desc")

    assert [{**each, "receipt": json.loads(each["receipt"])} for each in found] == of_rest
    assert len(of_rest) == 9


def test_receipts_that_are_large_together_are_refused_unless_their_texts_are_left_out(
    sql: AskingSql, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table, "MOST_TEXT_BYTES", 2_000)

    refused = sql.refusal("select length(receipt) from receipts")

    assert (refused.code, "of texts of `receipts`" in refused.message) == ("53200", True)
    assert "happened_at" in str(refused.hint)
    assert len(sql.rows("select store, till from receipts")) == 9


def test_products_have_a_row_for_each_version_which_ends_where_the_next_one_begins(sql: AskingSql) -> None:
    of_rest = listed(sql, "/v1/products", "products", tenant="default")

    found = rows(sql, "select * from products")

    key = lambda row: (row["sku"], str(row["valid_from"] or ""))  # noqa: E731 - of two lists
    for row, said in zip(sorted(found, key=key), sorted(of_rest, key=key), strict=True):
        assert row["department"] == (said["category"] or "").split("/")[0] or row["department"] is None
        same = {name: row[name] for name in ("sku", "title", "brand", "category", "gtin", "valid_from")}
        assert same == {**said, "valid_from": day(said["valid_from"])}
    assert rows(sql, "select title, department, valid_to from products where sku = '1' order by valid_to") == [
        {"title": "Milk", "department": "Food", "valid_to": date(2026, 11, 20)},
        {"title": "Fresh milk", "department": "Food", "valid_to": date(2026, 11, 22)},
        {"title": "Oat drink", "department": None, "valid_to": None},
    ]
    assert len(found) == len(PRODUCTS)


def test_stores_are_what_is_registered(sql: AskingSql) -> None:
    found = rows(sql, "select * from stores order by store")

    for row, said in zip(found, sql.rest.body("/v1/stores")["stores"][:2], strict=True):
        assert json.loads(row.pop("opening_hours")) == said["opening_hours"]
        assert row == {
            "store": said["id"],
            "name": said["name"] or None,
            "open_since": day(said["open_since"]),
            "comp_start_date": day(said["comp_start_date"]),
            **{name: said[name] for name in row if name not in ("store", "name", "open_since", "comp_start_date")},
        }


def test_store_attributes_have_a_row_for_each_group_of_each_version(sql: AskingSql) -> None:
    of_rest = [
        (store["id"], name, value, day(version["valid_from"]), day(end))
        for store in sql.rest.body("/v1/stores")["stores"][:2]
        for version, end in zip(
            store["group_versions"],
            [*(each["valid_from"] for each in store["group_versions"][1:]), None],
            strict=bool(store["group_versions"]),
        )
        for name, value in version["groups"].items()
    ]

    found = sql.rows("select store, name, value, valid_from, valid_to from store_attributes")

    assert sorted(found, key=str) == sorted(of_rest, key=str)
    assert len(found) == 5
    assert sql.rows("select value from store_attributes where name = 'format' and valid_to is null") == [("mall",)]


def test_publications_are_the_history_up_to_the_newest(sql: AskingSql) -> None:
    of_rest = [
        {
            "publication": each["publication"],
            "cut": instant(each["cut"]),
            "published_at": instant(each["published_at"]),
            "published_by": each["by"],
            "reason": each["why"],
            "collected": each["collected"],
            "restores": each["restores"],
        }
        for each in listed(sql, "/v1/publications", "publications")
    ]

    operator = sql.sessions.open(Caller("an operator", None, frozenset({"read", "operate"})))
    for_readers = [each | {"published_by": None, "reason": None} for each in of_rest]
    everything = "select * from publications order by publication desc"

    assert rows(sql, everything) == for_readers
    assert sql.rows(everything, session=operator) == [tuple(each.values()) for each in of_rest]
    assert [each["publication"] for each in of_rest if each["collected"] or each["restores"]] == [4, 1]
    assert rows(sql, "select * from publications where publication = 2") == [for_readers[2]]


@pytest.mark.parametrize(
    ("where", "arguments"),
    [
        ("true", {}),
        ("publication = 2", {"publication": 2}),
        ("view = 'sales'", {"view": "sales"}),
        ("store = '1' and publication in (2, 3)", {"store": "1", "publication": 2}),
        ("view in ('wifi_visits', 'sales_by_till') and store = '1'", {"store": "1"}),
        ("cause = 'unexplained'", {"cause": "unexplained"}),
    ],
)
def test_corrections_are_the_ledgers_of_all_publications_for_the_stores_of_the_tenant(
    sql: AskingSql, where: str, arguments: Mapping[str, object]
) -> None:
    numbers = [arguments["publication"]] if "publication" in arguments else [4, 3, 2, 1]
    asked = {name: value for name, value in arguments.items() if name != "publication"}
    of_rest = [
        {
            "publication": number,
            "view": each["view"],
            "store": each["store"],
            "start": instant(each["window"]),
            "dimensions": each["dimensions"],
            "state": each["state"],
            "shown": None if each["shown"] is None else str(each["shown"]),
            "corrected": None if each["corrected"] is None else str(each["corrected"]),
            "cause": each["cause"],
            "events_total": each["events_total"],
        }
        for number in numbers
        for each in listed(sql, "/v1/corrections", "corrections", publication=number, **asked)
        if each["store"] != "9" and ("view in" not in where or each["view"] in ("wifi_visits", "sales_by_till"))
    ]

    found = rows(sql, f"select * from corrections where {where} order by publication desc, view, store, start")  # noqa: S608

    assert of_rest
    assert [{**each, "dimensions": json.loads(each["dimensions"])} for each in found] == of_rest


@pytest.mark.parametrize(
    ("where", "arguments"),
    [
        ("true", {}),
        ("store = '2'", {"store": "2"}),
        ("rule = 'limit'", {"rule": "limit"}),
        ("rule in ('limit', 'nobodys')", {"rule": "limit"}),
        ("state = 'retracted'", {"state": "retracted"}),
        ("raised_at >= '2026-11-20T10:00:00Z'", {"from_": "2026-11-20T10:00:00Z"}),
        ("raised_at < '2026-11-20T10:00:00.5Z'", {"to": "2026-11-20T10:00:00.5Z"}),
        ("raised_at <= '2026-11-20T10:00:00.5Z'", {"to": "2026-11-20T10:00:00.501Z"}),
        ("raised_at = '2026-11-20T10:00:00.5Z'", {"state": "retracted"}),
        ("raised_at::date = '2026-11-19'", {"to": "2026-11-20"}),
    ],
)
def test_alerts_are_those_of_the_tenant_with_what_followed(
    sql: AskingSql, where: str, arguments: Mapping[str, object]
) -> None:
    of_rest = listed(sql, "/v1/alerts", "alerts", tenant="default", **arguments)

    found = rows(sql, f"select * from alerts where {where} order by raised_at desc")  # noqa: S608

    assert of_rest
    for row, said in zip(found, of_rest, strict=True):
        expected = {name: instant(said[name]) if name.endswith("_at") else said[name] for name in row if name in said}
        expected |= {"window_start": instant(said["window"]["from"]), "window_end": instant(said["window"]["to"])}
        dimensions = json.loads(row.pop("dimensions"))
        numbers = {name: row.pop(name) for name in ("value", "threshold", "baseline")}
        assert dimensions == expected.pop("dimensions")
        assert {name: None if each is None else float(each) for name, each in numbers.items()} == {
            name: expected.pop(name) for name in numbers
        }
        assert row == expected


def test_an_alert_may_have_more_decimals_than_its_column() -> None:
    with AskingSql(World(*stores())) as sql:
        sql.rest.alert_tables.raised("2026-11-19T10:00:00Z", value=Decimal(1) / 2**20, baseline=Decimal(2) / 3)

        assert sql.rows("select value, baseline from alerts") == [
            (Decimal("0.000000953674316406"), Decimal("0.666666666666666667"))
        ]


def test_corrections_of_other_tenants_neither_fail_a_statement_nor_count_for_its_limit() -> None:
    world = history()
    gone = {"whole": "waited", "run": "gone", "events_total": 1}
    theirs = json.dumps([corrected(number) for number in range(10)])
    world.corrections["run-2", "sales"] |= {("9", FRIDAY): theirs, ("9", SATURDAY): json.dumps(gone)}

    with AskingSql(world, SqlLimits(source_rows=5)) as sql:
        [(count,)] = sql.rows("select count(*) from corrections")
        own = sql.refusal("select * from corrections", tenant="another")

    assert count == 5
    assert "were collected" in own.message
