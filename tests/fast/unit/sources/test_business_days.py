"""A business day begins at the first instant whose local clock on that date has reached its start."""

from datetime import date, datetime, time, timedelta
from itertools import pairwise

import pytest

from master_dataset.registry.stores import MIDNIGHT, Terms, business_date

FOUR = time(4)
HALF_PAST_TWO = time(2, 30)
BRATISLAVA, NEW_YORK, CAIRO = "Europe/Bratislava", "America/New_York", "Africa/Cairo"
LORD_HOWE, KATHMANDU = "Australia/Lord_Howe", "Asia/Kathmandu"
MILLISECOND = timedelta(milliseconds=1)


def day_of(zone: str, starts: time, instant: datetime) -> date:
    milliseconds = round(instant.timestamp() * 1000)
    return business_date(Terms(timezone=zone, day_starts_at=starts).business_day(milliseconds))


@pytest.mark.parametrize(
    ("zone", "starts", "first", "day"),
    [
        (BRATISLAVA, MIDNIGHT, "2026-03-06T23:00:00Z", "2026-03-07"),
        (BRATISLAVA, FOUR, "2026-03-07T03:00:00Z", "2026-03-07"),
        (BRATISLAVA, MIDNIGHT, "2026-03-28T23:00:00Z", "2026-03-29"),  # a day of 23 hours
        (BRATISLAVA, MIDNIGHT, "2026-03-29T22:00:00Z", "2026-03-30"),
        (BRATISLAVA, FOUR, "2026-03-29T02:00:00Z", "2026-03-29"),
        (BRATISLAVA, HALF_PAST_TWO, "2026-03-29T01:00:00Z", "2026-03-29"),  # no 02:30: clocks go on to 03:00
        (BRATISLAVA, MIDNIGHT, "2026-10-24T22:00:00Z", "2026-10-25"),  # a day of 25 hours
        (BRATISLAVA, MIDNIGHT, "2026-10-25T23:00:00Z", "2026-10-26"),
        (BRATISLAVA, FOUR, "2026-10-25T03:00:00Z", "2026-10-25"),
        (BRATISLAVA, HALF_PAST_TWO, "2026-10-25T00:30:00Z", "2026-10-25"),  # the first of two 02:30
        (NEW_YORK, MIDNIGHT, "2026-03-08T05:00:00Z", "2026-03-08"),
        (NEW_YORK, MIDNIGHT, "2026-03-09T04:00:00Z", "2026-03-09"),
        (NEW_YORK, FOUR, "2026-03-08T08:00:00Z", "2026-03-08"),
        (NEW_YORK, MIDNIGHT, "2026-11-01T04:00:00Z", "2026-11-01"),
        (NEW_YORK, FOUR, "2026-11-01T09:00:00Z", "2026-11-01"),
        (NEW_YORK, time(1, 30), "2026-11-01T05:30:00Z", "2026-11-01"),
        (LORD_HOWE, MIDNIGHT, "2026-04-04T13:00:00Z", "2026-04-05"),  # 24.5 hours
        (LORD_HOWE, MIDNIGHT, "2026-04-05T13:30:00Z", "2026-04-06"),
        (LORD_HOWE, FOUR, "2026-04-04T17:30:00Z", "2026-04-05"),
        (LORD_HOWE, time(1, 45), "2026-04-04T14:45:00Z", "2026-04-05"),
        (LORD_HOWE, MIDNIGHT, "2026-10-03T13:30:00Z", "2026-10-04"),  # 23.5 hours
        (LORD_HOWE, time(2, 15), "2026-10-03T15:30:00Z", "2026-10-04"),
        (LORD_HOWE, FOUR, "2026-10-03T17:00:00Z", "2026-10-04"),
        (KATHMANDU, MIDNIGHT, "2026-03-06T18:15:00Z", "2026-03-07"),
        (KATHMANDU, FOUR, "2026-03-06T22:15:00Z", "2026-03-07"),
        (CAIRO, MIDNIGHT, "2026-04-23T22:00:00Z", "2026-04-24"),  # no 00:00: it is 01:00 at once
        (CAIRO, FOUR, "2026-04-24T01:00:00Z", "2026-04-24"),
        (CAIRO, MIDNIGHT, "2026-10-29T22:00:00Z", "2026-10-30"),  # 23:00 comes twice before it
        ("UTC", time(23, 45), "2026-03-07T23:45:00Z", "2026-03-07"),
        ("UTC", MIDNIGHT, "1970-01-01T00:00:00Z", "1970-01-01"),
    ],
)
def test_a_business_day_begins_at_that_instant_and_not_a_millisecond_earlier(
    zone: str, starts: time, first: str, day: str
) -> None:
    begins = datetime.fromisoformat(first)

    found = day_of(zone, starts, begins), day_of(zone, starts, begins - MILLISECOND)

    assert found == (date.fromisoformat(day), date.fromisoformat(day) - timedelta(days=1))


@pytest.mark.parametrize("zone", [BRATISLAVA, NEW_YORK, LORD_HOWE, KATHMANDU, CAIRO])
@pytest.mark.parametrize("starts", [MIDNIGHT, time(0, 30), time(1, 45), HALF_PAST_TWO, FOUR, time(23, 30)])
def test_business_days_of_a_year_follow_each_other_without_a_gap_and_never_go_back(zone: str, starts: time) -> None:
    quarters = [datetime.fromisoformat("2026-01-01T12:00:00Z") + timedelta(minutes=15) * each for each in range(35_000)]

    days = [day_of(zone, starts, quarter) for quarter in quarters]

    steps = {(after - before).days for before, after in pairwise(days)}
    assert steps == {0, 1}
