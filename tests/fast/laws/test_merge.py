"""Merging states: the order does not matter, and neither does where the line between the layers lies."""

from datetime import UTC, datetime, timedelta
from functools import reduce

from hypothesis import given
from hypothesis import strategies as st

from views.core import Count, Max, Mean, Min, States, Sum, View
from views.core.cells import Addition, CellKey
from views.core.merge import merge, merge_cells
from views.sales import SALES

MIXED = View(
    name="mixed",
    source=SALES.source,
    metrics={"n": Count(), "total": Sum("x"), "least": Min("x"), "most": Max("x"), "mean": Mean("x")},
)
CUT = datetime(2026, 11, 21, 9, tzinfo=UTC)
KEY = CellKey(0, ())
NUMBERS = st.integers(-(10**15), 10**15)


def states(value: int | None) -> States:
    """What one row of that value adds to MIXED."""
    return (1, value or 0, value, value, value or 0, 0 if value is None else 1)


STATES = st.builds(states, st.none() | NUMBERS)
ROWS = st.lists(st.tuples(STATES, st.integers(-5, 5)), max_size=20)  # states, epochs from the cut


@given(left=STATES, right=STATES)
def test_merge_is_commutative(left: States, right: States) -> None:
    assert MIXED.merge(left, right) == MIXED.merge(right, left)


@given(one=STATES, two=STATES, three=STATES)
def test_merge_is_associative(one: States, two: States, three: States) -> None:
    assert MIXED.merge(MIXED.merge(one, two), three) == MIXED.merge(one, MIXED.merge(two, three))


@given(of=STATES)
def test_the_state_of_no_rows_is_neutral(of: States) -> None:
    assert MIXED.merge(of, (0, 0, None, None, 0, 0)) == of


@given(rows=ROWS)
def test_rows_before_the_cut_are_batch_alone_and_the_rest_is_speed_alone(rows: list[tuple[States, int]]) -> None:
    before = [of for of, epochs in rows if epochs < 0]
    written = [Addition(KEY, CUT + epochs * timedelta(minutes=5), of) for of, epochs in rows]

    merged = merge(MIXED, reduce(MIXED.merge, before) if before else None, written, CUT)

    assert merged == (reduce(MIXED.merge, [of for of, _ in rows]) if rows else None)


def test_a_cell_that_nobody_reached_is_none_and_not_zero() -> None:
    assert merge(MIXED, None, [], CUT) is None
    assert list(merge_cells(MIXED, [], [], CUT)) == []


def test_a_cell_says_which_layer_knows_it() -> None:
    early, late = CellKey(0, ()), CellKey(900, ())

    cells = {cell.key: cell for cell in merge_cells(MIXED, [(early, states(5))], [Addition(late, CUT, states(7))], CUT)}

    assert cells[early].speed is None
    assert cells[early].merged == states(5)
    assert cells[late].batch is None
    assert cells[late].merged == states(7)
