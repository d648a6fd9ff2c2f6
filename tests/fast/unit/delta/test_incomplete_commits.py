"""What a power cut leaves of a table: a commit that was not acknowledged is read as if it had never been made."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from unittest.mock import Mock

import pyarrow as pa
import pytest
from deltalake import CommitProperties, DeltaTable, write_deltalake

from master_dataset.delta.commit_intents import commit_intent, pending_intents
from master_dataset.delta.compaction import compact_partitions
from master_dataset.delta.fsync import fsync_commit
from master_dataset.delta.incomplete_commits import drop_incomplete_creation, roll_back_incomplete


def commit(table: Path, mark: str, day: str) -> None:
    rows = pa.table({"day": [day], "mark": [mark]})
    said = CommitProperties({"userMetadata": mark})
    write_deltalake(table, rows, mode="append", partition_by=["day"], commit_properties=said)


@contextmanager
def unsynced() -> Iterator[None]:
    """The machine loses its power between a commit and its sync."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("master_dataset.delta.commit_intents.fsync_commit", Mock(side_effect=OSError))
        yield


def lose_power(table: Path) -> None:
    """What is noted was noted in an earlier life of the machine."""
    for note in (table / "_untold").iterdir():
        note.write_text("before")


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
def test_a_commit_with_an_incomplete_file_is_removed_and_written_again(table: Path, harm: str) -> None:
    incomplete = file(table, 2)
    whole = incomplete.read_bytes()
    incomplete.unlink()
    if harm != "gone":
        incomplete.write_bytes(
            {
                "empty": b"",
                "short": whole[:-9],
                "zeros": bytes(len(whole)),
                "no beginning": bytes(64) + whole[64:],
            }[harm]
        )

    roll_back_incomplete(str(table), ["query 2"])
    commit(table, "query 2", "2026-11-22")

    assert marks(table) == ["query 0", "query 1", "query 2"]


def test_a_commit_of_another_mark_is_left_to_whoever_has_a_backup(table: Path) -> None:
    file(table, 1).write_bytes(b"")
    before = line(table, 1).read_bytes()

    roll_back_incomplete(str(table), ["query 2"])

    assert line(table, 1).read_bytes() == before


def test_a_whole_commit_is_left_as_it_is_without_a_checkpoint_that_may_have_holes(table: Path) -> None:
    checkpoint, hint = (table / "_delta_log" / name for name in (f"{2:020}.checkpoint.parquet", "_last_checkpoint"))
    before = {path: path.read_bytes() for path in table.rglob("*") if path.is_file()}
    whole = checkpoint.read_bytes()
    middle = len(whole) // 2
    checkpoint.write_bytes(whole[:middle] + bytes(64) + whole[middle + 64 :])

    roll_back_incomplete(str(table), ["query 2"])

    after = {path: path.read_bytes() for path in table.rglob("*") if path.is_file()}
    assert after == {path: found for path, found in before.items() if path not in (checkpoint, hint)}
    assert marks(table) == ["query 0", "query 1", "query 2"]


def test_a_checkpoint_whose_log_entries_a_compaction_deleted_stays(table: Path) -> None:
    line(table, 0).unlink()

    roll_back_incomplete(str(table), ["query 2"])

    assert marks(table) == ["query 0", "query 1", "query 2"]


def test_a_checkpoint_is_flushed_with_its_commit(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[Path] = []
    monkeypatch.setattr("master_dataset.delta.fsync.fsync_path", found.append)

    fsync_commit(str(table), "query 2")

    log = table / "_delta_log"
    assert {line(table, 2), log / f"{2:020}.checkpoint.parquet", log / "_last_checkpoint"} <= set(found)


def test_an_incomplete_compaction_is_removed_and_what_it_replaced_counts_again(table: Path) -> None:
    for _ in range(3):
        commit(table, "query 3", "2026-11-22")
    before = marks(table)
    written = {path.name for path in table.rglob("*.parquet")}
    with suppress(OSError), unsynced():
        compact_partitions(DeltaTable(table), ["2026-11-22"])
    [incomplete] = (path for path in table.glob("day=*/*.parquet") if path.name not in written)
    incomplete.write_bytes(b"")
    lose_power(table)

    roll_back_incomplete(str(table))

    assert (marks(table), pending_intents(str(table))) == (before, {})
    assert len(before) == 6


def test_a_compaction_of_a_process_that_was_killed_stays(table: Path) -> None:
    for _ in range(3):
        commit(table, "query 3", "2026-11-22")
    before = marks(table)
    with suppress(OSError), unsynced():
        compact_partitions(DeltaTable(table), ["2026-11-22"])
    files = DeltaTable(table).file_uris()

    roll_back_incomplete(str(table))

    assert (DeltaTable(table).file_uris(), marks(table), pending_intents(str(table))) == (files, before, {})


def test_an_unreported_commit_stays_if_others_were_built_on_it(table: Path) -> None:
    with suppress(OSError), unsynced():
        compact_partitions(DeltaTable(table), ["2026-11-22"])
    for _ in range(3):
        commit(table, "query 3", "2026-11-22")
    with suppress(OSError), unsynced():
        compact_partitions(DeltaTable(table), ["2026-11-22"])
    lose_power(table)
    compact_partitions(DeltaTable(table), ["2026-11-22"])
    before = marks(table)
    DeltaTable(table).vacuum(0, dry_run=False, enforce_retention_duration=False)

    roll_back_incomplete(str(table))

    assert (marks(table), pending_intents(str(table))) == (before, {})


def test_who_is_ended_while_taking_back_takes_it_back_at_the_next_start(
    table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file(table, 2).write_bytes(b"")
    with monkeypatch.context() as patch:
        patch.setattr("master_dataset.delta.incomplete_commits.fsync_path", Mock(side_effect=OSError("ended")))
        with pytest.raises(OSError, match="ended"):
            roll_back_incomplete(str(table), ["query 2"])

    roll_back_incomplete(str(table), ["query 2"])

    assert marks(table) == ["query 0", "query 1"]


def test_an_incomplete_commit_is_found_without_older_log_entries_and_with_an_incomplete_hint(table: Path) -> None:
    commit(table, "query 3", "2026-11-23")
    for number in range(2):
        line(table, number).unlink()
    hint = table / "_delta_log" / "_last_checkpoint"
    hint.write_bytes(hint.read_bytes()[:9])
    file(table, 3).write_bytes(b"")

    roll_back_incomplete(str(table), ["query 3"])

    assert marks(table) == ["query 0", "query 1", "query 2"]


@pytest.mark.parametrize("left", [0, 40])
def test_a_table_whose_first_log_entry_is_incomplete_is_created_again(tmp_path: Path, left: int) -> None:
    table = tmp_path / "pos_transactions"
    commit(table, "query 1", "2026-11-21")
    line(table, 0).write_bytes(line(table, 0).read_bytes()[:left])

    roll_back_incomplete(str(table), ["query 1"])

    assert not DeltaTable.is_deltatable(str(table))


def test_a_folder_with_a_space_in_its_name_is_no_object_store(tmp_path: Path) -> None:
    table = tmp_path / "a shop" / "pos_transactions"
    for _ in range(3):
        commit(table, "query 1", "2026-11-21")

    with suppress(OSError), unsynced():
        compact_partitions(DeltaTable(table), ["2026-11-21"])

    assert len(pending_intents(str(table))) == 1


def test_a_commit_that_is_under_way_meanwhile_is_left_alone(table: Path) -> None:
    with commit_intent(str(table)) as mark:
        roll_back_incomplete(str(table))
        under_way = pending_intents(str(table))

    assert (under_way, pending_intents(str(table))) == ({mark: False}, {})


def test_a_line_that_is_cut_short_is_taken_back(table: Path) -> None:
    whole = line(table, 2).read_bytes()
    line(table, 2).write_bytes(whole[: len(whole) // 2])
    for checkpoint in (table / "_delta_log").glob("*checkpoint*"):
        checkpoint.unlink()

    roll_back_incomplete(str(table))

    assert marks(table) == ["query 0", "query 1"]


def test_what_refers_to_an_incomplete_checkpoint_is_removed_with_it(table: Path) -> None:
    for checkpoint in (table / "_delta_log").glob("*.parquet"):
        checkpoint.write_bytes(b"")

    roll_back_incomplete(str(table), ["query 2"])

    assert not (table / "_delta_log" / "_last_checkpoint").exists()
    assert marks(table) == ["query 0", "query 1", "query 2"]


def test_an_empty_line_of_the_log_and_empty_checkpoints_are_no_hindrance(table: Path) -> None:
    line(table, 2).write_bytes(b"")
    for checkpoint in [*(table / "_delta_log").glob("*.parquet"), table / "_delta_log" / "_last_checkpoint"]:
        checkpoint.write_bytes(b"")

    roll_back_incomplete(str(table), ["query 2"])

    assert marks(table) == ["query 0", "query 1"]


def test_a_table_of_which_only_the_name_is_left_is_forgotten(tmp_path: Path) -> None:
    whole, incomplete = tmp_path / "pos_transactions", tmp_path / "dead_letters"
    for each in (whole, incomplete):
        commit(each, "query 1", "2026-11-21")
    line(incomplete, 0).write_bytes(b"")

    for each in (whole, incomplete, tmp_path / "none"):
        drop_incomplete_creation(str(each))

    assert [DeltaTable.is_deltatable(str(each)) for each in (whole, incomplete)] == [True, False]
