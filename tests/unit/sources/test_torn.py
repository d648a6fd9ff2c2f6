"""What a power cut has left of a table: read as if the commit that nobody was told of had never been."""

from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import CommitProperties, DeltaTable, write_deltalake

from master_dataset.torn import drop_unbegun, take_back_torn


def commit(table: Path, mark: str, day: str) -> None:
    rows = pa.table({"day": [day], "mark": [mark]})
    said = CommitProperties({"userMetadata": mark})
    write_deltalake(table, rows, mode="append", partition_by=["day"], commit_properties=said)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Three commits; a checkpoint behind the last."""
    found = tmp_path / "pos_transactions"
    for number in range(3):
        commit(found, f"query {number}", f"2026-11-2{number}")
    DeltaTable(found).create_checkpoint()
    return found


def line(table: Path, number: int) -> Path:
    return table / "_delta_log" / f"{number:020}.json"


def file(table: Path, number: int) -> Path:
    [found] = (table / f"day=2026-11-2{number}").glob("*.parquet")
    return found


def marks(table: Path) -> list[str]:
    return sorted(DeltaTable(table).to_pyarrow_table(columns=["mark"])["mark"].to_pylist())


@pytest.mark.parametrize("harm", ["empty", "gone", "short", "zeros", "no beginning"])
def test_a_commit_with_a_torn_file_is_taken_back_and_comes_again(table: Path, harm: str) -> None:
    torn = file(table, 2)
    whole = torn.read_bytes()
    torn.unlink()
    if harm != "gone":
        torn.write_bytes({
            "empty": b"", "short": whole[:-9], "zeros": bytes(len(whole)), "no beginning": bytes(64) + whole[64:],
        }[harm])  # fmt: skip

    take_back_torn(str(table), "query 2")
    commit(table, "query 2", "2026-11-22")

    assert marks(table) == ["query 0", "query 1", "query 2"]


def test_a_commit_of_another_mark_is_left_to_whoever_has_a_backup(table: Path) -> None:
    file(table, 1).write_bytes(b"")
    before = line(table, 1).read_bytes()

    take_back_torn(str(table), "query 2")

    assert line(table, 1).read_bytes() == before


def test_a_whole_commit_and_its_checkpoint_are_left_as_they_are(table: Path) -> None:
    before = {path: path.read_bytes() for path in table.rglob("*") if path.is_file()}

    take_back_torn(str(table), "query 2")

    assert {path: path.read_bytes() for path in table.rglob("*") if path.is_file()} == before


def test_what_names_a_torn_checkpoint_goes_with_it(table: Path) -> None:
    for checkpoint in (table / "_delta_log").glob("*.parquet"):
        checkpoint.write_bytes(b"")

    take_back_torn(str(table), "query 2")

    assert not (table / "_delta_log" / "_last_checkpoint").exists()
    assert marks(table) == ["query 0", "query 1", "query 2"]


def test_an_empty_line_of_the_log_and_empty_checkpoints_are_no_hindrance(table: Path) -> None:
    line(table, 2).write_bytes(b"")
    for checkpoint in [*(table / "_delta_log").glob("*.parquet"), table / "_delta_log" / "_last_checkpoint"]:
        checkpoint.write_bytes(b"")

    take_back_torn(str(table), "query 2")

    assert marks(table) == ["query 0", "query 1"]


def test_a_table_of_which_only_the_name_is_left_is_forgotten(tmp_path: Path) -> None:
    whole, torn = tmp_path / "pos_transactions", tmp_path / "dead_letters"
    for each in (whole, torn):
        commit(each, "query 1", "2026-11-21")
    line(torn, 0).write_bytes(b"")

    for each in (whole, torn, tmp_path / "none"):
        drop_unbegun(str(each))

    assert [DeltaTable.is_deltatable(str(each)) for each in (whole, torn)] == [True, False]
