"""A business day begins at the first window whose clock, on its date, is at or past the shop's hour."""

from datetime import date, datetime
from zoneinfo import ZoneInfo

import pytest

from master_dataset.registry.stores import Store
from serving_layer.responses.encoding import iso_epoch
from serving_layer.timeline import timeline
from views.core.local_time import BusinessDays, Span


def days_of(zone: str, starts_at: str = "00:00", week_starts_on: str = "mon") -> BusinessDays:
    return BusinessDays.of(
        Store(id="1", timezone=zone, day_starts_at=starts_at, week_starts_on=week_starts_on), ZoneInfo(zone)
    )


@pytest.mark.parametrize(
    ("zone", "starts_at", "day", "start"),
    [
        ("Africa/Cairo", "00:00", date(2026, 4, 24), "2026-04-24T01:00:00+03:00"),  # no 00:00 that night
        ("Asia/Kathmandu", "00:00", date(2026, 4, 24), "2026-04-24T00:00:00+05:45"),
        ("America/Sao_Paulo", "00:00", date(2018, 11, 4), "2018-11-04T01:00:00-02:00"),  # no 00:00 either
        ("America/Sao_Paulo", "00:00", date(2018, 2, 18), "2018-02-18T00:00:00-03:00"),  # after the second 23:00
        ("America/New_York", "04:00", date(2026, 3, 8), "2026-03-08T04:00:00-04:00"),
        (
            "Europe/Bratislava",
            "02:30",
            date(2026, 3, 29),
            "2026-03-29T03:00:00+02:00",
        ),  # skipped, so where it is skipped
        ("Europe/Bratislava", "02:30", date(2026, 10, 25), "2026-10-25T02:30:00+02:00"),  # the first pass
        ("Australia/Lord_Howe", "02:00", date(2026, 10, 4), "2026-10-04T02:30:00+11:00"),
    ],
)
def test_a_day_begins_where_the_clock_reaches_the_hour(zone: str, starts_at: str, day: date, start: str) -> None:
    found = days_of(zone, starts_at).start(day)

    assert datetime.fromtimestamp(found, ZoneInfo(zone)).isoformat() == start


@pytest.mark.parametrize(
    ("zone", "starts_at", "day", "hours"),
    [
        ("Europe/Bratislava", "00:00", "2026-03-29", 23),
        ("Europe/Bratislava", "04:00", "2026-03-29", 24),
        ("Europe/Bratislava", "04:00", "2026-03-28", 23),  # the night of the change belongs to the day before
        ("Europe/Bratislava", "00:00", "2026-10-25", 25),
        ("Australia/Lord_Howe", "00:00", "2026-04-05", 24.5),
        ("Australia/Lord_Howe", "00:00", "2026-10-04", 23.5),
        ("America/New_York", "00:00", "2026-03-08", 23),
        ("America/New_York", "00:00", "2026-11-01", 25),
        ("Africa/Cairo", "00:00", "2026-04-24", 23),
        ("America/Sao_Paulo", "00:00", "2018-02-17", 25),
        ("Asia/Kathmandu", "00:00", "2026-04-24", 24),
    ],
)
def test_a_day_is_as_long_as_its_clocks_make_it(zone: str, starts_at: str, day: str, hours: float) -> None:
    days = days_of(zone, starts_at)
    start = days.start(date.fromisoformat(day))

    [(named, span)] = days.touched(Span(start, start + 900))

    assert (named, (span.end - span.start) / 3600) == (date.fromisoformat(day), hours)


def test_the_night_after_friday_is_friday_where_days_start_at_four() -> None:
    days = days_of("Europe/Bratislava", "04:00")
    saturday_at_two = int(datetime.fromisoformat("2026-03-07T02:00:00+01:00").timestamp())

    assert days.day_of(saturday_at_two) == date(2026, 3, 6)
    assert days.day_of(saturday_at_two + 2 * 3600) == date(2026, 3, 7)


def test_weeks_months_and_years_are_made_of_business_days() -> None:
    days = days_of("Europe/Bratislava", "04:00")
    span = (days.start(date(2026, 1, 1)), days.start(date(2027, 1, 1)))

    starts = {grain: timeline(grain, days, *span).starts for grain in ("week", "month", "year")}

    assert starts["year"] == ["2026-01-01T03:00:00Z"]
    assert starts["month"][:4] == [
        f"2026-0{month}-01T0{hour}:00:00Z" for month, hour in ((1, 3), (2, 3), (3, 3), (4, 2))
    ]
    assert starts["week"][:3] == ["2026-01-01T03:00:00Z", "2026-01-05T03:00:00Z", "2026-01-12T03:00:00Z"]


def test_weeks_start_on_the_day_that_the_store_says() -> None:
    days = days_of("UTC", "00:00", "sun")

    line = timeline("week", days, days.start(date(2026, 11, 18)), days.start(date(2026, 11, 25)))

    assert line.starts == ["2026-11-18T00:00:00Z", "2026-11-22T00:00:00Z"]


def test_hours_stay_those_of_the_clock_where_a_day_starts_within_one() -> None:
    days = days_of("UTC", "04:30")

    line = timeline("hour", days, days.start(date(2026, 11, 18)), days.start(date(2026, 11, 19)))

    assert line.starts[:2] == ["2026-11-18T04:30:00Z", "2026-11-18T05:00:00Z"]
    assert iso_epoch(line.bounds[0].end) == "2026-11-18T05:00:00Z"


def test_a_date_that_a_zone_skipped_is_no_day() -> None:
    days = days_of("Pacific/Apia")

    named = [day for day, _ in days.touched(Span(days.start(date(2011, 12, 29)), days.start(date(2012, 1, 1))))]

    assert named == [date(2011, 12, 29), date(2011, 12, 31)]
