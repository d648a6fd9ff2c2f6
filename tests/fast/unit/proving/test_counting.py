"""Lost, duplicated and reordered are told apart, and a number that nobody sent is no count at all."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.guarantees.results import Tally, inversions, tally, together


def test_what_was_seen_once_and_in_order_is_nothing_to_report() -> None:
    assert tally(4, [0, 1, 2, 3]) == Tally(lost=0, duplicated=0, reordered=0)


def test_each_kind_of_harm_is_counted_as_itself() -> None:
    assert tally(4, [0, 1, 3]) == Tally(lost=1, duplicated=0, reordered=0)
    assert tally(4, [0, 1, 1, 2, 3]) == Tally(lost=0, duplicated=1, reordered=0)
    assert tally(4, [0, 2, 1, 3]) == Tally(lost=0, duplicated=0, reordered=1)


def test_a_copy_that_comes_later_is_a_copy_and_a_step_back() -> None:
    assert tally(4, [0, 1, 2, 1, 2, 3]) == Tally(lost=0, duplicated=2, reordered=1)


def test_between_two_partitions_there_is_no_order() -> None:
    assert tally(4, [2, 3], [0, 1]) == Tally(lost=0, duplicated=0, reordered=0)


def test_nothing_seen_is_everything_lost() -> None:
    assert tally(3) == Tally(lost=3, duplicated=0, reordered=0)


def test_a_number_that_was_never_sent_is_refused() -> None:
    with pytest.raises(ValueError, match=r"never sent: \[7\]"):
        tally(3, [0, 7, 1])


def test_what_several_were_to_get_is_counted_together() -> None:
    assert together([tally(3, [0, 1]), tally(3, [0, 1, 2, 2])]) == Tally(lost=1, duplicated=1, reordered=0)


@given(st.lists(st.integers(0, 20)))
def test_what_is_seen_is_what_was_sent_without_the_lost_and_with_the_copies(seen: list[int]) -> None:
    found = tally(21, seen)

    assert len(seen) == 21 - found.lost + found.duplicated
    assert (found.reordered == 0) == (seen == sorted(seen))


@given(st.lists(st.integers(), unique=True))
def test_a_list_turned_round_steps_back_where_it_went_on(numbers: list[int]) -> None:
    assert inversions(numbers) + inversions(numbers[::-1]) == max(len(numbers) - 1, 0)
