"""Dead letters as the tables have them: counted, listed in order and found, each place once."""

from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from cachetools import LRUCache

from master_dataset.dead_letters import table
from master_dataset.dead_letters.dead_letter import DeadLetterQuery
from master_dataset.errors import RangeTooLongError, UnknownNameError
from master_dataset.kafka.record import RecordPosition
from master_dataset.parsing.json_bytes import MAX_BYTES
from tests.support.archiving import NOON, SECOND, TILLS, WorldDeadLetters
from tests.support.corpus.case import receipt

if TYPE_CHECKING:
    from master_dataset.dead_letters.dead_letter import DeadLetterCursor

EVERYTHING = DeadLetterQuery()
NO_TIME = receipt({"happened_at": '"yesterday"'})


@pytest.fixture
def world() -> WorldDeadLetters:
    """Five commits: dead letters 0 to 9 of tills, every second one without a time; then two of another source."""
    made = WorldDeadLetters()
    for _ in range(5):
        made.archive.receive(b"{", NO_TIME)
    made.archive.receive(b"[]", b"[]", topic="people_counts")
    return made


def offsets(
    world: WorldDeadLetters, question: DeadLetterQuery, limit: int, *, oldest_first: bool = False
) -> list[list[int]]:
    """Page by page."""
    after: DeadLetterCursor | None = None
    found: list[list[int]] = []
    while not found or after:
        page = world.queries.dead_letters.page(question, limit, after, oldest_first=oldest_first)
        found.append([each.position.offset for each in page.dead_letters])
        after = page.following
    return found


@pytest.mark.parametrize("at_first", [1, 16])
def test_pages_follow_each_other_in_both_directions(
    world: WorldDeadLetters, at_first: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table, "FIRST_FILES", at_first)
    tills = DeadLetterQuery(source=TILLS)

    assert offsets(world, tills, 4) == [[9, 8, 7, 6], [5, 4, 3, 2], [1, 0]]
    assert offsets(world, tills, 5, oldest_first=True) == [[0, 1, 2, 3, 4], [5, 6, 7, 8, 9]]


def test_what_matches_is_counted_and_listed(world: WorldDeadLetters) -> None:
    def found(**filters: object) -> tuple[dict[str, int], list[int]]:
        question = DeadLetterQuery(**filters)  # type: ignore[arg-type]
        page = world.queries.dead_letters.page(question, 100)
        return dict(world.queries.dead_letters.counts(question).dead_letters), [
            each.position.offset for each in page.dead_letters
        ]

    assert found()[0] == {"not_json": 7, "bad_time": 5}
    assert found(reason="bad_time") == ({"bad_time": 5}, [9, 7, 5, 3, 1])
    assert found(source="people_counts") == ({"not_json": 2}, [1, 0])
    assert found(source=TILLS, since=NOON + 7 * SECOND) == ({"not_json": 1, "bad_time": 2}, [9, 8, 7])
    assert found(source=TILLS, until=NOON + 2 * SECOND) == ({"not_json": 1, "bad_time": 1}, [1, 0])
    assert found(since=NOON + timedelta(days=1)) == ({}, [])


def test_where_nothing_was_ever_archived_there_is_nothing() -> None:
    world = WorldDeadLetters()

    assert world.queries.dead_letters.counts(EVERYTHING).dead_letters == {}
    assert offsets(world, EVERYTHING, 10) == [[]]
    with pytest.raises(UnknownNameError):
        world.queries.dead_letters.fetch([RecordPosition(TILLS, 0, 0)])


def test_what_the_archive_stored_twice_is_one_dead_letter(world: WorldDeadLetters) -> None:
    world.archive.again()

    assert offsets(world, DeadLetterQuery(source=TILLS), 4) == [[9, 8, 7, 6], [5, 4, 3, 2], [1, 0]]
    assert world.queries.dead_letters.counts(DeadLetterQuery(source=TILLS)).dead_letters == {
        "not_json": 5,
        "bad_time": 5,
    }
    assert len(world.queries.dead_letters.fetch([RecordPosition(TILLS, 0, 3)])) == 1


def test_conflicts_that_rebuilds_found_are_dead_letters_too(world: WorldDeadLetters) -> None:
    first, other = world.archive.receive(receipt(), receipt({"title": '"Beer"'}))
    world.archive.conflict(other)

    [dead_letter] = world.queries.dead_letters.fetch([other])

    assert world.queries.dead_letters.page(EVERYTHING, 1).dead_letters[0].position == other
    assert world.queries.dead_letters.counts(EVERYTHING).dead_letters["conflicting_duplicate"] == 1
    assert (dead_letter.reason, dead_letter.value, dead_letter.headers) == (
        "conflicting_duplicate",
        receipt({"title": '"Beer"'}),
        (),
    )
    with pytest.raises(UnknownNameError):
        world.queries.dead_letters.fetch([first])


def test_dead_letters_come_with_their_bytes_in_the_order_of_receipt(world: WorldDeadLetters) -> None:
    sent = [("trace", b"\xff"), ("none", None)]
    [odd] = world.archive.receive(b"\xff\x00", key=None, headers=sent)
    page = world.queries.dead_letters.page(EVERYTHING, 2)

    dead_letters = world.queries.dead_letters.fetch([odd, RecordPosition(TILLS, 0, 3)])
    near = world.queries.dead_letters.fetch([each.position for each in page.dead_letters], page.dead_letters)

    assert [each.position.offset for each in dead_letters] == [3, 10]
    assert (dead_letters[0].value, dead_letters[0].received_at, dead_letters[0].field) == (
        NO_TIME,
        NOON + 3 * SECOND,
        "/happened_at",
    )
    assert (dead_letters[1].key, dead_letters[1].value, dead_letters[1].headers, dead_letters[1].size) == (
        None,
        b"\xff\x00",
        tuple(sent),
        2,
    )
    assert dead_letters[1].whole()["text"] == "\\xff\x00"
    assert [each.position for each in near] == [each.position for each in page.dead_letters][::-1]


def test_of_a_value_that_no_record_may_have_the_size_is_known_and_the_beginning_kept(world: WorldDeadLetters) -> None:
    [large] = world.archive.receive(b" " * (MAX_BYTES + 7))

    [dead_letter] = world.queries.dead_letters.fetch([large])

    assert (dead_letter.size, len(dead_letter.value or b"")) == (MAX_BYTES + 7, MAX_BYTES + 1)
    assert len(dead_letter.whole()["text"]) == 65_536


def test_more_than_can_be_counted_is_refused_and_listed_all_the_same(
    world: WorldDeadLetters, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table, "MOST_COUNTED", 11)

    with pytest.raises(RangeTooLongError):
        world.queries.dead_letters.counts(EVERYTHING)
    listed = world.queries.list_page(EVERYTHING, 100)

    assert (listed.counts, len(listed.items)) == (None, 12)
    assert world.queries.dead_letters.counts(DeadLetterQuery(source=TILLS)).dead_letters == {
        "not_json": 5,
        "bad_time": 5,
    }


def test_what_was_counted_is_counted_anew_only_when_a_table_has_moved_on(
    world: WorldDeadLetters, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(world.queries.dead_letters, "_counted", LRUCache(2))
    first = world.queries.dead_letters.counts(EVERYTHING)
    others = [world.queries.dead_letters.counts(DeadLetterQuery(reason=reason)) for reason in ("bad_time", "not_json")]

    again = [world.queries.dead_letters.counts(DeadLetterQuery(reason="not_json")) for _ in range(2)]
    world.archive.receive(b"{")
    moved = world.queries.dead_letters.counts(EVERYTHING)

    assert again[0] is again[1] is others[1]
    assert (first.dead_letters["not_json"], moved.dead_letters["not_json"]) == (7, 8)


def test_a_few_newest_dead_letters_are_read_from_few_files(
    world: WorldDeadLetters, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table, "FIRST_FILES", 1)
    opened: list[int] = []
    some = table.DataFiles.some

    def counted(every: table.DataFiles, taken: Sequence[table.DataFile]) -> Any:
        opened.append(len(taken))
        return some(every, taken)

    monkeypatch.setattr(table.DataFiles, "some", counted)

    page = world.queries.dead_letters.page(DeadLetterQuery(source=TILLS), 1)

    assert [each.position.offset for each in page.dead_letters] == [9]
    assert opened == [1]
