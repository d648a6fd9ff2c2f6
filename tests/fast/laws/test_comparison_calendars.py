"""Identity 14 of the metrics catalogue, and what every comparison promises of its dates."""

from datetime import date, timedelta
from fractions import Fraction
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from serving_layer.compare.calendar import (
    ComparisonCalendar,
    DaysBefore,
    MonthsBefore,
    RetailYearBefore,
    calendar_day,
    first_day,
    retail_day,
    weeks_in,
)
from serving_layer.query.evaluate import change, change_points

DAYS = st.dates(date(2010, 1, 31), date(2040, 12, 31))
COMPARISONS: st.SearchStrategy[ComparisonCalendar] = st.one_of(
    st.integers(1, 400).map(DaysBefore), st.integers(1, 30).map(MonthsBefore), st.just(RetailYearBefore())
)
FRACTIONS = st.fractions(-(10**9), 10**9)


def days(first: date, number: int) -> list[date]:
    """So many days in a row."""
    return [first + timedelta(days=each) for each in range(number)]


def test_14_retail_years_are_52_or_53_weeks_and_tile_the_calendar() -> None:
    years = range(2010, 2041)

    lengths = {(first_day(year + 1) - first_day(year)).days for year in years}

    assert lengths == {52 * 7, 53 * 7}
    assert all(weeks_in(year) in (52, 53) for year in years)
    assert all(first_day(year).isoweekday() == 7 for year in years)
    assert all((first_day(two) - timedelta(days=1)).isoweekday() == 6 for _, two in pairwise(years))


@given(year=st.integers(2010, 2040))
def test_14_a_retail_year_ends_on_the_saturday_nearest_31_january(year: int) -> None:
    end = first_day(year + 1) - timedelta(days=1)

    assert abs(end - date(year + 1, 1, 31)) <= timedelta(days=3)


@given(day=DAYS)
def test_14_every_day_lies_in_one_retail_week(day: date) -> None:
    found = retail_day(day)

    assert calendar_day(found) == day
    assert 1 <= found.week <= weeks_in(found.year)
    assert (found.weekday + 6) % 7 == day.weekday()


@given(day=DAYS)
def test_14_restated_or_not_the_weekday_is_kept(day: date) -> None:
    compared = [DaysBefore(364).day(day), RetailYearBefore().day(day)]

    assert {there.weekday() for there in compared if there} == {day.weekday()}


@given(day=DAYS)
def test_a_day_without_a_counterpart_in_the_retail_year_before_lies_in_week_53(day: date) -> None:
    there = RetailYearBefore().day(day)

    assert (there is None) == (retail_day(day).week == 53)


@given(value=FRACTIONS)
def test_14_what_stayed_the_same_has_not_changed(value: Fraction) -> None:
    assert change(value, value) == (0 if value else None)
    assert change_points(value, value) == 0


@given(now=FRACTIONS, before=FRACTIONS.filter(bool))
def test_a_change_has_the_sign_of_the_difference(now: Fraction, before: Fraction) -> None:
    changed = change(now, before)

    assert changed is not None
    assert (changed > 0, changed < 0) == (now > before, now < before)
    assert before + changed * abs(before) / 100 == now


@given(first=DAYS, number=st.integers(1, 800), by=COMPARISONS)
def test_the_counterparts_of_days_are_in_order_and_no_date_comes_twice(
    first: date, number: int, by: ComparisonCalendar
) -> None:
    found = [there for day in days(first, number) if (there := by.day(day))]
    whole = list(by.days(first, first + timedelta(days=number)))

    assert all(one < two for one, two in pairwise(found))
    assert all(one < two for one, two in pairwise(whole))
    assert set(found) <= set(whole)


@given(first=DAYS, number=st.integers(1, 400), more=st.integers(1, 400), by=COMPARISONS)
def test_the_counterparts_of_two_periods_in_a_row_are_those_of_both(
    first: date, number: int, more: int, by: ComparisonCalendar
) -> None:
    middle, last = first + timedelta(days=number), first + timedelta(days=number + more)

    parts = [*by.days(first, middle), *by.days(middle, last)]

    assert parts == list(by.days(first, last))


@given(first=DAYS, number=st.integers(1, 400), shift=st.integers(1, 800))
def test_shifted_period_has_the_same_number_of_days(first: date, number: int, shift: int) -> None:
    found = list(DaysBefore(shift).days(first, first + timedelta(days=number)))

    assert found == days(first - timedelta(days=shift), number)
