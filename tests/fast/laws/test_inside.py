"""Identity 8 of the metrics catalogue: how many people are inside."""

from itertools import accumulate

from hypothesis import given
from hypothesis import strategies as st

from views.core.formula import inside

FLOWS = st.lists(st.tuples(st.integers(0, 99), st.integers(0, 99)), min_size=1, max_size=96)


@given(flows=FLOWS)
def test_8_there_are_never_fewer_than_nobody_inside(flows: list[tuple[int, int]]) -> None:
    assert min(inside(flows)) >= 0


@given(flows=FLOWS)
def test_8_where_the_floor_was_not_hit_those_inside_are_those_who_came_and_did_not_leave(
    flows: list[tuple[int, int]],
) -> None:
    drifts = list(accumulate(people_in - people_out for people_in, people_out in flows))
    held = list(inside(flows))

    if min(drifts) >= 0:
        assert held == drifts
    assert all(one >= other for one, other in zip(held, drifts, strict=True))


@given(flows=FLOWS, more=st.integers(1, 99))
def test_exits_beyond_the_number_inside_are_not_carried_over(flows: list[tuple[int, int]], more: int) -> None:
    *_, held = inside(flows)

    assert list(inside([*flows, (0, held + more), (more, 0)]))[-2:] == [0, more]
