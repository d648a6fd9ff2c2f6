"""Identity 6 of the metrics catalogue: what a histogram says of its values, and values of it."""

from collections.abc import Sequence
from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from tests.support.rows import STAYS, histogram
from views.core import Histogram
from views.core.aggregates import percentile
from views.core.formula import bins

VALUES = st.lists(st.integers(0, 5 * STAYS[-1]), min_size=1, max_size=40)
PERCENTS = st.integers(1, 100)
OF = Histogram("x", tuple(STAYS))


def counts(values: Sequence[int]) -> list[int]:
    """How many values lie in each bin."""
    rows = [histogram(STAYS, value)[: len(STAYS)] for value in values]
    return [sum(int(row[place] or 0) for row in rows) for place in range(len(STAYS))]


def of(values: Sequence[int], percent: int) -> Fraction:
    found = percentile(STAYS, counts(values), min(values), max(values), percent)
    assert found is not None
    return found


@given(values=VALUES)
def test_6_percentiles_rise_and_lie_between_the_least_and_the_greatest_value(values: list[int]) -> None:
    p10, p50, p90 = (of(values, percent) for percent in (10, 50, 90))

    assert min(values) <= p10 <= p50 <= p90 <= max(values)
    assert len(values) * min(values) <= sum(values) <= len(values) * max(values)


@given(value=st.integers(0, 5 * STAYS[-1]), number=st.integers(1, 9), percent=PERCENTS)
def test_6_a_percentile_of_one_value_is_that_value(value: int, number: int, percent: int) -> None:
    assert of([value] * number, percent) == value


@given(values=VALUES, percent=PERCENTS)
def test_a_percentile_lies_in_the_bin_of_the_value_that_it_stands_for(values: list[int], percent: int) -> None:
    stands_for = sorted(values)[-(-percent * len(values) // 100) - 1]
    place = counts([stands_for]).index(1)
    below = STAYS[place + 1] if place + 1 < len(STAYS) else max(values)

    assert STAYS[place] <= of(values, percent) <= below


@given(values=VALUES)
def test_every_value_is_in_one_bin_and_the_shares_add_up_to_100(values: list[int]) -> None:
    found = bins(STAYS, counts(values)) or ()

    assert sum(int(item["count"] or 0) for item in found) == len(values)
    assert sum(Fraction(item["share"] or 0) for item in found) == 100
    assert OF.present((*counts(values), min(values), max(values))) == of(values, 50)


def test_percentile_and_bins_of_no_values_are_empty() -> None:
    assert percentile(STAYS, [0] * len(STAYS), None, None, 50) is None
    assert bins(STAYS, [0] * len(STAYS)) is None
