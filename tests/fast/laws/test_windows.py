"""`Windows` is the set of its windows, whatever it was made from."""

from collections.abc import Iterable

from hypothesis import given
from hypothesis import strategies as st

from views.core.local_time import STEP, Span
from views.core.windows import Windows

PLACES = st.integers(-30, 60)
SETS = st.frozensets(PLACES.map(lambda place: place * STEP), max_size=20)
SPANS = st.lists(st.tuples(PLACES, PLACES).map(lambda both: Span(both[0] * STEP, both[1] * STEP)), max_size=5)


def windows_of(spans: Iterable[Span]) -> set[int]:
    return {window for span in spans for window in range(*span, STEP)}


@given(SPANS)
def test_spans_hold_their_windows(spans: list[Span]) -> None:
    assert list(Windows.within(*spans)) == sorted(windows_of(spans))


@given(SETS, SETS, SPANS, PLACES)
def test_it_is_the_set_of_its_windows(one: frozenset[int], two: frozenset[int], spans: list[Span], place: int) -> None:
    found, window = Windows.of(one), place * STEP

    assert (list(found), len(found), bool(found)) == (sorted(one), len(one), bool(one))
    assert (window in found) == (window in one)
    for other in (Windows.of(two), Windows.within(*spans), two):
        assert list(found & other) == sorted(one & set(other))
        assert found.isdisjoint(other) == one.isdisjoint(other)
