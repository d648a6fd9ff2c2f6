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
from tests.support.archiving import NOON, SECOND, TILLS, WorldLetters
from tests.support.corpus.case import receipt

if TYPE_CHECKING:
    from master_dataset.dead_letters.dead_letter import DeadLetterCursor

EVERYTHING = DeadLetterQuery()
NO_TIME = receipt({"happened_at": '"yesterday"'})


@pytest.fixture
def world() -> WorldLetters:
    """Five commits: letters 0 to 9 of tills, every second one without a time; then two of another source."""
    made = WorldLetters()
    for _ in range(5):
        made.archive.receive(b"{", NO_TIME)
    made.archive.receive(b"[]", b"[]", topic="people_counts")
    return made


def offsets(
    world: WorldLetters, question: DeadLetterQuery, limit: int, *, oldest_first: bool = False
) -> list[list[int]]:
    """Page by page."""
    after: DeadLetterCursor | None = None
    found: list[list[int]] = []
    while not found or after:
        page = world.desk.letters.page(question, limit, after, oldest_first=oldest_first)
        found.append([each.position.offset for each in page.letters])
        after = page.following
    return found


@pytest.mark.parametrize("at_first", [1, 16])
def test_pages_follow_each_other_in_both_directions(
    world: WorldLetters, at_first: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table, "FIRST_FILES", at_first)
    tills = DeadLetterQuery(source=TILLS)

    assert offsets(world, tills, 4) == [[9, 8, 7, 6], [5, 4, 3, 2], [1, 0]]
    assert offsets(world, tills, 5, oldest_first=True) == [[0, 1, 2, 3, 4], [5, 6, 7, 8, 9]]


def test_what_matches_is_counted_and_listed(world: WorldLetters) -> None:
    def found(**filters: object) -> tuple[dict[str, int], list[int]]:
        question = DeadLetterQuery(**filters)  # type: ignore[arg-type]
        page = world.desk.letters.page(question, 100)
        return dict(world.desk.letters.counts(question).letters), [each.position.offset for each in page.letters]

    assert found()[0] == {"not_json": 7, "bad_time": 5}
    assert found(reason="bad_time") == ({"bad_time": 5}, [9, 7, 5, 3, 1])
    assert found(source="people_counts") == ({"not_json": 2}, [1, 0])
    assert found(source=TILLS, since=NOON + 7 * SECOND) == ({"not_json": 1, "bad_time": 2}, [9, 8, 7])
    assert found(source=TILLS, until=NOON + 2 * SECOND) == ({"not_json": 1, "bad_time": 1}, [1, 0])
    assert found(since=NOON + timedelta(days=1)) == ({}, [])


def test_where_nothing_was_ever_archived_there_is_nothing() -> None:
    world = WorldLetters()

    assert world.desk.letters.counts(EVERYTHING).letters == {}
    assert offsets(world, EVERYTHING, 10) == [[]]
    with pytest.raises(UnknownNameError):
        world.desk.letters.fetch([RecordPosition(TILLS, 0, 0)])


def test_what_the_archive_stored_twice_is_one_dead_letter(world: WorldLetters) -> None:
    world.archive.again()

    assert offsets(world, DeadLetterQuery(source=TILLS), 4) == [[9, 8, 7, 6], [5, 4, 3, 2], [1, 0]]
    assert world.desk.letters.counts(DeadLetterQuery(source=TILLS)).letters == {"not_json": 5, "bad_time": 5}
    assert len(world.desk.letters.fetch([RecordPosition(TILLS, 0, 3)])) == 1


def test_conflicts_that_rebuilds_found_are_dead_letters_too(world: WorldLetters) -> None:
    first, other = world.archive.receive(receipt(), receipt({"title": '"Beer"'}))
    world.archive.conflict(other)

    [letter] = world.desk.letters.fetch([other])

    assert world.desk.letters.page(EVERYTHING, 1).letters[0].position == other
    assert world.desk.letters.counts(EVERYTHING).letters["conflicting_duplicate"] == 1
    assert (letter.reason, letter.value, letter.headers) == ("conflicting_duplicate", receipt({"title": '"Beer"'}), ())
    with pytest.raises(UnknownNameError):
        world.desk.letters.fetch([first])


def test_letters_come_with_their_bytes_in_the_order_of_receipt(world: WorldLetters) -> None:
    sent = [("trace", b"\xff"), ("none", None)]
    [odd] = world.archive.receive(b"\xff\x00", key=None, headers=sent)
    page = world.desk.letters.page(EVERYTHING, 2)

    letters = world.desk.letters.fetch([odd, RecordPosition(TILLS, 0, 3)])
    near = world.desk.letters.fetch([each.position for each in page.letters], page.letters)

    assert [each.position.offset for each in letters] == [3, 10]
    assert (letters[0].value, letters[0].received_at, letters[0].field) == (NO_TIME, NOON + 3 * SECOND, "/happened_at")
    assert (letters[1].key, letters[1].value, letters[1].headers, letters[1].size) == (
        None,
        b"\xff\x00",
        tuple(sent),
        2,
    )
    assert letters[1].whole()["text"] == "\\xff\x00"
    assert [each.position for each in near] == [each.position for each in page.letters][::-1]


def test_of_a_value_that_no_record_may_have_the_size_is_known_and_the_beginning_kept(world: WorldLetters) -> None:
    [large] = world.archive.receive(b" " * (MAX_BYTES + 7))

    [letter] = world.desk.letters.fetch([large])

    assert (letter.size, len(letter.value or b"")) == (MAX_BYTES + 7, MAX_BYTES + 1)
    assert len(letter.whole()["text"]) == 65_536


def test_more_than_can_be_counted_is_refused_and_listed_all_the_same(
    world: WorldLetters, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table, "MOST_COUNTED", 11)

    with pytest.raises(RangeTooLongError):
        world.desk.letters.counts(EVERYTHING)
    listed = world.desk.list_page(EVERYTHING, 100)

    assert (listed.counts, len(listed.items)) == (None, 12)
    assert world.desk.letters.counts(DeadLetterQuery(source=TILLS)).letters == {"not_json": 5, "bad_time": 5}


def test_what_was_counted_is_counted_anew_only_when_a_table_has_moved_on(
    world: WorldLetters, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(world.desk.letters, "_counted", LRUCache(2))
    first = world.desk.letters.counts(EVERYTHING)
    others = [world.desk.letters.counts(DeadLetterQuery(reason=reason)) for reason in ("bad_time", "not_json")]

    again = [world.desk.letters.counts(DeadLetterQuery(reason="not_json")) for _ in range(2)]
    world.archive.receive(b"{")
    moved = world.desk.letters.counts(EVERYTHING)

    assert again[0] is again[1] is others[1]
    assert (first.letters["not_json"], moved.letters["not_json"]) == (7, 8)


def test_a_few_newest_dead_letters_are_read_from_few_files(
    world: WorldLetters, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table, "FIRST_FILES", 1)
    opened: list[int] = []
    some = table.DataFiles.some

    def counted(every: table.DataFiles, taken: Sequence[table.DataFile]) -> Any:
        opened.append(len(taken))
        return some(every, taken)

    monkeypatch.setattr(table.DataFiles, "some", counted)

    page = world.desk.letters.page(DeadLetterQuery(source=TILLS), 1)

    assert [each.position.offset for each in page.letters] == [9]
    assert opened == [1]
