"""An answer as a file says what the answer as JSON says: no digit less, and no formula more."""

import csv
import io
import json
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import httpx
import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from galatea.client.dataframes import FORMULA as FORMULA_OF_THE_CLIENT
from galatea.client.dataframes import without_formula as of_the_client
from master_dataset.registry.stores import Store, currency
from serving_layer.files.formats import FORMULA, as_csv, without_formula
from serving_layer.files.tables import PROVENANCE_COLUMNS, WEEK_LABELS, ColumnType, Table
from tests.support import World, receipt
from tests.support.world_api import OPERATOR_KEY, Asking
from views.registry import registered_views

NET = "/v1/metrics/net_sales"
CELLS = "/v1/views/sales/cells"
DAYS = {"store": "1", "from_": "2026-11-21", "to": "2026-11-23"}
TYPES = {
    "csv": "text/csv; charset=utf-8",
    "parquet": "application/vnd.apache.parquet",
    "arrow": "application/vnd.apache.arrow.stream",
}


@pytest.fixture
def asking() -> Asking:
    """6.18 that batch has, and 0.02 returned that only speed has; nothing on the next day."""
    world = World(Store(id="1", timezone="UTC", currency=currency("EUR")))
    world.receive(receipt("2026-11-21T09:00:00Z", minor=618), "2026-11-21T09:00:01Z")
    world.rebuild("2026-11-21T10:00:00Z")
    world.receive(receipt("2026-11-21T11:00:00Z", minor=-2, number=2), "2026-11-21T11:00:01Z")
    return Asking(world)


def lines(response: httpx.Response) -> list[dict[str, str]]:
    assert response.status_code == 200, response.text
    return list(csv.DictReader(io.StringIO(response.text, newline="")))


def table(response: httpx.Response) -> Any:
    assert response.status_code == 200, response.text
    if response.headers["content-type"] == TYPES["parquet"]:
        return pq.read_table(pa.BufferReader(response.content))
    return pa.ipc.open_stream(response.content).read_all()


def number(said: Any) -> float | None:
    """Of a cell of any form; None of a list, which another test looks at."""
    return None if said in (None, "") or isinstance(said, list) or str(said).startswith("[") else float(said)


def about(found: Any) -> Mapping[str, Any]:
    in_json: Mapping[str, Any] = orjson.loads(found.schema.metadata[b"galatea"])
    return in_json


def test_csv_has_a_line_per_point_and_money_to_the_digit(asking: Asking) -> None:
    response = asking.response(NET, **DAYS | {"from_": "2026-11-20"}, format="csv")

    basis = "publication,cut,speed_as_of,waiting_for_batch,layers,missing"
    rests_on = "1,2026-11-21T10:00:00Z,2026-11-21T11:00:01Z,0,batch;speed,"
    assert response.text.splitlines() == [
        f"metric,store,start,date,value,final,flags,unit,currency,timezone,grain,{basis}",
        f"net_sales,1,2026-11-20T00:00:00Z,2026-11-20,0.00,true,,money,EUR,UTC,day,{rests_on}",
        f"net_sales,1,2026-11-21T00:00:00Z,2026-11-21,6.16,false,,money,EUR,UTC,day,{rests_on}",
        f"net_sales,1,2026-11-22T00:00:00Z,2026-11-22,,false,,money,EUR,UTC,day,{rests_on}",
    ]


@pytest.mark.parametrize("form", TYPES)
@pytest.mark.parametrize("path", [NET, CELLS])
def test_a_file_has_its_type_a_safe_name_and_what_it_rests_on(asking: Asking, path: str, form: str) -> None:
    in_json = asking.body(path, **DAYS)["as_of"]
    question = {"store": "1", "from_": "2026-11-21T00:00:00+00:00", "to": "2026-11-22"}

    headers = asking.response(path, **question, format=form).headers

    ending = {"csv": "csv", "parquet": "parquet", "arrow": "arrows"}[form]
    name = {NET: "net_sales", CELLS: "sales"}[path]
    assert headers["content-type"] == TYPES[form]
    assert headers["content-disposition"] == (
        f'attachment; filename="{name}_2026-11-21T00-00-00-00-00_2026-11-22.{ending}"'
    )
    assert orjson.loads(headers["galatea-as-of"]) == in_json


@pytest.mark.parametrize("form", ["parquet", "arrow"])
def test_columns_are_typed_and_sums_of_money_are_decimals(asking: Asking, form: str) -> None:
    found = table(asking.response(NET, **DAYS | {"from_": "2026-11-20"}, format=form))

    types = {name: found.schema.field(name).type for name in ("start", "value", "final", "publication", "flags")}
    assert types == {
        "start": pa.timestamp("ms", "UTC"),
        "value": pa.decimal128(38, 4),
        "final": pa.bool_(),
        "publication": pa.int64(),
        "flags": pa.string(),
    }
    assert found.column("value").to_pylist() == [Decimal("0.0000"), Decimal("6.1600"), None]


@pytest.mark.parametrize("form", ["parquet", "arrow"])
def test_the_schema_says_what_the_answer_says_beside_its_points(asking: Asking, form: str) -> None:
    question = DAYS | {"compare": "previous_week", "context": "weather", "comp": "true"}
    body = asking.body(NET, **question)

    found = about(table(asking.response(NET, **question, format=form)))

    for series in body["series"]:
        del series["points"]
    assert found == {"as_of": body["as_of"], "answers": [body]}


@pytest.mark.parametrize(
    ("metric", "kind", "value"),
    [
        ("total_transactions_count", pa.int64(), 2),
        ("avg_transaction_value", pa.float64(), 3.08),
        ("power_hours", pa.string(), None),
        ("net_sales,total_transactions_count", pa.decimal128(38, 4), Decimal("6.1600")),
        ("net_sales,avg_transaction_value", pa.decimal128(38, 18), Decimal("6.16")),
        ("net_sales,power_hours", pa.string(), "6.16"),
    ],
)
def test_the_type_of_values_follows_from_the_metrics_alone(
    asking: Asking, metric: str, kind: object, value: object
) -> None:
    question = {"store": "1", "from_": "2026-11-21", "to": "2026-11-22", "grain": "total"}

    found = table(asking.response(f"/v1/metrics/{metric}", **question, format="parquet")).column("value")

    assert (found.type, found.to_pylist()[0]) == (kind, value)


def test_a_comparison_and_the_labels_of_an_hour_are_columns(asking: Asking) -> None:
    compared = lines(asking.response(NET, **DAYS, compare="previous_week", format="csv"))
    by_hour = lines(asking.response(NET, **DAYS, grain="hour_of_week", format="csv"))

    first = compared[0]
    assert {name: first[name] for name in ("value", "before", "change", "change_points", "partial")} == {
        "value": "6.18",
        "before": "0.00",
        "change": "",
        "change_points": "",
        "partial": "true",
    }
    assert [{name: row[name] for name in WEEK_LABELS["hour_of_week"]} for row in by_hour if row["value"] == "6.18"] == [
        {"weekday": "6", "hour": "9", "hours_present": "1.0"}
    ]


def test_weekdays_are_columns_and_have_no_date(asking: Asking) -> None:
    [row, *_] = lines(asking.response(NET, **DAYS, grain="weekday", format="csv"))

    assert [row[name] for name in WEEK_LABELS["weekday"]] == ["6", "1"]
    assert "date" not in row


def test_a_sku_is_beside_what_the_product_master_says_of_it(asking: Asking) -> None:
    headers = {"content-type": "text/csv", "authorization": f"Bearer {OPERATOR_KEY}"}
    asking.request("POST", "/v1/products", headers=headers, content=b"sku,title,category\n1,Whole milk,Food/Dairy\n")

    rows = lines(asking.response("/v1/metrics/sku_attach_rate", **DAYS, by="sku", grain="total", format="csv"))

    assert [(row["sku"], row["sku_title"], row["sku_category"]) for row in rows] == [("1", "Whole milk", "Food/Dairy")]
    assert list(rows[0])[:6] == ["metric", "store", "sku", "sku_title", "sku_category", "start"]


def test_a_split_is_a_column_and_currency_is_one_column_only(asking: Asking) -> None:
    [first, *_] = lines(asking.response(NET, **DAYS, by="currency", format="csv"))

    assert list(first)[:4] == ["metric", "store", "currency", "start"]
    assert (list(first).count("currency"), first["currency"]) == (1, "EUR")


def test_cells_are_rows_with_the_states_of_each_layer_side_by_side(asking: Asking) -> None:
    cells = asking.body(CELLS, **DAYS)["cells"]
    layers = [(each["batch"] or {}, each["speed"] or {}, each["merged"]) for each in cells]
    expected = [tuple(states.get("gross_sales") for states in of) for of in layers]
    names = [f"{layer}_gross_sales" for layer in ("batch", "speed", "merged")]

    found = table(asking.response(CELLS, **DAYS, format="parquet"))
    rows = lines(asking.response(CELLS, **DAYS, format="csv"))

    assert expected == [(618, None, 618), (None, -2, -2)]
    assert [tuple(row[name] for name in names) for row in found.to_pylist()] == expected
    assert [tuple(row[name] for name in names) for row in rows] == [("618", "", "618"), ("", "-2", "-2")]
    assert about(found) == {"view": "sales", "as_of": asking.body(CELLS, **DAYS)["as_of"]}


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_every_metric_says_in_a_file_what_it_says_as_json(asking: Asking, form: str) -> None:
    for metric in asking.body("/v1/metrics")["metrics"]:
        path, grains = f"/v1/metrics/{metric['metric']}", metric["grains"] or ["day"]
        question = DAYS | {"compare": "previous_week", "grain": grains[0], "by": metric["needs_by"]}
        body = json.loads(asking.response(path, **question).content, parse_float=Decimal, parse_int=Decimal)
        in_json = [point for series in body["series"] for point in series["points"]]

        response = asking.response(path, **question, format=form)

        rows = lines(response) if form == "csv" else table(response).to_pylist()
        for name in ("value", "before", "change"):
            assert [number(row[name]) for row in rows] == [number(point[name]) for point in in_json], metric["metric"]


def test_no_dimension_is_called_like_a_column_of_the_answer(asking: Asking) -> None:
    dimensions = {name for view in registered_views() for name in view.dimensions}
    question = DAYS | {"compare": "previous_week", "grain": "hour_of_week"}

    of_metrics = table(asking.response(NET, **question, format="arrow")).column_names

    assert dimensions & set(of_metrics) == {"currency"}
    assert dimensions & {"view", "store", "window", *PROVENANCE_COLUMNS} == set()


def test_an_answer_without_rows_is_a_file_with_names_alone(asking: Asking) -> None:
    none = {"store": "1", "from_": "2026-11-01", "to": "2026-11-02"}

    assert lines(asking.response(CELLS, **none, format="csv")) == []
    assert table(asking.response(CELLS, **none, format="arrow")).num_rows == 0
    assert table(asking.response(NET, **none, by="currency", format="parquet")).num_rows == 0


@pytest.mark.parametrize("sign", ["=", "+", "-", "@", "\t", "\r", "\n"])
def test_a_text_that_begins_like_a_formula_is_no_formula_in_csv(sign: str) -> None:
    made = Table({"sku": ColumnType.TEXT, "value": ColumnType.MONEY}, [(f"{sign}1+1", Decimal("-5.00"))], {})

    [_, row] = list(csv.reader(io.StringIO(as_csv(made).decode(), newline="")))

    assert row == [f"'{sign}1+1", "-5.00"]


SPREAD = [
    ("x;=WEBSERVICE(CHAR(104)&A2)", "x;'=WEBSERVICE(CHAR(104)&A2)"),
    ("=A1;=B1", "'=A1;'=B1"),
    ("a\t+1|\u00a0-2; \uff20x", "a\t'+1|\u00a0'-2; '\uff20x"),
    ("x\n=1\r\n=2", "x\n'=1\r\n'=2"),
    ('x;"=1;y', "x;\"'=1;y"),  # the quote is doubled in the file: an empty text, which goes on as a formula
    ("\n=1", "'\n'=1"),
    (" \u00a0=1", "' \u00a0=1"),
    ("\uff1d1", "'\uff1d1"),
    ("a=1,-2 b;c|d\te\nf;", "a=1,-2 b;c|d\te\nf;"),
    ("", ""),
]
"""Texts, and how they stand in a file of CSV."""


@pytest.mark.parametrize(("text", "written"), SPREAD)
def test_no_part_of_a_text_that_a_spreadsheet_splits_is_a_formula(text: str, written: str) -> None:
    made = Table({"sku": ColumnType.TEXT, "value": ColumnType.WHOLE}, [(text, -5)], {})

    [_, row] = list(csv.reader(io.StringIO(as_csv(made).decode(), newline="")))

    assert row == [written, "-5"]
    assert of_the_client(text) == written
    assert without_formula(written) == written


def test_the_client_takes_the_same_texts_for_formulas_as_the_api() -> None:
    assert FORMULA_OF_THE_CLIENT == FORMULA


def test_what_a_till_sent_as_a_number_of_an_item_is_no_formula_in_a_file() -> None:
    world = World()
    line = {"title": "thing", "price": 1, "amount": 1, "sku": '=HYPERLINK("http://galatea.example")'}
    world.receive(receipt("2026-11-21T09:00:00Z", [line]), "2026-11-21T09:00:01Z")
    asking = Asking(world)

    [row] = lines(asking.response("/v1/views/sales_by_sku/cells", **DAYS, format="csv"))

    assert row["sku"] == '\'=HYPERLINK("http://galatea.example")'


@pytest.mark.parametrize("form", TYPES)
@pytest.mark.parametrize("view", registered_views(), ids=lambda view: view.name)
def test_the_cells_of_every_view_can_be_written_in_every_form(asking: Asking, view: Any, form: str) -> None:
    response = asking.response(f"/v1/views/{view.name}/cells", **DAYS, format=form)

    names = list(table(response).column_names) if form != "csv" else next(csv.reader([response.text.splitlines()[0]]))
    assert len(names) == len(set(names))
    assert {"view", "store", "window", "publication", *view.dimensions} <= set(names)
