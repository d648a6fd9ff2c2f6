"""A cut is a multiple of the epoch, whatever it has to lie behind."""

from datetime import datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from views.core.cut import UNIX_EPOCH, ceil_to, floor_to

LENGTHS = st.sampled_from([1, 10, 60, 300]).map(lambda seconds: timedelta(seconds=seconds))
INSTANTS = st.integers(0, 10**10).map(lambda millis: UNIX_EPOCH + timedelta(milliseconds=millis))


@given(INSTANTS, LENGTHS)
def test_the_multiples_around_an_instant_are_it_or_the_next_ones(at: datetime, length: timedelta) -> None:
    below, above = floor_to(at, length), ceil_to(at, length)

    assert below <= at <= above
    assert (above - below) == (timedelta(0) if below == at else length)
    assert (above - UNIX_EPOCH) % length == timedelta(0)
