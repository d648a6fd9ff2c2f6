"""Numbers in words of people."""

from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest

from serving_layer.pages.charts import heat_map, provisional_share, sparkline
from serving_layer.pages.figures import age, change, direction, figure
from serving_layer.responses.metrics import Point

START = "2026-11-21T09:00:00Z"


def point(value: float | None = None, **more: Any) -> Point:
    return Point(start=START, value=value, final=more.pop("final", True), **more)


@pytest.mark.parametrize(
    ("value", "unit", "code", "said"),
    [
        (Decimal("4228.55"), "money", "EUR", "€4,228.55"),
        (Decimal("-18.2"), "money", "EUR", "\N{MINUS SIGN}€18.20"),
        (4228, "money", "JPY", "¥4,228"),
        (Decimal("1.234"), "money", "KWD", "KWD\N{NO-BREAK SPACE}1.234"),
        (12345, "n", "EUR", "12,345"),
        (33.333, "percent", "EUR", "33.3 %"),
        (45_200, "ms", "EUR", "45 s"),
        (125_000, "ms", "EUR", "2 min 05 s"),
        (7_500_000, "ms", "EUR", "2 h 05 min"),
        (None, "n", "EUR", "\N{EN DASH}"),
    ],
)
def test_a_value_is_written_in_its_unit(value: Decimal | None, unit: str, code: str, said: str) -> None:
    assert str(figure(value, unit, code)) == said


@pytest.mark.parametrize(
    ("ms", "said"),
    [
        (499, "0 s"),
        (500, "1 s"),
        (1500, "2 s"),
        (2500, "3 s"),
        (Decimal("2499.9"), "2 s"),
        (62_500, "1 min 03 s"),
        (3_599_500, "1 h 00 min"),
    ],
)
def test_half_a_second_is_rounded_up_as_the_script_does(ms: Decimal, said: str) -> None:
    assert str(figure(ms, "ms")) == said


@pytest.mark.parametrize(("percent", "expected"), [("0.04", "level"), ("0.05", "up"), ("-0.05", "down")])
def test_a_change_that_is_not_written_as_zero_has_a_direction(percent: str, expected: str) -> None:
    assert direction(point(change=Decimal(percent))) == expected


def test_a_change_is_in_percent_and_of_percentages_in_points() -> None:
    points = [
        point(change=6.24),
        point(change=-0.04),
        point(change=1.0, change_points=-1.3),
        point(change=None),
        None,
    ]

    assert [change(each) for each in points] == [
        "+6.2 %",
        "\N{PLUS-MINUS SIGN}0.0 %",
        "\N{MINUS SIGN}1.3 points",
        "",
        "",
    ]
    assert [direction(each) for each in points] == ["up", "level", "down", "", ""]


@pytest.mark.parametrize(
    ("percent", "before", "said"),
    [
        (999.9, Decimal(24), "+999.9 %"),
        (1000.0, Decimal(24), "from €24.00"),
        (17_519.0, Decimal("0.01"), "from €0.01"),
        (-1200.0, Decimal(-3), "from \N{MINUS SIGN}€3.00"),
    ],
)
def test_a_change_from_almost_nothing_is_what_it_came_from(percent: float, before: Decimal, said: str) -> None:
    assert change(point(30, change=percent, before=before), "money", "EUR") == said


def test_percentage_points_are_never_so_many_that_they_mean_something_else() -> None:
    assert change(point(30, change=5000.0, change_points=12.0, before=18.0), "percent") == "+12.0 points"


def test_an_age_has_two_units_and_is_never_below_zero() -> None:
    ages = [timedelta(seconds=-3), timedelta(minutes=3, seconds=4), timedelta(days=2, hours=5, minutes=1), None]

    assert [age(passed) for passed in ages] == ["0 s", "3 min 04 s", "2 d 5 h", "never"]


def test_the_provisional_share_goes_by_size_and_is_unknown_of_nothing() -> None:
    points = [point(30), point(-10, final=False), point(None, final=False)]

    assert provisional_share(points) == 25
    assert provisional_share([point(0, final=False)]) is None


def test_a_sparkline_breaks_where_nothing_is_known_and_ends_dashed() -> None:
    values = [(0, True), (4, True), (None, True), (2, True), (4, False)]

    line = sparkline([point(value, final=final) for value, final in values])

    assert line.final == "M5.0 43.0L77.5 5.0"
    assert line.provisional == "M222.5 24.0L295.0 5.0"
    assert (line.end, line.is_final) == ((295.0, 5.0), False)


def test_a_heat_map_leaves_out_hours_of_which_nothing_is_known() -> None:
    points = [
        point(None, weekday=1, hour=0),
        point(2.0, weekday=1, hour=9),
        point(12.0, weekday=7, hour=11, final=False),
    ]

    found = heat_map(points, "money", "EUR")

    assert found is not None
    assert list(found.hours) == [9, 10, 11]
    assert [square.shade for square in found.rows[0][1]] == [0, None, None]
    assert [square.shade for square in found.rows[6][1]] == [None, None, 4]
    assert heat_map(points[:1], "money", "EUR") is None
