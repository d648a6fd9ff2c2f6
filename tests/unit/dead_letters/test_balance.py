"""What was received is an event, a duplicate or a dead letter: nothing is nowhere, and what is would be told."""

import shutil
from pathlib import Path

import pytest

from master_dataset.balance import balance
from master_dataset.topic_census import Census
from tests.corpus.case import receipt
from tests.world.archiving import TILLS, WorldArchive

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


def told(archive: WorldArchive, first: int = 0, until: int = 6, received: int | None = None) -> dict[str, object]:
    records = until - first if received is None else received
    found = balance(archive.root, TILLS, {0: Census(first, until, records)})
    return {name: value for name, value in found.shown().items() if name != "topic"}


def test_every_record_has_one_place(archive: WorldArchive) -> None:
    assert told(archive) == {
        "received": 6, "events": 2, "duplicates": 1, "missing": 0,
        "dead_letters": {"conflicting_duplicate": 1, "not_json": 1, "bad_time": 1},
    }  # fmt: skip


def test_only_what_lies_before_the_positions_counts(archive: WorldArchive) -> None:
    assert told(archive, until=5)["dead_letters"] == {"conflicting_duplicate": 1, "not_json": 1}
    assert told(archive, until=0) == {"received": 0, "events": 0, "duplicates": 0, "missing": 0, "dead_letters": {}}


def test_a_repeat_of_what_the_topic_holds_no_more_is_a_repeat(archive: WorldArchive) -> None:
    found = told(archive, first=1)

    assert (found["events"], found["duplicates"], found["missing"]) == (1, 1, 0)


def test_a_record_that_is_nowhere_is_missing(archive: WorldArchive) -> None:
    assert told(archive, received=7)["missing"] == 1


def test_without_tables_everything_is_missing(archive: WorldArchive) -> None:
    for each in Path(archive.root).iterdir():
        shutil.rmtree(each)

    assert told(archive)["missing"] == 6


def test_a_topic_that_nobody_has_read_yet_misses_nothing(archive: WorldArchive) -> None:
    assert balance(archive.root, TILLS, {}).shown()["missing"] == 0
