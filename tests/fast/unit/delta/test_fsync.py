"""A commit that is reported as stored is on the disk: its files, its log entry, and their directory entries."""

import os
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import CommitProperties, DeltaTable, write_deltalake

from master_dataset.delta import commit_intents
from master_dataset.delta.append import append
from master_dataset.delta.commit_intents import commit_intent, pending_intents
from master_dataset.delta.creation import create_table
from master_dataset.delta.data_files import TableLayout
from master_dataset.delta.fsync import fsync_commit
from master_dataset.delta.history import MARK
from master_dataset.delta.incomplete_commits import roll_back_incomplete

LAYOUT = TableLayout(pa.schema([("day", pa.string()), ("number", pa.int64())]), "day")
ROWS = pa.table({"day": ["2026-11-24"], "number": [1]})


def append_to_new(table: str) -> None:
    create_table(table, LAYOUT)
    append(table, ROWS, LAYOUT)


def commit(table: Path, mark: str, day: str) -> None:
    rows = pa.table({"day": [day], "number": [1]})
    # What Spark calls `userMetadata` is a field of the commit's own line.
    write_deltalake(
        table, rows, mode="append", partition_by=["day"], commit_properties=CommitProperties({"userMetadata": mark})
    )


@pytest.fixture
def fsynced(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    found: list[str] = []

    def noted(opened: int) -> None:
        found.append(str(Path(f"/proc/self/fd/{opened}").readlink()))

    monkeypatch.setattr(os, "fsync", noted)
    return found


def test_files_commit_and_folders_of_that_mark_are_synced(tmp_path: Path, fsynced: list[str]) -> None:
    table = tmp_path / "pos_transactions"
    commit(table, "query 1", "2026-11-21")
    commit(table, "query 2", "2026-11-22")
    commit(table, "another 7", "2026-11-23")

    fsync_commit(str(table), "query 2")

    [file] = (str(path) for path in (table / "day=2026-11-22").glob("*.parquet"))
    log = table / "_delta_log"
    assert fsynced[:2] == [file, str(log / f"{1:020}.json")]
    assert set(fsynced[2:]) == {str(each) for each in (table / "day=2026-11-22", table, log, tmp_path)}


def test_the_sums_that_spark_keeps_beside_a_file_are_synced_with_it(tmp_path: Path, fsynced: list[str]) -> None:
    table = tmp_path / "pos_transactions"
    commit(table, "query 1", "2026-11-21")
    [file] = (table / "day=2026-11-21").glob("*.parquet")
    sums = [each.with_name(f".{each.name}.crc") for each in (file, table / "_delta_log" / f"{0:020}.json")]
    for each in sums:
        each.touch()

    fsync_commit(str(table), "query 1")

    assert {str(each) for each in sums} <= set(fsynced)


def test_a_commit_behind_the_last_checkpoint_is_found(tmp_path: Path, fsynced: list[str]) -> None:
    table = tmp_path / "pos_transactions"
    for number in range(3):
        commit(table, f"query {number}", "2026-11-21")
    DeltaTable(table).create_checkpoint()
    commit(table, "query 3", "2026-11-21")

    fsync_commit(str(table), "query 3")
    fsync_commit(str(table), "query 1")

    commits = [name for name in fsynced if name.endswith(".json")]
    assert commits == [str(table / "_delta_log" / f"{number:020}.json") for number in (3, 1)]


def test_what_is_appended_in_one_commit_is_on_the_disk_with_it(tmp_path: Path, fsynced: list[str]) -> None:
    table = tmp_path / "replays"

    append_to_new(str(table))

    log = table / "_delta_log"
    [file] = (table / "day=2026-11-24").glob("*.parquet")
    of_the_table = [name for name in fsynced if name.endswith((".parquet", ".json"))]
    assert of_the_table == [str(log / f"{0:020}.json"), str(file), str(log / f"{1:020}.json")]


def test_of_a_commit_that_is_under_way_a_note_is_on_the_disk_until_it_is_there_itself(
    tmp_path: Path, fsynced: list[str]
) -> None:
    table = str(tmp_path / "replays")
    append_to_new(table)
    fsynced.clear()

    with commit_intent(table) as mark:
        under_way, on_the_disk = pending_intents(table), list(fsynced)
        said = CommitProperties({MARK: mark})
        write_deltalake(table, ROWS, mode="append", commit_properties=said)

    assert (under_way, pending_intents(table)) == ({mark: False}, {})
    assert any(name.endswith(mark) for name in on_the_disk)
    assert str(tmp_path / "replays" / "_delta_log" / f"{2:020}.json") in fsynced


def test_a_note_stays_if_a_commit_was_made_and_nobody_knows(tmp_path: Path) -> None:
    table = str(tmp_path / "replays")
    append_to_new(table)

    with suppress(OSError), commit_intent(table) as mark:
        said = CommitProperties({MARK: mark})
        write_deltalake(table, ROWS, mode="append", commit_properties=said)
        raise OSError("no answer")

    assert pending_intents(table) == {mark: False}


def test_a_commit_in_progress_on_another_machine_was_not_interrupted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = str(tmp_path / "replays")
    append_to_new(table)

    with commit_intent(table) as mark:
        write_deltalake(table, ROWS, mode="append", commit_properties=CommitProperties({MARK: mark}))
        monkeypatch.setattr(commit_intents, "boot_id", lambda: "of another machine")
        in_progress = pending_intents(table)
        roll_back_incomplete(table)
        rows = DeltaTable(table).to_pyarrow_table().num_rows

    assert in_progress == {mark: False}
    assert DeltaTable(table).to_pyarrow_table().num_rows == rows == 2 * len(ROWS)


def test_a_commit_that_a_reboot_has_interrupted_is_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = str(tmp_path / "replays")
    append_to_new(table)
    with suppress(OSError), commit_intent(table) as mark:
        write_deltalake(table, ROWS, mode="append", commit_properties=CommitProperties({MARK: mark}))
        raise OSError("no answer")

    monkeypatch.setattr(commit_intents, "boot_id", lambda: "another")

    assert pending_intents(table) == {mark: True}


def test_a_note_goes_if_no_commit_was_made(tmp_path: Path) -> None:
    table = str(tmp_path / "replays")
    append_to_new(table)

    with pytest.raises(OSError, match="no room"), commit_intent(table):
        raise OSError("no room")

    assert pending_intents(table) == {}


def test_what_has_no_commit_and_what_lies_elsewhere_is_passed_by(tmp_path: Path, fsynced: list[str]) -> None:
    table = tmp_path / "pos_transactions"
    commit(table, "query 1", "2026-11-21")

    fsync_commit(str(table), "query 2")
    fsync_commit("s3://bucket/pos_transactions", "query 1")

    assert fsynced == []
