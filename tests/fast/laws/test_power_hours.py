"""Power hours: no fewer hours hold so much, and whatever is left out is no fuller than what is in."""

from hypothesis import given
from hypothesis import strategies as st

from views.core.formula import busiest

HOURS = st.dictionaries(st.tuples(st.integers(1, 7), st.integers(0, 23)), st.integers(0, 50), max_size=40)


@given(hours=HOURS, percent=st.integers(1, 100))
def test_busiest_hours_are_the_fewest_that_hold_the_share(hours: dict[tuple[int, int], int], percent: int) -> None:
    n = sum(hours.values())
    found = busiest(hours, percent)
    if not n:
        assert found is None
        return
    held = [int(item["count"] or 0) for item in found or ()]

    assert 100 * sum(held) >= percent * n > 100 * sum(held[:-1])
    assert sorted(hours.values(), reverse=True)[: len(held)] == held


@given(hours=HOURS, percent=st.integers(1, 100))
def test_of_equal_hours_the_earlier_comes_first(hours: dict[tuple[int, int], int], percent: int) -> None:
    found = [(-int(each["count"] or 0), each["weekday"], each["hour"]) for each in busiest(hours, percent) or ()]

    assert found == sorted(found)
