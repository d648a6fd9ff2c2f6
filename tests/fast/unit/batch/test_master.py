"""The days of events that were received in a span, by the log and, where that does not decide, by the files."""

from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from hypothesis import given
from hypothesis import strategies as st

from batch_layer.master import DataFile, Master

NOON = datetime(2026, 11, 17, 12, tzinfo=UTC)
HOUR, MILLISECOND = timedelta(hours=1), timedelta(milliseconds=1)
FIRST, SECOND, THIRD = date(2026, 11, 1), date(2026, 11, 2), date(2026, 11, 3)


def append(table: Path, day: date, *received: datetime) -> None:
    """One file of that day."""
    rows = {"received_at": pa.array(received, pa.timestamp("us", "UTC")), "day": pa.array([day] * len(received))}
    write_deltalake(str(table), pa.table(rows), mode="append", partition_by=["day"])


@pytest.fixture
def table(tmp_path: Path) -> Path:
    append(tmp_path, FIRST, NOON - HOUR, NOON - MILLISECOND)
    append(tmp_path, SECOND, NOON - HOUR, NOON)
    append(tmp_path, THIRD, NOON + HOUR)
    return tmp_path


def test_days_are_those_of_events_received_from_one_moment_until_just_before_another(table: Path) -> None:
    master = Master.newest(str(table))

    assert master.days_received(NOON, NOON + HOUR) == {SECOND}
    assert master.days_received(NOON, NOON + HOUR + MILLISECOND) == {SECOND, THIRD}
    assert master.days_received(NOON - MILLISECOND, NOON) == {FIRST}
    assert master.days_received(NOON + MILLISECOND, NOON + HOUR) == set()
    assert master.days_received(NOON + 2 * HOUR, NOON + 3 * HOUR) == set()


def test_files_that_the_log_rules_out_are_not_opened(table: Path) -> None:
    for uri in DeltaTable(str(table)).file_uris():
        if f"day={SECOND}" not in uri:
            Path(uri).unlink()

    assert Master.newest(str(table)).days_received(NOON, NOON + HOUR) == {SECOND}


MICROSECONDS = st.integers(0, 5_000)


@given(
    received_us=st.lists(MICROSECONDS, min_size=1, max_size=3),
    since_us=MICROSECONDS,
    before_us=MICROSECONDS,
    is_said=st.booleans(),
)
def test_a_file_with_a_row_of_the_span_is_never_ruled_out(
    received_us: list[int], since_us: int, before_us: int, *, is_said: bool
) -> None:
    """The log says milliseconds, rounded down, or nothing."""
    oldest, newest = (NOON + MILLISECOND * (each // 1000) for each in (min(received_us), max(received_us)))
    file = DataFile("", 0, FIRST, *((oldest, newest) if is_said else (None, None)))
    since, before = (NOON + timedelta(microseconds=each) for each in (since_us, before_us))

    if any(since_us <= each < before_us for each in received_us):
        assert file.may_be_received(since, before)
