"""Only what is done without a gap may be committed, and what was let go is read again, each record once."""

from random import Random
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from master_dataset.kafka.consumer import ConsumerRecord, Done
from master_dataset.kafka.consumer.key_queue import KeyQueue
from master_dataset.kafka.consumer.partition import Partition


class Played:
    """A partition whose records lie at `offsets`, of the keys `keys`; how it is read and worked off is played."""

    def __init__(self, offsets: list[int], keys: str = "ab") -> None:
        of = [keys[at % len(keys)].encode() for at in range(len(offsets))]
        self.records = [ConsumerRecord("alerts", 0, at, key, b"", 0) for at, key in zip(offsets, of, strict=True)]
        self.partition, self.at, self.done = Partition(), 0, list[ConsumerRecord]()

    def read(self, number: int = 1) -> None:
        for _ in range(min(number, len(self.records) - self.at)):
            record = self.records[self.at]
            self.at += 1
            assert not self.partition.went_back(record.offset)
            if self.partition.admit(record, lambda _: True):
                handler: Any = Done
                self.partition.queues.setdefault(record.key, KeyQueue(handler, 1, 1)).waiting.append(record)

    def reach_end(self) -> None:
        """The end is told, if it is reached: two markers lie behind the last record."""
        if self.at == len(self.records):
            self.partition.reach_end(self.records[-1].offset + 3)

    def work(self, key: bytes) -> None:
        """Finish one record of the key; a key queue without any ends."""
        if (queue := self.partition.queues.get(key)) is not None:
            self.done.append(queue.waiting.popleft())
            if not queue.waiting:
                assert self.partition.end_queue(key) == 0

    def go_back(self) -> None:
        if (offset := self.partition.seek_offset()) is not None:
            self.at = next(at for at, record in enumerate(self.records) if record.offset >= offset)


def test_a_record_that_is_done_before_an_earlier_one_does_not_move_the_position() -> None:
    played = Played([5, 6, 8])
    played.read(3)

    played.work(b"b")
    before = played.partition.position
    played.work(b"a")

    assert (before, played.partition.position) == (5, 8)


def test_what_lies_between_two_offsets_is_no_record() -> None:
    played = Played([5, 9])
    played.read(2)

    played.work(b"a")
    between = played.partition.position
    played.work(b"b")

    assert (between, played.partition.position) == (9, 10)


def test_what_lies_between_the_last_record_and_the_end_is_no_record() -> None:
    played = Played([5, 6])
    played.read(2)

    played.work(b"b")
    played.reach_end()
    waiting = played.partition.position
    played.work(b"a")

    assert (waiting, played.partition.position) == (5, 9)


def test_where_nothing_but_markers_was_left_to_read_the_position_is_the_end() -> None:
    partition = Partition()

    partition.reach_end(7)

    assert (partition.position, partition.went_back(7), partition.went_back(6)) == (7, False, True)


def test_an_end_that_went_back_moves_no_position() -> None:
    played = Played([5, 6])
    played.read(2)
    for key in (b"a", b"b"):
        played.work(key)

    played.partition.reach_end(3)

    assert (played.partition.position, played.partition.went_back(3)) == (7, True)


def test_what_was_dropped_and_deleted_before_it_was_read_again_is_not_waited_for_at_the_end() -> None:
    played = Played(list(range(8)))
    played.read(8)
    played.partition.drop_tail(b"a", 1)
    for key in (b"a", b"b", b"b", b"b", b"b"):
        played.work(key)
    played.go_back()

    played.partition.reach_end(8)

    assert (played.partition.dropped_records, played.partition.position) == (0, 8)


def test_before_anything_was_read_there_is_no_position() -> None:
    assert Partition().position is None


def test_what_was_let_go_holds_the_position_and_comes_again_in_order_when_its_key_gets_on() -> None:
    played = Played(list(range(8)))
    played.read(6)

    gone = played.partition.drop_tail(b"a", 1)
    played.read(2)
    for _ in range(4):
        played.work(b"b")
    held, left = played.partition.position, played.partition.dropped_records
    played.work(b"a")
    played.go_back()
    played.read(8)
    again = [record.offset for record in played.partition.queues[b"a"].waiting]

    assert (gone, held, left) == (2, 0, 3)
    assert (again, played.partition.dropped_records, played.partition.position) == ([2, 4, 6], 0, 2)
    assert b"b" not in played.partition.queues


def test_while_a_key_is_read_again_nothing_of_it_is_committed_that_was_not_reached_yet() -> None:
    played = Played(list(range(9)))
    played.read(9)
    played.partition.drop_tail(b"a", 1)
    for _ in range(4):
        played.work(b"b")
    played.work(b"a")
    played.go_back()

    played.read(1)
    played.work(b"a")

    assert played.partition.position == 3


def test_what_the_topic_keeps_no_more_is_waited_for_no_longer() -> None:
    played = Played(list(range(8)))
    played.read(8)
    played.partition.drop_tail(b"a", 1)
    played.work(b"a")
    played.records = played.records[5:]  # up to 4 they are deleted
    played.go_back()

    played.read(3)
    for key in (b"a", b"b", b"b", b"b", b"b"):
        played.work(key)

    assert [record.offset for record in played.done if record.key == b"a"] == [0, 6]
    assert (played.partition.dropped_records, played.partition.position) == (0, 8)


@given(
    st.lists(st.integers(0, 10_000), min_size=1, unique=True, max_size=60).map(sorted),
    st.sampled_from(["a", "ab", "abcde"]),
    st.integers(0, 1_000_000),
)
def test_whatever_is_let_go_meanwhile_each_record_is_done_once_in_order_and_all_before_the_position_are(
    offsets: list[int], keys: str, seed: int
) -> None:
    played, chance = Played(offsets, keys), Random(seed)

    for step in range(10_000):
        key = chance.choice(keys).encode()
        match chance.choice(("read", "work", "go back", "let go", "reach the end")):
            case "read":
                played.read(chance.randint(1, 5))
            case "work":
                played.work(key)
            case "go back":
                played.go_back()
            case "reach the end":
                played.reach_end()
            case _ if step < 300 and key in played.partition.queues:
                played.partition.drop_tail(key, 1)
        done = {record.offset for record in played.done}
        assert {each for each in offsets if each < (played.partition.position or 0)} <= done
        if step > 300 and len(done) == len(offsets):
            break

    for each in keys.encode():
        own = [record.offset for record in played.done if record.key[0] == each]
        assert own == [record.offset for record in played.records if record.key[0] == each]
    played.read(len(offsets))
    played.reach_end()
    assert (played.partition.position, played.partition.dropped_records) == (offsets[-1] + 3, 0)


def test_a_record_that_is_never_done_makes_nobody_remember_all_that_came_behind_it() -> None:
    played = Played(list(range(10_000)))
    played.read(1)

    for _ in range(9_999):
        played.read(1)
        played.partition.queues[b"a"].drop_tail(1)
        played.work(b"b")

    assert played.partition.position == 0
    assert list(played.partition.queues) == [b"a"]
