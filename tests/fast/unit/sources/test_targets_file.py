"""Files of targets: taken as they are, or refused by line and field."""

import io
from datetime import date
from pathlib import Path

import pytest

from master_dataset.errors import BadFileError
from master_dataset.registry import targets_file
from master_dataset.registry.targets import Targets, bucket_of, decode_block, encode_block
from master_dataset.registry.targets_file import read_stream, read_targets

STORES = {"1": 2, "a b": 0}
METRICS = {"net_sales": None, "traffic_in": 0, "labor_hours": 6}
CSV = """store,day,metric,value
1,2026-03-01,net_sales,1200.50
1,2026-03-02,labor_hours,-0.000001
1,2026-03-01,traffic_in,300
a b,2026-03-01,net_sales,1e3
"""
FOUND = {
    "1": {
        "net_sales": {date(2026, 3, 1): 1_200_500_000},
        "labor_hours": {date(2026, 3, 2): -1},
        "traffic_in": {date(2026, 3, 1): 300_000_000},
    },
    "a b": {"net_sales": {date(2026, 3, 1): 1_000_000_000}},
}
JSON = b"""{"store": 1, "day": "2026-03-01", "metric": "net_sales", "value": 1200.50}
{"store": "1", "day": "2026-03-02", "metric": "labor_hours", "value": "-0.000001"}

{"store": 1, "day": "2026-03-01", "metric": "traffic_in", "value": 300}
{"store": "a b", "day": "2026-03-01", "metric": "net_sales", "value": 1e3}
"""


def read(text: str | bytes) -> Targets:
    return read_stream(io.BytesIO(text.encode() if isinstance(text, str) else text), STORES, METRICS)


def test_csv_and_json_lines_say_the_same(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(CSV)

    assert read(CSV) == read(CSV.replace("\n", "\r\n")) == read(JSON) == FOUND
    assert read_targets(tmp_path / "t.csv", STORES, METRICS) == FOUND
    with pytest.raises(BadFileError, match="cannot be read"):
        read_targets(tmp_path / "none.csv", STORES, METRICS)


def test_a_block_holds_the_targets_of_a_store() -> None:
    assert decode_block(encode_block(FOUND["1"])) == FOUND["1"]
    assert {bucket_of(str(number)) for number in range(2000)} == set(range(64))


@pytest.mark.parametrize(
    ("line", "code", "message"),
    [
        ("2,2026-03-01,net_sales,1", "unknown_store", "`store` of line 2 is no store of the tenant: `2`"),
        (",2026-03-01,net_sales,1", "missing_field", "`store` of line 2 is missing"),
        ("1,2026-02-30,net_sales,1", "bad_time", "`day` of line 2 is no day: `2026-02-30`"),
        ("1,20260301,net_sales,1", "bad_time", "`day` of line 2"),
        ("1,2026-03-01,conversion_rate,1", "unknown_metric", "`metric` of line 2 cannot have targets"),
        ("1,2026-03-01,net_sales,many", "bad_number", "`value` of line 2 is no number: `many`"),
        ("1,2026-03-01,net_sales,NaN", "bad_number", "`value` of line 2 is no number"),
        ("1,2026-03-01,net_sales,Infinity", "bad_number", "`value` of line 2 is no number"),
        ("1,2026-03-01,net_sales,0.001", "bad_number", "`value` of line 2 has more than 2 decimals: `0.001`"),
        ("a b,2026-03-01,net_sales,0.5", "bad_number", "`value` of line 2 must be whole: `0.5`"),
        ("1,2026-03-01,traffic_in,0.5", "bad_number", "`value` of line 2 must be whole: `0.5`"),
        ("1,2026-03-01,labor_hours,0.0000001", "bad_number", "`value` of line 2 has more than 6 decimals"),
        ("1,2026-03-01,net_sales,1_000", "bad_number", "`value` of line 2 is no number"),
        ("1,2026-03-01,net_sales,1e-999999999", "bad_number", "`value` of line 2 has more than 2 decimals"),
        ("1,2026-03-01,net_sales,1e13", "out_of_range", "`value` of line 2 is beyond 1,000,000,000,000"),
        ("1,2026-03-01,net_sales,1e999999999", "out_of_range", "`value` of line 2 is beyond"),
        ("1,2026-03-01,net_sales", "bad_file", "Line 2 has 3 fields instead of 4"),
    ],
)
def test_a_wrong_line_is_refused_by_line_and_field(line: str, code: str, message: str) -> None:
    with pytest.raises(BadFileError) as refused:
        read(f"store,day,metric,value\n{line}\n")

    assert refused.value.code == code
    assert message in str(refused.value)
    assert "nothing was loaded" in refused.value.do


@pytest.mark.parametrize(
    ("text", "code", "message"),
    [
        ("", "no_targets", "There are no targets."),
        ("store,day,metric\n", "missing_field", "Line 1 lacks the column `value`"),
        ("store,day,metric,value,note\n", "unknown_field", "Line 1 has an unknown column `note`"),
        ('{"store": 1, "day": "2026-03-01", "metric": "net_sales", "value": true}', "wrong_type", "`value` of line 1"),
        ('{"store": 1.5, "day": "2026-03-01", "metric": "net_sales", "value": 1}', "wrong_type", "`store` of line 1"),
        (
            '{"store": 1, "day": "2026-03-01", "metric": "net_sales", "value": 1, "x": 2}',
            "unknown_field",
            "unknown field `x`",
        ),
        (
            '{"store": 1, "day": "2026-03-01", "metric": "net_sales", "value": 1, "value": 2}',
            "repeated_field",
            "Line 1 has the field `value` twice",
        ),
        (CSV + "1,2026-03-02,labor_hours,7\n", "duplicate_target", "Lines 3 and 6 are both the target of store `1`"),
        (b"store,day,metric,value\n\xff", "bad_file", "The targets are not UTF-8."),
    ],
)
def test_a_wrong_file_is_refused(text: str | bytes, code: str, message: str) -> None:
    with pytest.raises(BadFileError) as refused:
        read(text)

    assert refused.value.code == code
    assert message in str(refused.value)


def test_an_unknown_column_is_named_by_its_beginning() -> None:
    with pytest.raises(BadFileError) as refused:
        read(f"store,day,metric,value,{'x' * 60_000}\n")

    assert f"`{'x' * 100}`" in refused.value.message
    assert len(refused.value.message) < 300


def test_there_are_at_most_so_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(targets_file, "MOST_TARGETS", 3)

    with pytest.raises(BadFileError, match="more than 3 targets"):
        read(CSV)
