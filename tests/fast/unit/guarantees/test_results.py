"""Lost, duplicated and reordered are distinguished, and a number that nobody sent is no count at all.

A line is as expected only if every count is within its bound; what nobody expected has to be 0."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.guarantees.results import (
    ANY,
    COLUMNS,
    Bound,
    Counts,
    Result,
    Verdict,
    at_least,
    at_most,
    count_numbers,
    exactly,
    inversions,
    rows,
    total_counts,
)


def test_what_was_seen_once_and_in_order_is_nothing_to_report() -> None:
    assert count_numbers(4, [0, 1, 2, 3]) == Counts(lost=0, duplicated=0, reordered=0)


def test_each_kind_of_harm_is_counted_as_itself() -> None:
    assert count_numbers(4, [0, 1, 3]) == Counts(lost=1, duplicated=0, reordered=0)
    assert count_numbers(4, [0, 1, 1, 2, 3]) == Counts(lost=0, duplicated=1, reordered=0)
    assert count_numbers(4, [0, 2, 1, 3]) == Counts(lost=0, duplicated=0, reordered=1)


def test_a_copy_that_comes_later_is_a_copy_and_a_step_back() -> None:
    assert count_numbers(4, [0, 1, 2, 1, 2, 3]) == Counts(lost=0, duplicated=2, reordered=1)


def test_between_two_partitions_there_is_no_order() -> None:
    assert count_numbers(4, [2, 3], [0, 1]) == Counts(lost=0, duplicated=0, reordered=0)


def test_nothing_seen_is_everything_lost() -> None:
    assert count_numbers(3) == Counts(lost=3, duplicated=0, reordered=0)


def test_a_number_that_was_never_sent_is_refused() -> None:
    with pytest.raises(ValueError, match=r"never sent: \[7\]"):
        count_numbers(3, [0, 7, 1])


def test_what_several_were_to_get_is_counted_together() -> None:
    assert total_counts([count_numbers(3, [0, 1]), count_numbers(3, [0, 1, 2, 2])]) == Counts(
        lost=1, duplicated=1, reordered=0
    )


@given(st.lists(st.integers(0, 20)))
def test_what_is_seen_is_what_was_sent_without_the_lost_and_with_the_copies(seen: list[int]) -> None:
    found = count_numbers(21, seen)

    assert len(seen) == 21 - found.lost + found.duplicated
    assert (found.reordered == 0) == (seen == sorted(seen))


@given(st.lists(st.integers(), unique=True))
def test_a_list_turned_round_steps_back_where_it_went_on(numbers: list[int]) -> None:
    assert inversions(numbers) + inversions(numbers[::-1]) == max(len(numbers) - 1, 0)


LOSES = Result("at most once", "10 kills", 1000, Counts(10, 0, 0), {"lost": exactly(10)})


@pytest.mark.parametrize(
    ("bound", "holds", "fails", "said"),
    [
        (exactly(10), [10], [9, 11], "10"),
        (at_least(1), [1, 99], [0], ">= 1"),
        (at_most(2), [0, 2], [3], "<= 2"),
        (Bound(1, 3), [1, 3], [0, 4], ">= 1 and <= 3"),
        (ANY, [0, 99], [], "any"),
    ],
)
def test_a_bound_holds_within_and_says_so(bound: Bound, holds: list[int], fails: list[int], said: str) -> None:
    assert all(bound.holds(each) for each in holds)
    assert not any(bound.holds(each) for each in fails)
    assert str(bound) == said


def test_a_mode_that_should_lose_is_as_expected_when_it_loses() -> None:
    assert LOSES.verdict == Verdict.AS_EXPECTED


@pytest.mark.parametrize("counts", [Counts(0, 0, 0), Counts(9, 0, 0), Counts(10, 1, 0), Counts(10, 0, 1)])
def test_a_mode_that_should_lose_and_does_not_is_different(counts: Counts) -> None:
    assert Result("at most once", "10 kills", 1000, counts, LOSES.expected).verdict == Verdict.DIFFERENT


def test_an_expectation_of_something_that_was_not_counted_is_a_mistake() -> None:
    with pytest.raises(KeyError, match="log"):
        _ = Result("no idempotence", "lost acks", 10, Counts(0, 0, 0), {"log": exactly(10)}).verdict


def test_a_time_decides_nothing() -> None:
    line = Result("batches", "load", 10, Counts(0, 0, 0), printed={"delay p95": "4,776 ms"})

    assert line.verdict == Verdict.AS_EXPECTED


def test_the_table_says_what_was_expected_beside_what_was_counted() -> None:
    line = Result(
        "retries", "lost acks", 1000, Counts(0, 10, 0), {"duplicated": exactly(10)}, {"log": 1010}, {"rate": "9/s"}
    )

    [row] = rows({"id": "P06", "shows": "duplicates", "why": "", "lines": [line.as_json()], "verdict": "as expected"})

    assert dict(zip(COLUMNS, row, strict=True)) == {
        "": "P06",
        "delivery mode": "retries",
        "injected fault": "lost acks",
        "sent": "1,000",
        "lost": "0",
        "duplicated": "10",
        "reordered": "0",
        "expected": "duplicated 10",
        "also counted": "log 1,010, rate 9/s",
        "verdict": "as expected",
    }


def test_an_experiment_that_was_skipped_has_a_row_that_says_why() -> None:
    [row] = rows({"id": "P12", "shows": "acks", "why": "needs three nodes", "lines": [], "verdict": "skipped"})

    assert row == ("P12", "acks", "needs three nodes", "", "", "", "", "", "", "skipped")
