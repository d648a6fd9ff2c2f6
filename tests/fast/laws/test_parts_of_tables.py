"""The parts in which a table of a view is read: each day that may have cells is in one, and no part is without."""

from datetime import date
from itertools import pairwise
from zoneinfo import ZoneInfo

from hypothesis import given
from hypothesis import strategies as st

from serving_layer.sql.table import Span
from serving_layer.sql.view_tables import parts_of
from views.core.local_time import FIRST_ANSWERED, LAST_ANSWERED, ONE_DAY, BusinessDays

ANY = st.dates(date(1970, 1, 1), date(2200, 12, 31))
NEAR = st.dates(date(2026, 1, 1), date(2026, 4, 1))
DAYS = BusinessDays(ZoneInfo("America/New_York"))


@given(st.sets(ANY | NEAR, max_size=20), st.integers(1, 40), st.none() | ANY | NEAR, st.none() | ANY | NEAR)
def test_each_day_that_may_have_cells_is_in_one_part_and_no_part_is_without(
    with_cells: set[date], most: int, first: date | None, last: date | None
) -> None:
    parts = parts_of(Span(first, last), DAYS, with_cells, most)

    start, end = max(FIRST_ANSWERED, first or FIRST_ANSWERED), min(LAST_ANSWERED, last or LAST_ANSWERED)
    near = {day + ONE_DAY * apart for day in with_cells for apart in (-1, 0, 1)}
    touched = {day for day in near if start <= day <= end}
    assert all(one[1] <= two[0] for one, two in pairwise(parts))
    assert all(start <= begun < until <= end + ONE_DAY and (until - begun).days <= most for begun, until in parts)
    assert all(sum(begun <= day < until for begun, until in parts) == 1 for day in touched)
    assert all(any(begun <= day < until for day in touched) for begun, until in parts)
