"""What `stores load` takes, and the exact words with which it refuses."""

from datetime import date
from decimal import Decimal
from pathlib import Path

import pytest

from master_dataset.errors import BadFileError
from master_dataset.registry.stores import DEFAULT_CURRENCY, Currency, Store
from master_dataset.registry.stores_file import load, read

FULL = """
stores:
- id: 010
  name: Kosice
  tenant: milk
  timezone: Europe/Bratislava
  currency: CZK
  opening_hours: {mon: ["08:00-20:00"], sat: [08:00-12:00, 22:00-24:00]}
  floor_m2: 200.5
  open_since: 2019-05-01
- {id: 8, timezone: Asia/Kathmandu}
"""


def test_a_store_is_read_with_its_id_as_it_is_written() -> None:
    full, least = read(FULL)

    assert (full.id, full.name, full.tenant, full.currency) == ("010", "Kosice", "milk", Currency("CZK", 2))
    assert full.opening_hours == {"mon": ("08:00-20:00",), "sat": ("08:00-12:00", "22:00-24:00")}
    assert (full.floor_m2, full.open_since) == (Decimal("200.5"), date(2019, 5, 1))
    assert (least.id, least.name, least.currency, least.floor_m2) == ("8", "8", DEFAULT_CURRENCY, None)


def test_a_store_comes_back_from_the_registry_as_it_went() -> None:
    stores = read(FULL)

    assert [Store.from_json(store.to_json()) for store in stores] == stores


@pytest.mark.parametrize(
    ("entry", "code", "field"),
    [
        ("{id: 1}", "missing_field", "stores[0].timezone"),
        ("{timezone: UTC}", "missing_field", "stores[0].id"),
        ("{id: '', timezone: UTC}", "missing_field", "stores[0].id"),
        ("1", "wrong_type", "stores[0]"),
        ("{id: [1], timezone: UTC}", "wrong_type", "stores[0].id"),
        ("{id: 1, timezone: UTC, floor: 1}", "unknown_field", "stores[0].floor"),
        ("{id: 1, timezone: UTC, '': 1}", "unknown_field", "stores[0].''"),
        ("{id: 1, timezone: UTC, '[key]': 1}", "unknown_field", "stores[0][key]"),
        ("{id: 1, timezone: UTC, zones: [{id: 1, '': 1}]}", "unknown_field", "stores[0].zones[0].''"),
        ("{id: 1, timezone: UTC, sensors: {'': 1}}", "wrong_type", "stores[0].sensors"),
        ("{id: 1, timezone: Europe/Kosice}", "unknown_timezone", "stores[0].timezone"),
        ("{id: 1, timezone: Europe}", "unknown_timezone", "stores[0].timezone"),
        ("{id: 1, timezone: ../../etc/passwd}", "unknown_timezone", "stores[0].timezone"),
        ("{id: 1, timezone: Africa/Monrovia, open_since: 1971-01-01}", "offset_not_15min", "stores[0].timezone"),
        ("{id: 1, timezone: UTC, currency: XXX}", "unknown_currency", "stores[0].currency"),
        ("{id: 1, timezone: UTC, currency: eur}", "unknown_currency", "stores[0].currency"),
        ("{id: 1, timezone: UTC, floor_m2: -1}", "out_of_range", "stores[0].floor_m2"),
        ("{id: 1, timezone: UTC, floor_m2: NaN}", "out_of_range", "stores[0].floor_m2"),
        ("{id: 1, timezone: UTC, floor_m2: big}", "bad_number", "stores[0].floor_m2"),
        ("{id: 1, timezone: UTC, open_since: 1.5.2019}", "bad_time", "stores[0].open_since"),
        (
            "{id: 1, timezone: UTC, opening_hours: {mon: [08:10-09:00]}}",
            "bad_opening_hours",
            "stores[0].opening_hours.mon[0]",
        ),
        (
            "{id: 1, timezone: UTC, opening_hours: {mo: [08:00-09:00]}}",
            "bad_opening_hours",
            "stores[0].opening_hours.mo",
        ),
        (
            "{id: 1, timezone: UTC, opening_hours: {mon: 08:00-09:00}}",
            "bad_opening_hours",
            "stores[0].opening_hours.mon",
        ),
        (
            "{id: 1, timezone: UTC, opening_hours: {mon: [24:00-25:00]}}",
            "bad_opening_hours",
            "stores[0].opening_hours.mon[0]",
        ),
        (f"{{id: {'x' * 257}, timezone: UTC}}", "out_of_range", "stores[0].id"),
        ("{id: 1, timezone: UTC}, {id: '1', timezone: UTC}", "duplicate_store", "stores[1].id"),
    ],
)
def test_a_wrong_store_is_refused_by_field(entry: str, code: str, field: str) -> None:
    with pytest.raises(BadFileError) as caught:
        read(f"stores: [{entry}]")

    assert caught.value.code == code
    assert str(caught.value).startswith(f"`{field}`")
    assert caught.value.exit_code == 2


@pytest.mark.parametrize("text", ["", "[", "stores:", "stores: 1", "- id: 1", "[" * 5000, "a: &a [*a]"])
def test_a_file_without_stores_is_refused(text: str) -> None:
    with pytest.raises(BadFileError):
        read(text)


def test_monrovia_is_taken_since_its_offset_is_whole() -> None:
    (store,) = read("stores: [{id: 1, timezone: Africa/Monrovia, open_since: 1990-01-01}]")

    assert store.timezone == "Africa/Monrovia"


def test_a_file_that_is_not_there_or_not_utf8_is_refused(tmp_path: Path) -> None:
    latin = tmp_path / "latin.yaml"
    latin.write_bytes(b"stores: [{id: \xe9}]")

    with pytest.raises(BadFileError, match="cannot be read"):
        load(tmp_path / "none.yaml")
    with pytest.raises(BadFileError, match="not UTF-8"):
        load(latin)
