"""Replays are kept with concurrent writers, and after compaction."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

from master_dataset.dead_letters.replay_history import REPLAYS, Replay, ReplayTable, SendStatus
from master_dataset.delta.compaction import Compaction
from master_dataset.errors import OperatorError
from master_dataset.kafka.record import RecordPosition
from tests.support.archiving import NOON, SECOND, TILLS

DEAD_LETTER = RecordPosition(TILLS, 0, 7)
BEGUN = Replay(DEAD_LETTER, "run", NOON, "anna", "/price", SendStatus.BEGUN, None, date(2026, 11, 21), -1)
SENT = replace(BEGUN, sending=SendStatus.SENT, to=RecordPosition(TILLS, 1, 9))


@pytest.fixture
def table(tmp_path: Path) -> ReplayTable:
    made = ReplayTable(str(tmp_path))
    made.create()
    made.create()
    return made


def test_what_is_known_last_of_a_replay_counts_in_whatever_order_it_is_read(table: ReplayTable) -> None:
    again = replace(SENT, run="again", at=NOON + SECOND, to=None, sending=SendStatus.UNKNOWN)

    table.append([SENT, again])
    table.append([BEGUN])

    assert table.of([DEAD_LETTER, RecordPosition(TILLS, 0, 8)]) == {DEAD_LETTER: [SENT, again]}
    assert table.sent(None).to_pylist() == [DEAD_LETTER._asdict()]
    assert table.sent("people_counts").num_rows == 0


def test_where_nothing_was_ever_sent_again_nothing_is_known(table: ReplayTable, tmp_path: Path) -> None:
    for each, version in ((table, 0), (ReplayTable(f"{tmp_path}/nowhere"), -1)):
        assert (each.of([DEAD_LETTER]), each.sent(None).num_rows, each.version()) == ({}, 0, version)


@pytest.mark.usefixtures("table")
def test_many_write_at_once_and_nothing_is_forgotten(tmp_path: Path) -> None:
    def written(number: int) -> None:
        for turn in range(4):
            own = replace(SENT, run=f"{number} {turn}", at=NOON + (4 * number + turn) * SECOND)
            ReplayTable(str(tmp_path)).append([own])

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(written, range(8)))

    assert len(ReplayTable(str(tmp_path)).of([DEAD_LETTER])[DEAD_LETTER]) == 32


def test_files_that_were_put_together_say_the_same(table: ReplayTable, tmp_path: Path) -> None:
    for number in range(5):
        table.append([replace(SENT, run=str(number), at=NOON + number * SECOND)])
    before = table.of([DEAD_LETTER])

    done = Compaction(lambda: None, 7).run(f"{tmp_path}/{REPLAYS}", lambda *_: None)

    assert (done.files_before, done.files_after) == (5, 1)
    assert table.of([DEAD_LETTER]) == before


def test_a_table_that_is_not_there_or_cannot_be_written_is_named_with_what_to_do(
    table: ReplayTable, tmp_path: Path
) -> None:
    (log,) = (tmp_path / REPLAYS / "_delta_log").iterdir()
    log.with_stem(f"{1:020}").mkdir()

    with pytest.raises(OperatorError, match="has no table `replays`; nothing was sent"):
        ReplayTable(f"{tmp_path}/nowhere").append([SENT])
    with pytest.raises(OperatorError, match="`replays` of the master dataset cannot be written"):
        table.append([SENT])
