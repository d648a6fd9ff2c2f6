"""Blocks that Cassandra would not accept at once are kept in parts."""

from datetime import date
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from views.core import large_blocks
from views.core.cut import month_of
from views.core.large_blocks import (
    MOST_OF_LINES,
    day_of_block,
    days_of_lines,
    days_of_parts,
    lines_in_parts,
    note_of,
    parts_of,
)

DAYS = st.dates(date(1970, 1, 1), date(2200, 12, 31))


@given(DAYS, st.text(max_size=200), st.integers(1, 50))
def test_a_block_is_its_parts_one_after_another(day: date, text: str, most: int) -> None:
    block = f"[{text}"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(large_blocks, "MOST_CHARACTERS", most)
        kept, parts = note_of(block), dict(parts_of(day, block))
        under = days_of_parts(day, kept)

        assert (kept if not under else "".join(parts[each] for each in under)) == block
        assert list(parts) == under
        assert max(map(len, parts.values()), default=0) <= most
        assert all(one < other for one, other in pairwise(under))


@given(st.lists(DAYS, min_size=2, max_size=2, unique=True), st.integers(2, 400))
def test_no_two_parts_of_a_month_are_kept_under_the_same_day(days: list[date], count: int) -> None:
    first, second = (set(days_of_parts(day, f"parts:{count}")) for day in days)

    assert len(first) == len(second) == count
    assert month_of(days[0]) != month_of(days[1]) or first.isdisjoint(second)
    assert {day_of_block(month_of(days[0]), each) for each in first} == {days[0]}


@given(DAYS, st.lists(st.integers(1, MOST_OF_LINES * 3 // 2), max_size=50))
def test_the_lines_of_a_day_are_found_again_and_lie_together_in_bounded_rows(day: date, sizes: list[int]) -> None:
    lines = list(enumerate(sizes))
    kept = dict(lines_in_parts(day, lines, lambda line: line[1]))
    found: list[tuple[int, int]] = []
    for under in days_of_lines(day):
        if under not in kept:
            break
        found += kept[under]

    assert found == lines
    assert all(len(own) == 1 or sum(size for _, size in own) <= MOST_OF_LINES for own in kept.values())


@given(DAYS)
def test_the_row_of_a_block_has_its_own_day(day: date) -> None:
    assert day_of_block(month_of(day), day) == day
