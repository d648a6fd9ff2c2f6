"""Files of products: taken as they are, or refused by line and field."""

import io
from collections.abc import Mapping
from datetime import date
from pathlib import Path

import msgspec
import pytest

from master_dataset.errors import BadFileError
from master_dataset.registry import products as products_module
from master_dataset.registry.products import Product, ProductSpool, Versions, bucket_of, buckets_for, valid_on
from master_dataset.registry.products_file import read_products, read_stream

CSV = """sku,title,brand,category,gtin,valid_from
1,"Milk, fresh",Farm,Food/Dairy/Milk,4006381333931,
1,Milk,Farm,Food/Milk,,2026-03-01
2,Soap,,,,
"""
ROWS = {
    "1": (
        Product("1", "Milk, fresh", "Farm", ("Food", "Dairy", "Milk"), "4006381333931"),
        Product("1", "Milk", "Farm", ("Food", "Milk"), valid_from=date(2026, 3, 1)),
    ),
    "2": (Product("2", "Soap"),),
}


def loaded(text: str | bytes, buckets: int = 4) -> Mapping[str, Versions]:
    """The products of a file by SKU."""
    with ProductSpool() as spool:
        read_stream(io.BytesIO(text.encode() if isinstance(text, str) else text), spool)
        found: dict[str, Versions] = {}
        for bucket, products in spool.by_bucket(buckets):
            assert all(bucket_of(sku, buckets) == bucket for sku in products)
            found |= products
        return found


def test_csv_and_json_lines_say_the_same() -> None:
    lines = b"\n".join(
        msgspec.json.encode(
            {"sku": each.sku, "title": each.title, "brand": each.brand or None, "category": "/".join(each.category)}
            | {"gtin": each.gtin, "valid_from": each.valid_from}
        )
        for versions in ROWS.values()
        for each in reversed(versions)
    )

    assert loaded('{"sku": "1", "title": "a: b::c"}') == {"1": (Product("1", "a: b::c"),)}
    assert loaded(CSV) == loaded(CSV.replace("\n", "\r\n")) == loaded("\ufeff" + CSV) == ROWS
    assert loaded(lines) == loaded(b"\n" + lines + b"\n\n") == ROWS


def test_a_file_is_read_by_its_path(tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_text(CSV)
    with ProductSpool() as spool:
        read_products(tmp_path / "p.csv", spool)
        assert spool.count == 3
    with ProductSpool() as spool, pytest.raises(BadFileError, match="cannot be read"):
        read_products(tmp_path / "none.csv", spool)


@pytest.mark.parametrize(
    ("day", "title"), [(date(2026, 2, 28), "Milk, fresh"), (date(2026, 3, 1), "Milk"), (date.max, "Milk")]
)
def test_a_version_is_valid_from_its_day_on(day: date, title: str) -> None:
    found = valid_on(ROWS["1"], day)

    assert found is not None
    assert found.title == title
    assert valid_on(ROWS["1"][1:], date(2026, 2, 28)) is None


@pytest.mark.parametrize(("count", "buckets"), [(0, 1), (1, 1), (512, 1), (513, 2), (1025, 4), (1_000_000, 2048)])
def test_buckets_are_a_power_of_two(count: int, buckets: int) -> None:
    assert buckets_for(count) == buckets


def test_the_same_version_twice_names_both_lines() -> None:
    for buckets in (1, 4, 256):
        with pytest.raises(BadFileError, match="Lines 3 and 5 are both SKU `1` valid from 2026-03-01") as caught:
            loaded(CSV + "1,Other,,,,2026-03-01\n", buckets)
        assert caught.value.code == "duplicate_product"


def test_more_products_than_allowed_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(products_module, "MOST_PRODUCTS", 2)
    with pytest.raises(BadFileError, match="more than 2 products"):
        loaded(CSV)


HEAD = "sku,title,brand,category,gtin,valid_from\n"


@pytest.mark.parametrize(
    ("text", "code", "message"),
    [
        ("", "no_products", "There are no products"),
        (HEAD, "no_products", "There are no products"),
        ("sku,title,colour\n", "unknown_field", "Line 1 has an unknown column `colour`"),
        ("sku,title,sku\n", "bad_file", "Line 1 has the column `sku` twice"),
        ("sku,brand\n", "missing_field", "Line 1 lacks the column `title`"),
        (HEAD + "1,a\n", "bad_file", "Line 2 has 2 fields instead of 6"),
        (HEAD + '1,"a\nb",,,,\n', "bad_text", "`title` of line 2 has control characters"),
        (HEAD + '1,a,,,,\n2,"a', "bad_file", "Line 3 is no CSV"),
        (HEAD + ",a,,,,\n", "missing_field", "`sku` of line 2 is missing"),
        (HEAD + "1,,,,,\n", "missing_field", "`title` of line 2 is missing"),
        (HEAD + f"{'é' * 129},a,,,,\n", "out_of_range", "`sku` of line 2 must hold 1 to 256 bytes"),
        (HEAD + f"1,{'a' * 201},,,,\n", "out_of_range", "`title` of line 2 is longer than 200 characters"),
        (HEAD + f"1,a,{'a' * 201},,,\n", "out_of_range", "`brand` of line 2 is longer than 200 characters"),
        (HEAD + "1,a,,a//b,,\n", "bad_category", "`category` of line 2 has an empty level"),
        (HEAD + "1,a,,/,,\n", "bad_category", "`category` of line 2 has an empty level"),
        (HEAD + "1,a,,a/b/c/d/e/f/g,,\n", "bad_category", "`category` of line 2 has 7 levels, more than 6"),
        (HEAD + "1,a,,,4006381333932,\n", "bad_gtin", "`gtin` of line 2 has a wrong check digit"),
        (HEAD + "1,a,,,123456789,\n", "bad_gtin", "`gtin` of line 2 must have 8, 12, 13, 14 digits"),
        (HEAD + "1,a,,,٤٠٠٦٣٨١٣٣٣٩٣١,\n", "bad_gtin", "`gtin` of line 2 must have"),
        (HEAD + "1,a,,,,2026-02-30\n", "bad_time", "`valid_from` of line 2 is no day"),
        (HEAD + "1,a,,,,20260201\n", "bad_time", "`valid_from` of line 2 is no day"),
        ('{"sku": 1, "title": "a"}', "wrong_type", "`sku` of line 1 must be a text"),
        ('{"sku": "1", "title": ["a"]}', "wrong_type", "`title` of line 1 must be a text"),
        (HEAD + " 1,a,,,,\n", "bad_text", "`sku` of line 2 has blanks around it: ` 1`"),
        (HEAD + '"1\u00a0",a,,,,\n', "bad_text", "`sku` of line 2 has blanks around it"),
        (HEAD + "  ,a,,,,\n", "bad_text", "`sku` of line 2 has blanks around it"),
        ('{"sku": "1 ", "title": "a"}', "bad_text", "`sku` of line 1 has blanks around it: `1 `"),
        ('{"sku": "1", "title": "a", "sku": "2"}', "repeated_field", "Line 1 has the field `sku` twice"),
        ('{"title": "a:b", "sku": "1", "\\u0074itle": "a"}', "repeated_field", "Line 1 has the field `title` twice"),
        ('{"sku": "1"}', "missing_field", "`title` of line 1 is missing"),
        ('{"sku": "1", "title": "a", "price": 2}', "unknown_field", "Line 1 has an unknown field `price`"),
        ('{"sku": "1", "title": "a"}\n[1]', "bad_file", "Line 2 is no JSON object"),
        ('{"sku": "1"', "bad_file", "Line 1 is no JSON object"),
        ("a" * 70_000, "bad_file", "Line 1 is longer than 65,536 characters"),
        (b"sku,title\n1,\xff", "bad_file", "The products are not UTF-8"),
    ],
)
def test_a_wrong_file_is_refused_by_line_and_field(text: str | bytes, code: str, message: str) -> None:
    with pytest.raises(BadFileError) as caught:
        loaded(text)

    assert caught.value.code == code
    assert str(caught.value).startswith(message)
