"""The period of a page: its days, what they are compared with, and how finely they are drawn, all from the URL."""

from datetime import date
from urllib.parse import parse_qs

import pytest
from pydantic import ValidationError

from master_dataset.registry.stores import Store
from serving_layer.errors import BadQuestionError
from serving_layer.pages.period import BOUNDS, PRESETS, PagePeriod, PeriodFilter
from serving_layer.timeline import zone_named
from views.core.local_time import BusinessDays

TODAY = date(2026, 11, 21)
"""A Saturday."""


def period(today: date = TODAY, /, **asked: str) -> PagePeriod:
    """The period of an address, in Bratislava."""
    store = Store(id="1", timezone="Europe/Bratislava")
    return PagePeriod.of(PeriodFilter(**asked), BusinessDays.of(store, zone_named(store.timezone)), today)


@pytest.mark.parametrize(
    ("asked", "first", "last"),
    [
        ("today", "2026-11-21", "2026-11-21"),
        ("yesterday", "2026-11-20", "2026-11-20"),
        ("last_7_days", "2026-11-14", "2026-11-20"),
        ("last_28_days", "2026-10-24", "2026-11-20"),
        ("month_to_date", "2026-11-01", "2026-11-21"),
        ("quarter_to_date", "2026-10-01", "2026-11-21"),
        ("year_to_date", "2026-01-01", "2026-11-21"),
    ],
)
def test_a_range_has_the_days_that_rest_gives_it(asked: str, first: str, last: str) -> None:
    found = period(range=asked)

    assert (f"{found.first}", f"{found.last}", found.preset) == (first, last, asked)


def test_without_parameters_it_is_today_against_the_week_before() -> None:
    found = period()

    assert (found.preset, found.days, found.compared_with, found.grain) == ("today", 1, "previous_week", "hour")
    assert found.includes_today
    assert period(range="last_7_days").compared_with == "previous_period"


def test_a_form_that_sends_empty_fields_is_as_good_as_no_parameters() -> None:
    empty = dict.fromkeys(("range", "first", "last", "day", "compare", "grain"), "")

    assert period(**empty).dates == period().dates
    assert period(range="custom").preset == "today"


def test_chosen_days_are_both_included_and_one_day_may_be_named_alone() -> None:
    week = period(range="custom", first="2026-11-02", last="2026-11-08")

    assert (week.days, week.preset, week.grain) == (7, None, "day")
    assert f"{week.dates.end}" == "2026-11-09"
    assert period(day="2026-11-02").dates == period(first="2026-11-02").dates == period(last="2026-11-02").dates
    assert period(day="2026-11-02", range="year_to_date").days == 1


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"first": "2026-11-08", "last": "2026-11-02"}, "is after the last one"),
        ({"first": "1990-01-01", "last": "2026-01-01"}, "too many for one page"),
        ({"day": "1969-12-31"}, "There is no data"),
        ({"first": "2026-01-01", "last": "9001-01-01"}, "There is no data"),
        ({"day": "9999-12-31"}, "There is no data"),
        ({"day": "2026-11-02", "grain": "week"}, "`grain=week` needs 14 to 3,660 days"),
        ({"range": "year_to_date", "grain": "hour"}, "`grain=hour` needs 1 to 14 days"),
    ],
)
def test_days_that_make_no_page_are_refused_with_a_next_step(asked: dict[str, str], said: str) -> None:
    with pytest.raises(BadQuestionError) as refused:
        period(**asked)

    assert said in refused.value.message
    assert refused.value.do


@pytest.mark.parametrize("wrong", [{"grain": "minute"}, {"range": "tomorrow"}, {"day": "x"}, {"compare": "luck"}])
def test_unknown_words_are_refused_when_they_are_read(wrong: dict[str, str]) -> None:
    with pytest.raises(ValidationError):
        PeriodFilter.model_validate(wrong)


@pytest.mark.parametrize(
    ("days", "grain"), [(1, "hour"), (2, "day"), (92, "day"), (93, "week"), (400, "week"), (3660, "week")]
)
def test_the_grain_that_is_shown_first_is_one_of_those_to_choose(days: int, grain: str) -> None:
    first = date.fromordinal(TODAY.toordinal() - days)

    found = period(first=f"{first}", last="2026-11-20")

    assert (found.days, found.grain) == (days, grain)
    assert found.grain in found.grains
    assert all(BOUNDS[each][0] <= days <= BOUNDS[each][1] for each in found.grains)


def test_a_day_on_which_clocks_change_is_one_day() -> None:
    spring, autumn = period(date(2026, 3, 29)), period(date(2026, 10, 25))

    assert (spring.days, autumn.days) == (1, 1)
    assert (spring.first, autumn.last) == (date(2026, 3, 29), date(2026, 10, 25))


def test_ranges_meet_the_bounds_of_years() -> None:
    new_year = date(2027, 1, 1)

    assert period(new_year, range="year_to_date").days == 1
    assert period(new_year, range="yesterday").last == date(2026, 12, 31)
    assert period(new_year, range="month_to_date").grain == "hour"
    assert period(new_year, range="last_7_days").first == date(2026, 12, 25)


def test_the_links_beside_a_period_are_as_many_days_and_end_with_today() -> None:
    week = period(range="last_7_days", compare="previous_year")

    assert week.before == {"first": "2026-11-07", "last": "2026-11-13", "compare": "previous_year"}
    assert week.after == {"first": "2026-11-21", "last": "2026-11-27", "compare": "previous_year"}
    assert period().before == {"day": "2026-11-20"}
    assert period().after is None
    assert period(**week.after).includes_today
    assert period(day="2026-11-22").is_ahead


def test_links_keep_the_comparison_and_the_filters_of_their_page() -> None:
    found = period(range="last_28_days", compare="none", grain="week")

    assert found.own == {"range": "last_28_days", "compare": "none", "grain": "week"}
    assert parse_qs(found.address({"q": "a b&c"}, compare="previous_year")) == {
        "range": ["last_28_days"],
        "compare": ["previous_year"],
        "grain": ["week"],
        "q": ["a b&c"],
    }
    links = found.presets({"q": "é"})
    assert [link.is_current for link in links] == [name == "last_28_days" for name in PRESETS]
    assert parse_qs(links[0].query) == {"range": ["today"], "compare": ["none"], "q": ["é"]}
    assert found.compared_with is None


def test_only_comparisons_of_a_fixed_distance_know_their_days() -> None:
    one = period(range="last_7_days")

    assert one.compared_dates is not None
    assert (f"{one.compared_dates.start}", f"{one.compared_dates.end}") == ("2026-11-07", "2026-11-14")
    week = period(range="last_28_days", compare="previous_week").compared_dates
    assert week is not None
    assert f"{week.start}" == "2026-10-17"
    assert period(compare="previous_year").compared_dates is None
    assert period(compare="none").compared_dates is None
