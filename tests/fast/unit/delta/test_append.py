"""Appends to a local table: files of their partitions, with bounds, in one commit that is found again."""

from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import CommitProperties, DeltaTable, write_deltalake
from deltalake.exceptions import CommitFailedError

from master_dataset.delta.append import (
    Writer,
    append,
    commit_files,
    is_committed,
    is_marked,
)
from master_dataset.delta.creation import create_table
from master_dataset.delta.data_files import DATA_FILES, FileWriter, TableLayout
from master_dataset.delta.tables import BatchId, MasterTables
from master_dataset.errors import OperatorError

INSTANT = pa.timestamp("us", tz="UTC")
LAYOUT = TableLayout(
    pa.schema([("number", pa.int64()), ("received_at", INSTANT), ("day", pa.date32()), ("value", pa.binary())]), "day"
)
NOON = datetime(2026, 11, 21, 12, 0, 0, 123456, tzinfo=UTC)


def rows(*days: int) -> pa.Table:
    """A row for each day of November; received one microsecond after each other."""
    return pa.table(
        [
            pa.array(range(len(days))),
            pa.array([NOON + timedelta(microseconds=each) for each in range(len(days))], INSTANT),
            pa.array([date(2026, 11, day) for day in days]),
            pa.array([b"x"] * len(days)),
        ],
        schema=LAYOUT.schema,
    )


def files_of(table: str, found: pa.Table) -> pa.Table:
    return pa.Table.from_batches(FileWriter.of(table, LAYOUT)(found.to_batches(max_chunksize=2)), DATA_FILES)


@pytest.fixture
def table(tmp_path: Path) -> str:
    path = str(tmp_path / "events")
    create_table(path, LAYOUT)
    return path


def test_a_file_has_the_rows_of_one_day_with_bounds_to_the_microsecond_and_page_checksums(table: str) -> None:
    files = files_of(table, rows(1, 1, 1, 2)).to_pylist()

    assert [(each["partition"], each["rows"]) for each in files] == [("2026-11-01", 3), ("2026-11-02", 1)]
    assert [(each["oldest"] - NOON, each["newest"] - NOON) for each in files] == [
        (timedelta(0), timedelta(microseconds=2)),
        (timedelta(microseconds=3), timedelta(microseconds=3)),
    ]
    for each in files:
        found = pq.ParquetFile(Path(table, each["path"]), page_checksum_verification=True)
        assert found.read().column_names == ["number", "received_at", "value"]
        assert Path(table, each["path"]).stat().st_size == each["size"]
        assert Path(each["path"]).parent.name == f"day={each['partition']}"


def test_no_rows_make_no_file(table: str) -> None:
    assert files_of(table, rows().slice(0, 0)).num_rows == 0


def test_an_append_is_one_commit_whose_bounds_readers_filter_by(table: str) -> None:
    append(table, rows(2, 1, 2), LAYOUT)

    found = DeltaTable(table)
    assert found.version() == 1
    assert found.to_pyarrow_table().sort_by("number").select(["number", "day"]) == rows(2, 1, 2).select(
        ["number", "day"]
    )
    listed = pa.table(found.get_add_actions(flatten=True)).sort_by("partition.day").to_pylist()
    assert [(each["num_records"], each["min.received_at"]) for each in listed] == [
        (1, NOON + timedelta(microseconds=1)),
        (2, NOON),
    ]


def test_what_an_application_has_committed_is_known_behind_a_checkpoint(table: str) -> None:
    for number in range(12):
        commit_files(table, LAYOUT, files_of(table, rows(1)), Writer("query", number), f"query {number}")

    log = Path(table, "_delta_log")
    for entry in sorted(log.glob("*.json"))[:9]:
        entry.unlink()

    assert (log / f"{9:020}.checkpoint.parquet").exists()
    assert DeltaTable(table).transaction_version("query") == 11
    assert DeltaTable(table).count() == 12
    assert is_marked(table, "query 11", 100)
    assert not is_marked(table, "query 12", 100)


@pytest.mark.parametrize("number", [7, 6])
def test_a_number_that_another_process_has_committed_is_refused(table: str, number: int) -> None:
    commit_files(table, LAYOUT, files_of(table, rows(1)), Writer("query", 7), "query 7")

    with pytest.raises(OperatorError, match=r"another process commits to .* as `query`: it has number 7 already"):
        commit_files(table, LAYOUT, files_of(table, rows(2)), Writer("query", number), f"query {number}")

    assert DeltaTable(table).count() == 1


def test_what_a_crash_left_out_of_a_micro_batch_is_committed_under_the_same_number(table: str) -> None:
    for repeats, day in ((False, 1), (True, 2)):
        commit_files(table, LAYOUT, files_of(table, rows(day)), Writer("query", 7, repeats=repeats), "query 7")

    assert DeltaTable(table).count() == 2


def test_a_commit_that_came_through_late_is_not_made_again(table: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made, seen = DeltaTable.create_write_transaction, iter((False, True))

    def without_answer(self: DeltaTable, *args: Any, **more: Any) -> None:
        made(self, *args, **more)
        raise OSError("no answer")

    monkeypatch.setattr(DeltaTable, "create_write_transaction", without_answer)
    monkeypatch.setattr("master_dataset.delta.append.is_committed", lambda *place: next(seen) and is_committed(*place))

    commit_files(table, LAYOUT, files_of(table, rows(1)), Writer("query", 7), "query 7")

    assert (DeltaTable(table).count(), DeltaTable(table).version()) == (1, 1)


def test_a_micro_batch_is_held_by_its_number_or_by_the_mark_of_an_earlier_release(table: str, tmp_path: Path) -> None:
    tables = MasterTables(str(tmp_path))
    commit_files(table, LAYOUT, files_of(table, rows(1)), Writer("query", 7), "query 7")
    write_deltalake(table, rows(2), mode="append", commit_properties=CommitProperties({"userMetadata": "query 8"}))

    held = [tables.holds("events", BatchId("query", number)) for number in (6, 7, 8, 9)]
    assert held == [True, True, True, False]
    assert not tables.holds("events", BatchId("another", 0))


def test_a_table_that_is_there_stays_as_it_is(table: str) -> None:
    append(table, rows(1), LAYOUT)
    create_table(table, LAYOUT)

    assert (DeltaTable(table).version(), DeltaTable(table).count()) == (1, 1)


def test_rows_with_a_column_that_the_table_lacks_are_refused(table: str) -> None:
    wider = TableLayout(LAYOUT.schema.append(pa.field("more", pa.string())), "day")

    with pytest.raises(OperatorError, match="lacks the column `more`"):
        append(table, rows(1).append_column("more", pa.array(["x"])), wider)

    assert DeltaTable(table).version() == 0


def test_a_commit_that_lost_every_race_is_tried_again(table: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made, refused = DeltaTable.create_write_transaction, list[CommitFailedError]()

    def behind_others(self: DeltaTable, *args: Any, **more: Any) -> None:
        if len(refused) < 6:
            with pytest.raises(CommitFailedError) as lost:
                commit_behind(table)
            refused.append(lost.value)
            raise lost.value
        made(self, *args, **more)

    monkeypatch.setattr("master_dataset.delta.append.time.sleep", lambda _: None)
    monkeypatch.setattr(DeltaTable, "create_write_transaction", behind_others)

    append(table, rows(1), LAYOUT)

    assert DeltaTable(table).count() == 7


def commit_behind(table: str) -> None:
    """Commit to a version that another one takes, without another try."""
    stale = DeltaTable(table)
    write_deltalake(table, rows(2), mode="append")
    write_deltalake(stale, rows(2), mode="append", commit_properties=CommitProperties(max_commit_retries=0))
