"""Every window lies in exactly one point of every grain, in every time zone, on days of any length."""

from datetime import UTC, date, datetime, time, timedelta
from itertools import pairwise
from random import Random
from zoneinfo import ZoneInfo, available_timezones

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from serving_layer.responses.encoding import iso_epoch
from serving_layer.timeline import Grain, Timeline, timeline
from tests.support.examples import examples
from views.core.local_time import STEP, BusinessDays, clock, first_instant, offset

GRAINS: tuple[Grain, ...] = ("15m", "hour", "day", "week", "month", "year", "weekday", "hour_of_week", "total")
ZONES = sorted(available_timezones() - {"localtime", "Factory"})
DAYS = st.dates(date(1971, 1, 2), date(2040, 12, 20))


def days(zone: str, first: str, last: str, grain: Grain) -> Timeline:
    """The timeline of [first, last), both local dates."""
    named = ZoneInfo(zone)
    bounds = (first_instant(named, date.fromisoformat(day)) for day in (first, last))
    return timeline(grain, BusinessDays(named), *bounds)


def labels(zone: str, line: Timeline) -> list[str]:
    """The points as local time with offset."""
    return [datetime.fromtimestamp(bound.start, ZoneInfo(zone)).isoformat()[11:] for bound in line.bounds]


def windows(line: Timeline) -> list[int]:
    """How many windows each point has."""
    counts = [0] * len(line.bounds)
    for at in range(line.start, line.end, STEP):
        counts[line.point_of(at)] += 1
    return counts


@settings(max_examples=examples(300), deadline=None)
@given(zone=st.sampled_from(ZONES), day=DAYS, length=st.integers(1, 9), grain=st.sampled_from(GRAINS))
def test_the_points_of_every_grain_hold_every_window_once(zone: str, day: date, length: int, grain: Grain) -> None:
    named = ZoneInfo(zone)
    start, end = first_instant(named, day), first_instant(named, day + timedelta(days=length))

    line = timeline(grain, BusinessDays(named), start, end) if start < end else None

    if line is not None:
        assert sum(windows(line)) == (end - start) // STEP
        assert (line.start, line.end) == (start, end)
        assert all(one.end == two.start for one, two in pairwise(line.spans))


FIXTURES = (
    ("Europe/Bratislava", "2026-03-29", 23),
    ("Europe/Bratislava", "2026-10-25", 25),
    ("America/New_York", "2026-03-08", 23),
    ("America/New_York", "2026-11-01", 25),
    ("Australia/Lord_Howe", "2026-04-05", 24.5),
    ("Australia/Lord_Howe", "2026-10-04", 23.5),
    ("Africa/Cairo", "2026-04-24", 23),
    ("Asia/Kathmandu", "2026-04-24", 24),
    ("America/Sao_Paulo", "2018-02-17", 25),
    ("America/Sao_Paulo", "2018-11-04", 23),
)
"""A zone, a date, and how many hours its day has."""


@pytest.mark.parametrize(("zone", "day", "hours"), FIXTURES)
def test_4_a_day_has_its_hours_at_every_grain(zone: str, day: str, hours: float) -> None:
    after = (date.fromisoformat(day) + timedelta(days=1)).isoformat()

    lines = {grain: days(zone, day, after, grain) for grain in GRAINS}

    assert {grain: sum(windows(line)) / 4 for grain, line in lines.items()} == dict.fromkeys(GRAINS, hours)
    assert sum(label.present for label in lines["hour_of_week"].labels) == hours
    assert [label.present for label in lines["weekday"].labels] == [1]


@settings(max_examples=examples(60), deadline=None)
@given(
    fixture=st.sampled_from(FIXTURES),
    before=st.integers(0, 4),
    after=st.integers(1, 4),
    seed=st.integers(0, 99),
    starts_at=st.sampled_from([time(0), time(4), time(5, 30)]),
)
def test_4_parts_of_every_grain_add_up_to_the_total(
    fixture: tuple[str, str, float], before: int, after: int, seed: int, starts_at: time
) -> None:
    (zone, day, _), chance = fixture, Random(seed)
    cut = BusinessDays(ZoneInfo(zone), starts_at)
    middle = date.fromisoformat(day)
    start, end = cut.start(middle - timedelta(days=before)), cut.start(middle + timedelta(days=after))
    sold = {at: chance.randint(-100, 1000) for at in range(start, end, STEP)}

    sums: dict[Grain, dict[int, int]] = {}
    for grain in GRAINS:
        line = timeline(grain, cut, start, end)
        for at, amount in sold.items():
            of = sums.setdefault(grain, dict.fromkeys(range(len(line.bounds)), 0))
            of[line.point_of(at)] += amount

    assert {grain: sum(parts.values()) for grain, parts in sums.items()} == dict.fromkeys(GRAINS, sum(sold.values()))
    assert len(sums["day"]) == before + after


@example(zone="Africa/Monrovia", day=date(1972, 1, 7))  # begins at 00:45, with one offset all day
@settings(max_examples=examples(300), deadline=None)
@given(zone=st.sampled_from(ZONES), day=DAYS)
def test_an_hour_is_one_date_one_hour_and_one_offset(zone: str, day: date) -> None:
    named = ZoneInfo(zone)
    start, end = first_instant(named, day), first_instant(named, day + timedelta(days=1))
    line = timeline("hour", BusinessDays(named), start, end) if start < end else None

    keys = [
        {(clock(named, at).date(), clock(named, at).hour, offset(named, at)) for at in range(*span, STEP)}
        for span in (line.spans if line else ())
    ]

    assert all(len(key) == 1 for key in keys)
    assert len({next(iter(key)) for key in keys}) == len(keys)


@settings(max_examples=examples(300), deadline=None)
@given(zone=st.sampled_from(ZONES), day=DAYS)
def test_a_day_begins_with_its_first_window_of_that_date(zone: str, day: date) -> None:
    named = ZoneInfo(zone)

    start = first_instant(named, day)

    assert clock(named, start).date() >= day
    assert clock(named, start - STEP).date() < day


def test_a_repeated_hour_is_two_points_and_the_day_has_100_windows() -> None:
    line = days("Europe/Bratislava", "2026-10-25", "2026-10-26", "hour")

    assert labels("Europe/Bratislava", line)[1:5] == [
        "01:00:00+02:00",
        "02:00:00+02:00",
        "02:00:00+01:00",
        "03:00:00+01:00",
    ]
    assert (len(line.bounds), sum(windows(line))) == (25, 100)


def test_a_skipped_hour_is_no_point_and_the_day_has_92_windows() -> None:
    line = days("Europe/Bratislava", "2026-03-29", "2026-03-30", "hour")

    assert labels("Europe/Bratislava", line)[1:3] == ["01:00:00+01:00", "03:00:00+02:00"]
    assert (len(line.bounds), sum(windows(line))) == (23, 92)


@pytest.mark.parametrize(
    ("day", "label", "windows_then"),
    [("2026-04-05", "01:00:00+11:00", 4), ("2026-04-05", "01:30:00+10:30", 2), ("2026-10-04", "02:30:00+11:00", 2)],
)
def test_a_shift_of_half_an_hour_gives_points_of_two_windows(day: str, label: str, windows_then: int) -> None:
    after = (date.fromisoformat(day) + timedelta(days=1)).isoformat()

    line = days("Australia/Lord_Howe", day, after, "hour")

    assert dict(zip(labels("Australia/Lord_Howe", line), windows(line), strict=True))[label] == windows_then


def test_the_day_in_cairo_that_has_no_midnight_begins_at_one() -> None:
    assert iso_epoch(first_instant(ZoneInfo("Africa/Cairo"), date(2026, 4, 24))) == "2026-04-23T22:00:00Z"


def test_midnight_in_kathmandu_is_a_quarter_past_six_in_the_evening_utc() -> None:
    assert iso_epoch(first_instant(ZoneInfo("Asia/Kathmandu"), date(2026, 4, 24))) == "2026-04-23T18:15:00Z"


def test_weeks_start_on_monday_and_are_clipped_to_the_question() -> None:
    line = days("UTC", "2026-11-18", "2026-11-25", "week")

    assert line.starts == ["2026-11-18T00:00:00Z", "2026-11-23T00:00:00Z"]


def test_hour_of_week_adds_both_passes_of_a_repeated_hour() -> None:
    line = days("Europe/Bratislava", "2026-10-19", "2026-11-02", "hour_of_week")

    [sunday_two] = [label for label in line.labels if (label.weekday, label.hour) == (7, 2)]
    assert len(line.labels) == 168
    assert sunday_two.present == 3  # 25 October twice, 1 November once
    assert sum(label.present for label in line.labels) == sum(windows(line)) / 4
    assert datetime.fromtimestamp(line.start, UTC).isoformat() == "2026-10-18T22:00:00+00:00"
