"""What was received is an event, a duplicate or a dead letter; whatever is none of them is reported."""

import shutil
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from hypothesis import given
from hypothesis import strategies as st

from master_dataset.archive import reconcile as reconciling
from master_dataset.archive.reconcile import compare_offsets, reconcile
from master_dataset.kafka.offset_audit import OffsetAudit
from master_dataset.kafka.record import RecordPosition
from master_dataset.storage import open_table
from tests.support.archiving import TILLS, WorldArchive
from tests.support.corpus.case import receipt

OFFSETS = st.sets(st.integers(0, 29))
Runs = list[tuple[int, int]]
OTHER_DAY = receipt({"happened_at": '"2026-03-01T09:05:00Z"'})
BEER = receipt({"title": '"Beer"'})


@pytest.fixture
def archive() -> WorldArchive:
    """Offsets: 0 an event, 1 its duplicate, 2 its conflict, 3 another event, 4 and 5 none; kept twice from 3 on."""
    made = WorldArchive()
    made.receive(receipt(), receipt(), BEER)
    made.receive(OTHER_DAY, b"{", receipt({"happened_at": "7"}))
    made.again()
    return made


def report(archive: WorldArchive, first: int = 0, until: int = 6, runs: Runs | None = None) -> dict[str, object]:
    """`runs`: offsets of records in the topic; all by default."""
    lie = [(first, until)] if runs is None else runs
    found = reconcile(archive.root, TILLS, {0: OffsetAudit(first, until, lie)})
    return {name: value for name, value in found.shown().items() if name != "topic"}


def test_every_record_has_one_place(archive: WorldArchive) -> None:
    assert report(archive) == {
        "received": 6,
        "events": 2,
        "duplicates": 1,
        "missing": 0,
        "twice": 0,
        "phantom": 0,
        "dead_letters": {"conflicting_duplicate": 1, "not_json": 1, "bad_time": 1},
    }


@pytest.mark.parametrize("rows", [1, 100])
def test_days_that_are_read_together_say_the_same(
    archive: WorldArchive, monkeypatch: pytest.MonkeyPatch, rows: int
) -> None:
    for _ in range(3):
        archive.receive(OTHER_DAY, receipt())
    monkeypatch.setattr(reconciling, "_ROWS_TOGETHER", rows)

    found = report(archive, until=12)

    assert (found["events"], found["duplicates"], found["missing"]) == (2, 7, 0)


def test_one_hash_on_two_days_is_two_events(archive: WorldArchive, tmp_path: Path) -> None:
    rows = open_table(f"{archive.root}/{TILLS}").to_pyarrow_dataset().to_table()
    at = rows.schema.get_field_index("identity_hash")
    same = rows.set_column(at, "identity_hash", pa.array([7] * len(rows), pa.int64()))
    write_deltalake(f"{tmp_path}/{TILLS}", same, partition_by=["day"])

    found = reconcile(str(tmp_path), TILLS, {0: OffsetAudit(0, 6, [(0, 6)])})

    assert found.events == 2


def test_only_what_lies_before_the_positions_counts(archive: WorldArchive) -> None:
    assert report(archive, until=5)["dead_letters"] == {"conflicting_duplicate": 1, "not_json": 1}
    assert report(archive, until=0) == {
        "received": 0,
        "events": 0,
        "duplicates": 0,
        "missing": 0,
        "twice": 0,
        "phantom": 0,
        "dead_letters": {},
    }


def test_a_repeat_of_what_the_topic_holds_no_more_is_a_repeat(archive: WorldArchive) -> None:
    found = report(archive, first=1)

    assert (found["events"], found["duplicates"], found["missing"]) == (1, 1, 0)


def test_a_record_that_is_nowhere_is_missing(archive: WorldArchive) -> None:
    assert report(archive, until=7)["missing"] == 1


def test_a_row_of_a_place_without_a_record_is_a_phantom(archive: WorldArchive) -> None:
    found = report(archive, runs=[(0, 1), (2, 6)])

    assert (found["received"], found["missing"], found["phantom"]) == (5, 0, 1)


def test_one_record_lost_and_one_kept_twice_do_not_make_up_for_each_other(archive: WorldArchive) -> None:
    archive.dead_letter_of(RecordPosition(TILLS, 0, 3))

    found = report(archive, until=7)

    assert (found["missing"], found["twice"], found["phantom"]) == (1, 1, 0)


def test_without_tables_everything_is_missing(archive: WorldArchive) -> None:
    for each in Path(archive.root).iterdir():
        shutil.rmtree(each)

    assert report(archive)["missing"] == 6


def test_a_topic_that_nobody_has_read_yet_misses_nothing(archive: WorldArchive) -> None:
    assert reconcile(archive.root, TILLS, {}).shown()["missing"] == 0


@given(topic=OFFSETS, events=OFFSETS, dead_letters=OFFSETS)
def test_places_are_compared_as_sets_would_be(topic: set[int], events: set[int], dead_letters: set[int]) -> None:
    audit = OffsetAudit(0, 30, [(offset, offset + 1) for offset in sorted(topic)])

    found = compare_offsets(
        audit, *(pa.chunked_array([sorted(each), sorted(each)], pa.int64()) for each in (events, dead_letters))
    )

    assert found == (
        len(topic - events - dead_letters),
        len(events & dead_letters),
        len((events | dead_letters) - topic),
    )
