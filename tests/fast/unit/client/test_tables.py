"""Answers as rows, frames and files: one row per point, exact money, and what it rests on beside it."""

import io
import subprocess
import sys
from decimal import Decimal
from pathlib import Path

import msgspec
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from galatea.client.answers import Answer, Answers
from galatea.client.connection import decoder
from tests.fast.house.tree import ROOT
from tests.support import World, receipt
from tests.support.world_api import Asking
from tests.support.world_clients import client

AS_OF = {
    "publication": 3,
    "cut": "2026-11-18T00:00:00Z",
    "speed_as_of": "2026-11-18T10:07:10.250Z",
    "layers": ["batch"],
}


def answer(unit: str, *values: str, **more: object) -> Answer:
    """Of one store, a day per value; a value as JSON."""
    points = [
        {"start": f"2026-11-{16 + day}T23:00:00Z", "value": msgspec.Raw(value.encode()), "final": True}
        for day, value in enumerate(values)
    ]
    series = [{"store": "=1", "timezone": "Europe/Bratislava", "dimensions": {}, "points": points}]
    body = {"metric": "m", "unit": unit, "grain": "day", "timezone": None, "series": series, "as_of": AS_OF}
    return decoder(Answer)(msgspec.json.encode(body | more))


@pytest.fixture
def sales() -> Answer:
    """Two days of one store."""
    world = World()
    world.receive(receipt("2026-11-17T10:07:00Z", minor=250), "2026-11-17T10:07:10Z")
    world.rebuild("2026-11-18T00:00Z")
    return client(Asking(world)).metric("net_sales", start="2026-11-17", end="2026-11-19", by="currency")


def test_a_row_is_a_point_with_what_it_rests_on(sales: Answer) -> None:
    first, second = sales.to_rows()

    assert [*first] == [
        "metric",
        "store",
        "currency",
        "start",
        "date",
        "value",
        "final",
        "flags",
        "unit",
        "timezone",
        "grain",
        "publication",
        "cut",
        "speed_as_of",
        "waiting_for_batch",
        "layers",
        "missing",
    ]
    assert (first["currency"], first["value"], first["final"]) == ("EUR", Decimal("2.50"), True)
    assert (second["final"], second["publication"], second["layers"], second["missing"]) == (
        False,
        1,
        "batch;speed",
        None,
    )


def test_a_comparison_has_columns_of_its_own() -> None:
    compared = answer("percent", "1.5", compare="previous_week", change_unit="percent", partial=True)

    assert {"before", "change", "change_points", "before_flags", "days_now", "days_before"} <= compared.to_rows()[
        0
    ].keys()


@pytest.mark.parametrize(
    ("unit", "values", "kind"),
    [
        ("money", ["9007199254740993.10", "null"], pa.decimal128(38, 4)),
        ("money", ["12.333333333333334"], pa.decimal128(38, 18)),
        ("n", ["3", "null"], pa.int64()),
        ("percent", ["24.5", "null", "1e-7"], pa.float64()),
        ("list", ['[{"weekday": 5, "share": 25.0}]', "null"], pa.string()),
        ("money", [], pa.decimal128(38, 4)),
    ],
)
def test_a_column_of_arrow_holds_values_as_the_api_wrote_them(unit: str, values: list[str], kind: pa.DataType) -> None:
    answered = answer(unit, *values)

    table = answered.to_arrow()

    assert table.schema.field("value").type == kind
    assert table.schema.field("start").type == pa.timestamp("us", "UTC")
    found = [row["value"] for row in answered.to_rows()]
    expected = [float(str(cell)) if unit == "percent" and cell else cell for cell in found]
    assert table.column("value").to_pylist() == expected


def test_money_stays_exact_in_pandas() -> None:
    frame = answer("money", "9007199254740993.10", "0.20", "null").to_pandas()

    assert isinstance(frame["value"].dtype, pd.ArrowDtype)
    assert frame["value"].sum() == Decimal("9007199254740993.30")
    assert str(frame["start"].dtype) == "datetime64[us, UTC]"
    assert frame["value"].isna().tolist() == [False, False, True]


def test_counts_stay_whole_in_pandas_where_one_is_missing() -> None:
    frame = answer("n", "9007199254740993", "null").to_pandas()

    assert frame["value"].dtype == pd.Int64Dtype()
    assert frame["value"].sum() == 9007199254740993


def test_a_list_of_items_is_the_text_that_the_api_wrote() -> None:
    bins = '[{"from":0,"to":5,"count":3,"share":75.0},{"from":5,"to":null,"count":1,"share":25.0}]'
    hours = '[{"weekday":5,"hour":9,"count":2,"share":100.0}]'

    assert [row["value"] for row in answer("list", bins, hours).to_rows()] == [bins, hours]


def test_a_part_of_an_answer_is_an_object() -> None:
    value = answer("list", '[{"from":5,"to":null,"count":1,"share":25.0}]').points[0].value

    assert isinstance(value, tuple)
    [item] = value
    assert (item.start, item.end, item.count) == (5, None, 1)


def test_money_stays_exact_in_polars() -> None:
    frame = answer("money", "9007199254740993.10", "0.20", "null").to_polars()

    assert frame.schema["value"] == pl.Decimal(38, 4)
    assert frame["value"].sum() == Decimal("9007199254740993.3000")
    assert frame["start"].dtype == pl.Datetime("us", "UTC")


def test_a_table_without_rows_has_its_columns() -> None:
    frame = answer("money").to_pandas()

    assert (len(frame), "value" in frame.columns) == (0, True)


def test_several_metrics_stand_one_below_the_other_and_money_is_no_double() -> None:
    both = Answers(answers=(answer("money", "0.10"), answer("percent", "24.5")), as_of=answer("n").as_of)

    table = both.to_arrow()

    assert table.column("unit").to_pylist() == ["money", "percent"]
    assert table.column("value").to_pylist() == [Decimal("0.1"), Decimal("24.5")]


def test_a_csv_file_has_every_digit_and_no_formula(tmp_path: Path) -> None:
    answered = answer("money", "1E+3", "-2.50", "null")
    file = tmp_path / "sales.csv"

    answered.to_csv(file)

    written = io.StringIO()
    answered.to_csv(written)
    names, *lines = written.getvalue().splitlines()
    assert names.startswith("metric,store,start,date,value,final,flags,unit,currency")
    assert [line.split(",")[:5] for line in lines] == [
        ["m", "'=1", "2026-11-16T23:00:00Z", "", "1000"],
        ["m", "'=1", "2026-11-17T23:00:00Z", "", "-2.50"],
        ["m", "'=1", "2026-11-18T23:00:00Z", "", ""],
    ]
    assert file.read_bytes().decode() == written.getvalue()


def test_a_file_of_the_client_is_the_file_of_the_api() -> None:
    world = World()
    for day, minor in ((10, 100), (17, 250)):
        world.receive(receipt(f"2026-11-{day}T10:07:00Z", minor=minor), f"2026-11-{day}T10:07:10Z")
    world.rebuild("2026-11-18T00:00Z")
    asking, written = Asking(world), io.StringIO()
    answered = {"compare": "previous_week", "by": "currency"}

    client(asking).metric("net_sales", start="2026-11-17", end="2026-11-19", **answered).to_csv(written)  # type: ignore[arg-type]

    path = "/v1/metrics/net_sales"
    of_the_api = asking.response(path, from_="2026-11-17", to="2026-11-19", format="csv", **answered)
    assert written.getvalue() == of_the_api.text


ABSENT = """
import importlib.abc, sys
class Absent(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {"pandas", "polars", "pyarrow"}:
            raise ModuleNotFoundError(name, name=name)
sys.meta_path.insert(0, Absent())
from galatea.client.answers import Answers, AsOf
empty = Answers(answers=(), as_of=AsOf(publication=1, cut="2026-11-18T00:00:00Z"))
assert empty.to_rows() == []
for turn in (empty.to_arrow, empty.to_pandas, empty.to_polars):
    try:
        turn()
    except ImportError as error:
        print(error.name, error)
"""


def test_a_library_that_is_missing_is_named_with_what_to_install() -> None:
    printed = subprocess.run(
        [sys.executable, "-c", ABSENT], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout

    assert [line.split()[0] for line in printed.splitlines()] == ["pyarrow", "pandas", "polars"]
    assert "pip install pandas" in printed
