"""Corrected views as Delta tables: what is published, a day written again only when another run computed it."""

from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import duckdb
import pytest
from cassandra.cluster import Session
from deltalake import DeltaTable

from batch_layer.maintenance.export import CorrectedTable, Exported
from master_dataset.errors import PublicationMovedError
from views import view_named
from views.core import View
from views.core.cells import CellKey, write_block
from views.core.cut import month_of, seconds

SALES, DEVICES = view_named("sales"), view_named("wifi_devices")
FIRST, SECOND, THIRD = (date(2026, 2, 28) + timedelta(days=number) for number in range(3))
WEEK = timedelta(days=7)


def put(session: Session, view: View, run: str, day: date, stores: Mapping[str, int]) -> None:
    """One cell a store at nine, whose every state is that number."""
    for store, number in stores.items():
        at = seconds(datetime(day.year, day.month, day.day, 9, tzinfo=UTC))
        states = tuple(f"sketch-{number}" if each.by == "union" else number for each in view.columns.values())
        block = write_block(view, [(CellKey(at, ("EUR",)), states)])
        insert = session.prepare(
            "INSERT INTO batch_cells (view_name, store, month, run, day, block) VALUES (?, ?, ?, ?, ?, ?)"
        )
        session.execute(insert, (view.name, store, month_of(day), run, day, block))
    listed = "[" + ",".join(f'"{store}"' for store in sorted(stores)) + "]"
    insert = session.prepare("INSERT INTO run_days (run, view_name, day, stores) VALUES (?, ?, ?, ?)")
    session.execute(insert, (run, view.name, day, listed))


def read(path: Path, view: View, column: str = "receipts") -> list[tuple[object, ...]]:
    files = DeltaTable(str(path / view.name)).file_uris()
    return (
        duckdb.read_parquet(files, hive_partitioning=True).project(f"store, day, run, {column}").order("all").fetchall()
    )


def test_only_what_changed_is_written_again(shared_cassandra: Session, tmp_path: Path) -> None:
    table = CorrectedTable(shared_cassandra, str(tmp_path), SALES)
    for day in (FIRST, SECOND):
        put(shared_cassandra, SALES, "one", day, {"1": 1, "2": 2})
    put(shared_cassandra, SALES, "two", SECOND, {"1": 11})
    put(shared_cassandra, SALES, "two", THIRD, {"2": 12})

    first = table.bring_to({FIRST: "one", SECOND: "one"}, 1, WEEK)
    again = table.bring_to({FIRST: "one", SECOND: "one"}, 2, WEEK)
    second = table.bring_to({SECOND: "two", THIRD: "two"}, 3, WEEK)

    assert (first, again) == (Exported("sales", 2, 0, 4), Exported("sales", 0, 0, 0))
    assert second == Exported("sales", 2, 1, 2)
    assert read(tmp_path, SALES) == [("1", SECOND, "two", 11), ("2", THIRD, "two", 12)]
    history = DeltaTable(str(tmp_path / "sales")).history()
    assert [each["galatea.publication"] for each in history] == ["3", "1"]


def test_a_table_with_other_columns_is_written_anew(shared_cassandra: Session, tmp_path: Path) -> None:
    fewer = View(
        name=SALES.name,
        source=SALES.source,
        dimensions=SALES.dimensions,
        metrics={"receipts": SALES.metrics["receipts"]},
    )
    put(shared_cassandra, fewer, "narrow", FIRST, {"1": 1})
    put(shared_cassandra, SALES, "wide", FIRST, {"1": 5})

    CorrectedTable(shared_cassandra, str(tmp_path), fewer).bring_to({FIRST: "narrow"}, 1, WEEK)
    CorrectedTable(shared_cassandra, str(tmp_path), SALES).bring_to({FIRST: "wide"}, 2, WEEK)

    assert read(tmp_path, SALES, "lines") == [("1", FIRST, "wide", 5)]


def test_a_sketch_is_kept_as_it_is(shared_cassandra: Session, tmp_path: Path) -> None:
    put(shared_cassandra, DEVICES, "run", FIRST, {"1": 3})

    CorrectedTable(shared_cassandra, str(tmp_path), DEVICES).bring_to({FIRST: "run"}, 1, WEEK)

    assert read(tmp_path, DEVICES, "device") == [("1", FIRST, "run", "sketch-3")]


def test_cells_that_went_away_meanwhile_leave_the_table_as_it_was(shared_cassandra: Session, tmp_path: Path) -> None:
    table = CorrectedTable(shared_cassandra, str(tmp_path), SALES)
    put(shared_cassandra, SALES, "kept", FIRST, {"1": 1})
    table.bring_to({FIRST: "kept"}, 1, WEEK)
    put(shared_cassandra, SALES, "lost", SECOND, {"1": 2})
    keys = ("sales", "1", month_of(SECOND), "lost")
    shared_cassandra.execute(
        "DELETE FROM batch_cells WHERE view_name = %s AND store = %s AND month = %s AND run = %s", keys
    )

    with pytest.raises(PublicationMovedError):
        table.bring_to({FIRST: "kept", SECOND: "lost"}, 2, WEEK)

    assert read(tmp_path, SALES) == [("1", FIRST, "kept", 1)]


def test_a_day_that_lost_all_its_cells_goes_and_is_not_looked_at_again(
    shared_cassandra: Session, tmp_path: Path
) -> None:
    table = CorrectedTable(shared_cassandra, str(tmp_path), SALES)
    put(shared_cassandra, SALES, "full", FIRST, {"1": 1})
    put(shared_cassandra, SALES, "full", SECOND, {"1": 2})
    put(shared_cassandra, SALES, "empty", SECOND, {})

    table.bring_to({FIRST: "full", SECOND: "full"}, 1, WEEK)
    emptied = table.bring_to({FIRST: "full", SECOND: "empty"}, 2, WEEK)
    again = table.bring_to({FIRST: "full", SECOND: "empty"}, 3, WEEK)

    assert (emptied, again) == (Exported("sales", 0, 1, 0), Exported("sales", 0, 0, 0))
    assert read(tmp_path, SALES) == [("1", FIRST, "full", 1)]


def test_a_run_of_which_nothing_is_known_any_more_takes_no_day_away(shared_cassandra: Session, tmp_path: Path) -> None:
    table = CorrectedTable(shared_cassandra, str(tmp_path), SALES)
    put(shared_cassandra, SALES, "known", FIRST, {"1": 1})
    table.bring_to({FIRST: "known"}, 1, WEEK)

    with pytest.raises(PublicationMovedError):
        table.bring_to({FIRST: "collected"}, 2, WEEK)

    assert read(tmp_path, SALES) == [("1", FIRST, "known", 1)]
