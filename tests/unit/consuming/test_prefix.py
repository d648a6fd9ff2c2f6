"""Only what is done without a gap may be committed."""

from hypothesis import given
from hypothesis import strategies as st

from master_dataset.consuming.prefix import Prefix


def test_a_record_that_is_done_before_an_earlier_one_does_not_move_the_position() -> None:
    prefix = Prefix()
    for offset in (5, 6, 7):
        prefix.begin(offset)

    prefix.done(6)
    before = prefix.position
    prefix.done(5)

    assert (before, prefix.position) == (5, 7)


def test_a_gap_between_two_offsets_is_no_record() -> None:
    prefix = Prefix()
    prefix.begin(5)
    prefix.begin(9)

    prefix.done(5)
    between = prefix.position
    prefix.done(9)

    assert (between, prefix.position) == (9, 10) or (between, prefix.position) == (6, 10)


@given(st.lists(st.integers(0, 10_000), min_size=1, unique=True).map(sorted), st.randoms(use_true_random=False))
def test_in_whatever_order_records_are_done_all_before_the_position_are(offsets: list[int], chance: object) -> None:
    prefix, done = Prefix(), set()
    for offset in offsets:
        prefix.begin(offset)
    order = list(offsets)
    chance.shuffle(order)  # type: ignore[attr-defined]

    for offset in order:
        prefix.done(offset)
        done.add(offset)
        assert {each for each in offsets if each < (prefix.position or 0)} <= done

    assert prefix.position == offsets[-1] + 1


def test_a_record_that_is_never_done_makes_nobody_remember_all_that_came_behind_it() -> None:
    prefix = Prefix()
    prefix.begin(0)

    for offset in range(1, 10_000):
        prefix.begin(offset)
        prefix.done(offset)

    assert prefix.position == 0
    assert len(prefix) == 1
