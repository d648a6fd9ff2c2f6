"""Hours are compared by what the clock shows, also where it shows an hour twice or never."""

from datetime import date, datetime
from zoneinfo import ZoneInfo

import pytest

from serving_layer.compare.calendar import DaysBefore
from serving_layer.compare.period import comparison_period
from serving_layer.timeline import QueryRange, timeline
from views.core.local_time import STEP, BusinessDays, Span

PRAGUE, LORD_HOWE = "Europe/Prague", "Australia/Lord_Howe"


def compared(zone: str, day: str, before: int) -> dict[str, list[str]]:
    """Per hour of the day the windows it is compared with, all as local time with offset."""
    days = BusinessDays(ZoneInfo(zone))
    first = date.fromisoformat(day)
    span = Span(days.start(first), days.start(date.fromordinal(first.toordinal() + 1)))
    line = timeline("hour", days, *span)
    there = comparison_period(QueryRange(days, span, "hour"), line, DaysBefore(before))
    found: dict[str, list[str]] = {local(zone, bound.start): [] for bound in line.bounds}
    assert there
    for window in sorted(there.windows):
        found[local(zone, line.bounds[there.timeline.point_of(window)].start)].append(local(zone, window))
    return found


def local(zone: str, at: int) -> str:
    return datetime.fromtimestamp(at, ZoneInfo(zone)).strftime("%H:%M%z")


def quarters(hour: str, offset: str, *, minutes: tuple[str, ...] = ("00", "15", "30", "45")) -> list[str]:
    return [f"{hour}:{minute}{offset}" for minute in minutes]


def test_the_second_pass_of_an_hour_has_no_counterpart_on_a_day_that_had_one() -> None:
    found = compared(PRAGUE, "2026-10-25", 7)

    assert found["02:00+0200"] == quarters("02", "+0200")
    assert found["02:00+0100"] == []
    assert found["03:00+0100"] == quarters("03", "+0200")


def test_both_passes_of_an_hour_are_added_for_a_day_that_has_one() -> None:
    found = compared(PRAGUE, "2026-11-01", 7)

    assert found["02:00+0100"] == quarters("02", "+0200") + quarters("02", "+0100")


def test_the_same_pass_is_compared_where_both_days_have_two() -> None:
    found = compared(PRAGUE, "2026-10-25", 364)

    assert found["02:00+0200"] == quarters("02", "+0200")
    assert found["02:00+0100"] == quarters("02", "+0100")


def test_an_hour_that_the_earlier_day_skipped_has_no_counterpart() -> None:
    found = compared(PRAGUE, "2026-04-05", 7)

    assert found["02:00+0200"] == []
    assert sum(map(len, found.values())) == 92


def test_an_hour_that_the_later_day_skipped_is_nobodys_counterpart() -> None:
    found = compared(PRAGUE, "2026-03-29", 7)

    assert sum(map(len, found.values())) == 92
    assert "02:00+0100" not in {window for windows in found.values() for window in windows}


@pytest.mark.parametrize(
    ("day", "hour", "windows"),
    [
        ("2026-04-05", "01:00+1100", quarters("01", "+1100")),
        ("2026-04-05", "01:30+1030", []),
        ("2026-04-12", "01:00+1030", [*quarters("01", "+1100"), "01:30+1030", "01:45+1030"]),
        ("2026-10-04", "02:30+1100", ["02:30+1030", "02:45+1030"]),
    ],
)
def test_half_an_hour_is_matched_by_its_quarters(day: str, hour: str, windows: list[str]) -> None:
    found = compared(LORD_HOWE, day, 7)

    assert found[hour] == windows


def test_a_zone_of_three_quarters_of_an_hour_is_compared_hour_by_hour() -> None:
    found = compared("Asia/Kathmandu", "2026-04-24", 7)

    assert all(len(windows) * STEP == 3600 for windows in found.values())
    assert found["00:00+0545"] == quarters("00", "+0545")


def test_until_half_past_two_both_passes_of_the_earlier_day_stop_at_half_past_two() -> None:
    days = BusinessDays(ZoneInfo(PRAGUE))
    start = days.start(date(2026, 11, 1))
    so_far = Span(start, start + 10 * STEP)

    there = comparison_period(
        QueryRange(days, so_far, "day"), timeline("day", days, start, start + 96 * STEP), DaysBefore(7)
    )

    assert there
    assert [local(PRAGUE, window) for window in sorted(there.windows)][8:] == [
        "02:00+0200",
        "02:15+0200",
        "02:00+0100",
        "02:15+0100",
    ]
