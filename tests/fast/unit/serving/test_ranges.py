"""Ranges as people say them become dates, counted from the business day that a store has now."""

from datetime import UTC, date, datetime, time
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from serving_layer.errors import ArgumentMissingError, BadQuestionError
from serving_layer.query.ranges import (
    RANGE_NAMES,
    AskedRange,
    Dates,
    RangeName,
    latest_day_start,
    months_before,
    named_dates,
)
from views.core.local_time import BusinessDays

BRATISLAVA, TOKYO = ZoneInfo("Europe/Bratislava"), ZoneInfo("Asia/Tokyo")
DAYS = BusinessDays(BRATISLAVA)
TODAY = date(2026, 11, 24)  # a Tuesday


def at(text: str) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp())


@pytest.mark.parametrize(
    ("name", "start", "end"),
    [
        ("today", "2026-11-24", "2026-11-25"),
        ("yesterday", "2026-11-23", "2026-11-24"),
        ("last_7_days", "2026-11-17", "2026-11-24"),
        ("last_28_days", "2026-10-27", "2026-11-24"),
        ("last_30_days", "2026-10-25", "2026-11-24"),
        ("last_90_days", "2026-08-26", "2026-11-24"),
        ("this_week", "2026-11-23", "2026-11-30"),
        ("week_to_date", "2026-11-23", "2026-11-25"),
        ("month_to_date", "2026-11-01", "2026-11-25"),
        ("quarter_to_date", "2026-10-01", "2026-11-25"),
        ("year_to_date", "2026-01-01", "2026-11-25"),
        ("last_week", "2026-11-16", "2026-11-23"),
        ("last_month", "2026-10-01", "2026-11-01"),
        ("last_quarter", "2026-07-01", "2026-10-01"),
        ("last_year", "2025-01-01", "2026-01-01"),
    ],
)
def test_a_named_range_has_the_dates_that_its_name_says(name: RangeName, start: str, end: str) -> None:
    assert named_dates(name, TODAY, DAYS) == Dates(date.fromisoformat(start), date.fromisoformat(end))


def test_a_week_starts_on_the_weekday_of_the_store() -> None:
    sunday = BusinessDays(BRATISLAVA, week_starts_on=6)

    assert named_dates("week_to_date", TODAY, sunday) == Dates(date(2026, 11, 22), date(2026, 11, 25))
    assert named_dates("last_week", TODAY, sunday) == Dates(date(2026, 11, 15), date(2026, 11, 22))


@pytest.mark.parametrize(
    ("start", "end", "expected"),
    [
        ("today", None, ("2026-11-24", "2026-11-25")),
        ("yesterday", "today", ("2026-11-23", "2026-11-24")),
        ("-7d", None, ("2026-11-17", "2026-11-25")),
        ("-7d", "today", ("2026-11-17", "2026-11-24")),
        ("-4w", "-1w", ("2026-10-27", "2026-11-17")),
        ("-3m", None, ("2026-08-24", "2026-11-25")),
        ("-1y", "yesterday", ("2025-11-24", "2026-11-23")),
        ("2026-11-01", None, ("2026-11-01", "2026-11-25")),
        ("2026-11-01T09:00:00Z", "today", ("2026-11-01T09:00:00Z", "2026-11-24")),
    ],
)
def test_a_relative_bound_is_the_start_of_that_day_and_no_end_is_the_end_of_today(
    start: str, end: str | None, expected: tuple[str, str]
) -> None:
    assert AskedRange(start, end).bounds(DAYS, at("2026-11-24T10:00:00")) == expected


def test_a_range_is_in_the_business_day_of_the_store_and_not_in_that_of_the_calendar() -> None:
    now = at("2026-11-24T01:30:00")  # 02:30 in Bratislava, 10:30 in Tokyo
    bar = BusinessDays(BRATISLAVA, time(4))

    found = [AskedRange(None, None, "today").bounds(days, now)[0] for days in (DAYS, bar, BusinessDays(TOKYO))]

    assert found == ["2026-11-24", "2026-11-23", "2026-11-24"]


def test_a_month_without_such_a_day_has_its_last_one() -> None:
    assert months_before(date(2026, 3, 31), 1) == date(2026, 2, 28)
    assert months_before(date(2024, 2, 29), 12) == date(2023, 2, 28)
    assert months_before(date(2026, 1, 15), 13) == date(2024, 12, 15)


def test_a_range_without_relative_bounds_stays_as_it_is() -> None:
    requested = AskedRange("2026-11-01", "2026-11-02T00:00:00Z")

    assert not requested.is_relative
    assert requested.bounds(DAYS, None) == ("2026-11-01", "2026-11-02T00:00:00Z")


def test_a_range_is_said_once() -> None:
    with pytest.raises(ArgumentMissingError, match="`from` is missing"):
        AskedRange(None, "2026-11-02").refuse_incomplete()
    for start, end in (("today", None), (None, "today")):
        with pytest.raises(BadQuestionError, match="`range=today` cannot be combined"):
            AskedRange(start, end, "today").refuse_incomplete()


@pytest.mark.parametrize("text", ["-99999m", "-9999y"])
def test_a_bound_before_all_years_is_refused_by_name(text: str) -> None:
    with pytest.raises(BadQuestionError, match=f"`from={text}` is before the years"):
        AskedRange(text, None).bounds(DAYS, at("2026-11-24T10:00:00"))


zones = st.sampled_from([ZoneInfo(name) for name in ("Europe/Bratislava", "America/Los_Angeles", "Pacific/Apia")])
days_of_stores = st.builds(
    BusinessDays, zones, st.sampled_from([time(0), time(4), time(0, 30)]), st.integers(min_value=0, max_value=6)
)
instants = st.integers(at("2011-12-25T00:00:00"), at("2012-01-05T00:00:00")) | st.integers(
    at("2026-03-01T00:00:00"), at("2026-12-31T00:00:00")
)


@given(days_of_stores, instants, st.sampled_from(RANGE_NAMES))
def test_whole_days_before_today_and_today_make_the_range_to_date(
    days: BusinessDays, now: int, name: RangeName
) -> None:
    """Every range is not empty, and ends before today, with today, or with this week."""
    today = days.day_of(now)
    start, end = named_dates(name, today, days)

    assert start < end
    assert start <= today
    if name.startswith("last_") or name == "yesterday":
        assert end <= today
    else:
        assert start <= today < end


@given(st.lists(days_of_stores, min_size=1, max_size=4), instants, st.sampled_from(RANGE_NAMES))
def test_no_range_moves_between_the_latest_turn_of_a_day_and_now(
    stores: list[BusinessDays], now: int, name: RangeName
) -> None:
    turn, requested = latest_day_start(stores, now), AskedRange(None, None, name)

    assert turn <= now
    for days in stores:
        assert requested.bounds(days, turn) == requested.bounds(days, now)
