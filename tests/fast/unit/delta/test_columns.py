"""A table of an older version gains the columns of a newer one, and its rows stay what they are."""

from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from master_dataset.delta.commit_intents import INTENTS, pending_intents
from master_dataset.delta.compaction import compact_partitions
from master_dataset.delta.creation import add_missing_columns, create_table
from master_dataset.delta.data_files import TableLayout

OLD = pa.schema([("day", pa.date32()), ("till", pa.string())])
PAYMENTS = pa.list_(pa.struct([("type", pa.string()), ("amount", pa.int64())]))
NEW = pa.schema([("day", pa.date32()), ("payments", PAYMENTS), ("till", pa.string()), ("discount", pa.int64())])
TODAY = date(2026, 3, 7)


def append(path: str, schema: pa.Schema, **values: object) -> None:
    row = pa.table({name: [({"day": TODAY} | values)[name]] for name in schema.names}, schema=schema)
    write_deltalake(path, row, mode="append", partition_by=["day"], configuration={"delta.appendOnly": "true"})


def rows(path: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = pa.table(DeltaTable(path).to_pyarrow_table()).to_pylist()
    return sorted(found, key=lambda row: str(row["till"]))


@pytest.fixture(params=["table", "Läden #1"])
def path(tmp_path: Path, request: pytest.FixtureRequest) -> str:
    return str(tmp_path / request.param)


def test_older_rows_are_null_in_new_columns_also_after_a_compaction(path: str) -> None:
    append(path, OLD, till="1")

    add_missing_columns(path, NEW)
    append(path, NEW, till="2", payments=[{"type": "card", "amount": 5}], discount=0)
    append(path, NEW, till="3", payments=None, discount=None)
    before = rows(path)
    compact_partitions(DeltaTable(path), [str(TODAY)])

    assert [(row["till"], row["payments"], row["discount"]) for row in before] == [
        ("1", None, None),
        ("2", [{"type": "card", "amount": 5}], 0),
        ("3", None, None),
    ]
    assert rows(path) == before
    assert len(DeltaTable(path).file_uris()) == 1


def test_a_table_that_has_all_columns_gets_no_commit(path: str) -> None:
    append(path, OLD, till="1")
    add_missing_columns(path, NEW)
    version = DeltaTable(path).version()

    add_missing_columns(path, NEW)
    add_missing_columns(path, OLD)

    assert DeltaTable(path).version() == version == 1


def test_the_table_keeps_its_properties_its_protocol_and_no_intent(path: str) -> None:
    append(path, OLD, till="1")
    before = DeltaTable(path).metadata().configuration, DeltaTable(path).protocol()

    add_missing_columns(path, NEW)

    assert (DeltaTable(path).metadata().configuration, DeltaTable(path).protocol()) == before
    assert DeltaTable(path).metadata().partition_columns == ["day"]
    assert not pending_intents(path)
    assert not list((Path(path) / INTENTS).glob("*"))


def test_a_table_that_does_not_exist_is_left_alone(path: str) -> None:
    add_missing_columns(path, NEW)

    assert not Path(path).exists()


def test_creating_a_table_that_an_older_release_made_adds_the_columns_it_lacks(path: str) -> None:
    append(path, OLD, till="1")

    create_table(path, TableLayout(NEW, "day"))

    assert {field.name for field in DeltaTable(path).schema().fields} == set(NEW.names)
