"""What every comparison promises of its windows, in every time zone and on days of any length."""

from collections import Counter
from datetime import date, time, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo, available_timezones

from hypothesis import given, settings
from hypothesis import strategies as st

from serving_layer.compare.calendar import ComparisonCalendar, DaysBefore, MonthsBefore, RetailYearBefore
from serving_layer.compare.period import ComparisonPeriod, comparison_period
from serving_layer.timeline import Grain, QueryRange, Timeline, timeline
from tests.support.examples import examples
from views.core.local_time import STEP, BusinessDays, Span

COARSE: tuple[Grain, ...] = ("day", "week", "month", "year", "total")
GRAINS: tuple[Grain, ...] = ("15m", "hour", "weekday", "hour_of_week", *COARSE)
ZONES = sorted(available_timezones() - {"localtime", "Factory"})
DAYS = st.dates(date(1975, 1, 2), date(2040, 12, 20))
STARTS = st.sampled_from([time(0), time(4), time(5, 30), time(22)])
COMPARISONS: st.SearchStrategy[ComparisonCalendar] = st.one_of(
    st.integers(1, 400).map(DaysBefore), st.sampled_from([MonthsBefore(12), MonthsBefore(1), RetailYearBefore()])
)


def range_of(grain: Grain, zone: str, starts_at: time, first: date, number: int) -> QueryRange | None:
    """A question about so many days; None where the zone has none of them."""
    days = BusinessDays(ZoneInfo(zone), starts_at)
    span = Span(days.start(first), days.start(first + timedelta(days=number)))
    return QueryRange(days, span, grain) if span.start < span.end else None


def now(at: QueryRange) -> Timeline:
    return timeline(at.grain, at.days, *at.span)


def placed(there: ComparisonPeriod) -> Counter[int]:
    """How many windows each point is compared with."""
    return Counter(there.timeline.point_of(window) for window in there.windows)


def questions(number: int) -> st.SearchStrategy[QueryRange]:
    """At most so many days, anywhere, at any grain."""
    found = st.builds(range_of, st.sampled_from(GRAINS), st.sampled_from(ZONES), STARTS, DAYS, st.integers(1, number))
    return found.flatmap(lambda at: st.just(at) if at else st.nothing())


@settings(max_examples=examples(300), deadline=None)
@given(at=questions(40), by=COMPARISONS)
def test_windows_are_compared_once_and_lie_on_the_mapped_dates(at: QueryRange, by: ComparisonCalendar) -> None:
    there = comparison_period(at, now(at), by)

    if there:
        assert all(one.end <= two.start for one, two in pairwise(there.timeline.spans))
        assert {at.days.day_of(window) for window in there.windows} == set(there.dates)
        assert set(placed(there)) == there.points
        assert max(there.points) < len(now(at).bounds)


@settings(max_examples=examples(200), deadline=None)
@given(zone=st.sampled_from(ZONES), starts_at=STARTS, first=DAYS, number=st.integers(1, 40), shift=st.integers(1, 400))
def test_days_weeks_months_and_years_before_add_up_to_the_total_before(
    zone: str, starts_at: time, first: date, number: int, shift: int
) -> None:
    ranges = [range_of(grain, zone, starts_at, first, number) for grain in COARSE]

    found = [comparison_period(at, now(at), DaysBefore(shift)) for at in ranges if at]

    assert len({frozenset(there.windows) if there else frozenset() for there in found}) <= 1


@settings(max_examples=examples(200), deadline=None)
@given(first=DAYS, number=st.integers(1, 40), grain=st.sampled_from(GRAINS), weeks=st.integers(1, 60))
def test_where_no_clock_is_changed_every_point_is_compared_with_as_many_windows(
    first: date, number: int, grain: Grain, weeks: int
) -> None:
    at = range_of(grain, "UTC", time(4), first, number)
    assert at is not None
    line = now(at)

    there = comparison_period(at, line, DaysBefore(7 * weeks))

    own = Counter(line.point_of(window) for window in range(*at.span, STEP))
    assert there is not None
    assert placed(there) == own


@settings(max_examples=examples(200), deadline=None)
@given(whole=questions(9), windows=st.integers(1, 96), by=COMPARISONS)
def test_an_unfinished_period_is_compared_with_a_part_of_what_the_whole_is(
    whole: QueryRange, windows: int, by: ComparisonCalendar
) -> None:
    until = max(whole.span.end - windows * STEP, whole.span.start + STEP)

    part = comparison_period(whole.until(until), now(whole), by)

    all_of_it = comparison_period(whole, now(whole), by)
    assert (part.windows if part else frozenset()) <= (all_of_it.windows if all_of_it else frozenset())
