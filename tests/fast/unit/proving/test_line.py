"""A line is as expected only if every count is within its bound; what nobody expected has to be 0."""

import pytest

from lab.guarantees.results import ANY, COLUMNS, Bound, Line, Tally, Verdict, at_least, at_most, exactly, rows

LOSES = Line("at most once", "10 kills", 1000, Tally(10, 0, 0), {"lost": exactly(10)})


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
    assert all(bound.holds(count) for count in holds)
    assert not any(bound.holds(count) for count in fails)
    assert str(bound) == said


def test_a_mode_that_should_lose_is_as_expected_when_it_loses() -> None:
    assert LOSES.verdict == Verdict.AS_EXPECTED


@pytest.mark.parametrize("tally", [Tally(0, 0, 0), Tally(9, 0, 0), Tally(10, 1, 0), Tally(10, 0, 1)])
def test_a_mode_that_should_lose_and_does_not_is_different(tally: Tally) -> None:
    assert Line("at most once", "10 kills", 1000, tally, LOSES.expected).verdict == Verdict.DIFFERENT


def test_an_expectation_of_something_that_was_not_counted_is_a_mistake() -> None:
    with pytest.raises(KeyError, match="log"):
        _ = Line("no idempotence", "lost acks", 10, Tally(0, 0, 0), {"log": exactly(10)}).verdict


def test_a_time_decides_nothing() -> None:
    line = Line("batches", "load", 10, Tally(0, 0, 0), printed={"delay p95": "4,776 ms"})

    assert line.verdict == Verdict.AS_EXPECTED


def test_the_table_says_what_was_expected_beside_what_was_counted() -> None:
    line = Line(
        "retries", "lost acks", 1000, Tally(0, 10, 0), {"duplicated": exactly(10)}, {"log": 1010}, {"rate": "9/s"}
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
        "counted besides": "log 1,010, rate 9/s",
        "verdict": "as expected",
    }


def test_an_experiment_that_was_skipped_has_a_row_that_says_why() -> None:
    [row] = rows({"id": "P12", "shows": "acks", "why": "needs three nodes", "lines": [], "verdict": "skipped"})

    assert row == ("P12", "acks", "needs three nodes", "", "", "", "", "", "", "skipped")
