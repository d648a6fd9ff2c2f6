"""Why a cell changed: what waited and what was miskeyed explain it exactly, and nothing else does."""

from functools import reduce

from hypothesis import given
from hypothesis import strategies as st

from batch_layer.ledger.explaining import Contribution, cause_of
from views.core.aggregates import Column
from views.core.cells import States

COLUMNS = (Column("a", "sum"), Column("b", "sum"), Column("c", "max"))
STATES = st.tuples(st.integers(-9, 9), st.integers(-9, 9), st.none() | st.integers(0, 9))
EVENTS = st.lists(STATES, max_size=5)


def merged(*events: States) -> States | None:
    def merge(left: States, right: States) -> States:
        return tuple(column.merge(a, b) for column, a, b in zip(COLUMNS, left, right, strict=True))

    return reduce(merge, events) if events else None


def named(events: list[States]) -> list[Contribution]:
    return [Contribution(str(number), states) for number, states in enumerate(events)]


@given(shown=EVENTS, waited=EVENTS)
def test_what_waited_explains_just_what_it_adds(shown: list[States], waited: list[States]) -> None:
    before, after = merged(*shown), merged(*shown, *waited)

    cause = cause_of(COLUMNS, (before, after), named(waited), [])

    assert cause == (None if before == after else "waited")


@given(shown=EVENTS, waited=EVENTS, wrong=st.integers(-9, 9).filter(bool), place=st.integers(0, 1))
def test_a_difference_that_nothing_explains_is_unexplained(
    shown: list[States], waited: list[States], wrong: int, place: int
) -> None:
    after = list(merged(*shown, *waited) or (0, 0, None))
    after[place] += wrong  # type: ignore[operator]

    cause = cause_of(COLUMNS, (merged(*shown), tuple(after)), named(waited), [])

    assert cause == (None if merged(*shown) == tuple(after) else "unexplained")


@given(
    others=EVENTS, deliveries=st.lists(st.tuples(STATES, st.integers(0, 1), st.integers(0, 1)), min_size=1, max_size=4)
)
def test_deliveries_counted_once_too_often_or_too_little_are_miskeyed(
    others: list[States], deliveries: list[tuple[States, int, int]]
) -> None:
    speed = [states for states, in_speed, _ in deliveries for _ in range(in_speed)]
    batch = [states for states, _, in_batch in deliveries for _ in range(in_batch)]
    before, after = merged(*others, *speed), merged(*others, *batch)

    cause = cause_of(COLUMNS, (before, after), [], named([states for states, _, _ in deliveries]))

    assert cause in ({None} if before == after else {"miskeyed", "waited"})


def test_a_cell_of_which_nothing_is_left_is_explained_by_what_was_taken_away() -> None:
    delivery = Contribution("7", (1, 218, None))

    assert cause_of(COLUMNS, ((1, 218, None), None), [], [delivery]) == "miskeyed"
    assert cause_of(COLUMNS, ((1, 218, None), None), [], []) == "unexplained"


def test_a_late_visit_that_became_a_longer_one_waited() -> None:
    shorter, longer = Contribution("a", (1, 200, 5)), Contribution("b", (1, 900, 4))

    assert cause_of(COLUMNS, ((7, 1200, 4), (7, 1900, 4)), [longer], [], [shorter]) == "waited"
    assert cause_of(COLUMNS, ((7, 1200, 4), (8, 1900, 4)), [longer], [], [shorter]) == "unexplained"


def test_many_visits_that_became_longer_waited_too() -> None:
    before = [Contribution(f"a{number}", (1, 100 + number, None)) for number in range(40)]
    after = [Contribution(f"b{number}", (1, 1000 + 7 * number, None)) for number in range(40)]
    shown, corrected = (merged(*(each.states for each in some)) for some in (before, after))

    assert cause_of(COLUMNS, (shown, corrected), after, [], before) == "waited"
