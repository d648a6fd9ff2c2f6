"""The model of an index, on histories made by hand."""

from datetime import date, timedelta
from random import Random

import pytest

from serving_layer.index.model import (
    BANDS,
    NOTHING_EXPECTED,
    TOO_LITTLE_HISTORY,
    WEATHER_LEFT_OUT,
    Conditions,
    Model,
    Past,
    quantile,
    weather,
)
from serving_layer.responses.metrics import WeatherRow

MONDAY = date(2026, 1, 5)
MILD, COLD = "10 to 20", "below 0"
BY_WEEKDAY = [100.0, 110.0, 120.0, 130.0, 200.0, 300.0, 50.0]


def day(number: int, *, temperature: str = MILD, rain: bool = False, holiday: str = "") -> Conditions:
    """That many days after a Monday."""
    on = MONDAY + timedelta(days=number)
    return Conditions(on, (on.isoweekday(), None), temperature, rain, (holiday,) if holiday else ())


def usual(number: int) -> float:
    return BY_WEEKDAY[number % 7]


def rained(number: int) -> bool:
    return number % 3 == 0


def was_cold(number: int) -> bool:
    return number % 5 < 2


WEEKS = [Past(day(number), usual(number)) for number in range(56)]
MIXED = [
    Past(
        day(number, rain=rained(number), temperature=COLD if was_cold(number) else MILD),
        usual(number) * (0.8 if rained(number) else 1) * (1.25 if was_cold(number) else 1),
    )
    for number in range(91)
]


def test_the_pattern_of_the_week_is_found() -> None:
    model = Model.of(WEEKS)

    assert [model.expectation(day(56 + number)).value for number in range(7)] == pytest.approx(BY_WEEKDAY)
    assert model.expectation(day(56)).points_used == 8


def test_hours_have_a_pattern_of_their_own() -> None:
    past = [
        Past(each.conditions._replace(cell=(each.conditions.cell[0], hour)), each.value * hour)
        for each in WEEKS
        for hour in range(24)
    ]
    model = Model.of(past)

    assert model.expectation(Conditions(MONDAY, (5, 17), MILD, rain=False)).value == pytest.approx(200 * 17)


def test_what_rain_takes_away_and_cold_adds_is_found() -> None:
    model = Model.of(MIXED)
    factors = model.factors

    assert factors.rain[True] / factors.rain[False] == pytest.approx(0.8)
    assert factors.temperature[COLD] / factors.temperature[MILD] == pytest.approx(1.25)
    assert model.expectation(day(91, rain=True, temperature=COLD)).value == pytest.approx(100 * 0.8 * 1.25)
    assert model.expectation(day(96, rain=False)).value == pytest.approx(300)


def test_over_the_history_what_is_expected_adds_up_to_what_was_there() -> None:
    noisy = [each._replace(value=each.value + number % 11) for number, each in enumerate(MIXED)]
    factors = Model.of(noisy).factors

    for place in range(3):
        for level in {each.conditions.levels[place] for each in noisy}:
            alike = [each for each in noisy if each.conditions.levels[place] == level]
            assert sum(factors.expected(each.conditions) for each in alike) == pytest.approx(
                sum(each.value for each in alike), rel=1e-6
            )


def test_holidays_are_left_out_of_what_is_usual() -> None:
    holidays = {7, 21, 35, 49}
    past = [
        Past(day(number, holiday="Feast" if number in holidays else ""), 0 if number in holidays else usual(number))
        for number in range(56)
    ]

    found = Model.of(past).expectation(day(56))

    assert found.value == pytest.approx(100)
    assert found.points_used == 4


def test_a_holiday_is_expected_as_holidays_were_whatever_their_weekday() -> None:
    holidays = {8, 23, 31, 40}
    past = [
        Past(
            day(number, holiday="Feast" if number in holidays else ""), usual(number) * (2 if number in holidays else 1)
        )
        for number in range(56)
    ]

    found = Model.of(past).expectation(day(57, holiday="Another"))

    assert found.value == pytest.approx(220)
    assert found.points_used == 4


def test_a_holiday_is_not_guessed_from_two() -> None:
    past = [
        each if number not in (8, 23) else Past(day(number, holiday="Feast"), 1) for number, each in enumerate(WEEKS)
    ]

    found = Model.of(past).expectation(day(57, holiday="Feast"))

    assert (found.value, found.flags) == (None, (TOO_LITTLE_HISTORY,))


def test_three_weeks_are_too_little() -> None:
    found = Model.of(WEEKS[:21]).expectation(day(21))

    assert (found.value, found.points_used, found.flags) == (None, 3, (TOO_LITTLE_HISTORY,))


def test_no_history_at_all_is_too_little() -> None:
    found = Model.of([]).expectation(day(0))

    assert (found.value, found.points_used, found.flags) == (None, 0, (TOO_LITTLE_HISTORY,))


def test_an_hour_in_which_nothing_ever_happened_has_no_index() -> None:
    found = Model.of([each._replace(value=0.0) for each in WEEKS]).expectation(day(56))

    assert (found.value, found.flags) == (None, (NOTHING_EXPECTED,))


def test_weather_that_the_history_hardly_knows_is_left_out_and_said_so() -> None:
    model = Model.of(MIXED)

    heat = model.expectation(day(91, temperature="30 and above"))
    unknown = model.expectation(Conditions(MONDAY, (1, None)))

    assert (heat.flags, unknown.flags) == ((WEATHER_LEFT_OUT,), (WEATHER_LEFT_OUT,))
    average = sum(each.value for each in MIXED if each.conditions.cell == (1, None)) / 13
    assert unknown.value == pytest.approx(average, rel=0.05)


def test_without_any_weather_there_is_still_the_week() -> None:
    bare = [each._replace(conditions=each.conditions._replace(temperature=None, rain=None)) for each in WEEKS]

    found = Model.of(bare).expectation(bare[4].conditions)

    assert found.value == pytest.approx(200)
    assert found.flags == (WEATHER_LEFT_OUT,)


def test_the_error_is_the_prediction_interval_of_one_more_point() -> None:
    values = [90.0, 110.0, 90.0, 110.0]
    past = [Past(day(7 * number), value) for number, value in enumerate(values)]

    found = Model.of(past).expectation(day(28))

    spread = (4 * 0.1**2 / 3) ** 0.5
    assert found.error == pytest.approx(100 * 3.182 * spread * (1 + 1 / 4) ** 0.5)


def test_the_order_of_a_history_changes_nothing() -> None:
    kept, shuffled = Model.of(MIXED), Model.of(Random(7).sample(MIXED, len(MIXED)))

    for conditions, _ in MIXED[-7:]:
        expected, found = kept.expectation(conditions), shuffled.expectation(conditions)
        assert found.value == pytest.approx(expected.value)
        assert found.error == pytest.approx(expected.error, abs=1e-6)
        assert (found.points_used, found.flags) == (expected.points_used, expected.flags)


def observed(celsius: float, rain: float) -> WeatherRow:
    return WeatherRow(
        store="1",
        start="2026-03-07T00:00:00Z",
        temperature_avg=celsius,
        temperature_min=celsius,
        temperature_max=celsius,
        precipitation=rain,
        wind_avg=None,
        cloud_avg=None,
        providers=(),
        observations=1,
        final=True,
    )


def test_bands_begin_at_their_lower_edge() -> None:
    def band(celsius: float) -> str | None:
        return weather(observed(celsius, 0.0), "day")[0]

    assert [band(celsius) for celsius in (-0.1, 0, 9.9, 10, 20, 30)] == [*BANDS[:2], *BANDS[1:]]


def test_a_day_is_wet_from_a_millimetre_and_an_hour_from_a_tenth() -> None:
    row = observed(0.0, 0.1)

    assert (weather(row, "hour")[1], weather(row, "day")[1]) == (True, False)
    assert weather(observed(0.0, 1.0), "day")[1]
    assert weather(None, "day") == (None, None)


def test_the_table_of_student_narrows_with_every_degree_of_freedom() -> None:
    found = [quantile(freedom) for freedom in range(1, 41)]

    assert found[:30] == sorted(found[:30], reverse=True)
    assert (found[0], found[9], found[29], found[39]) == (12.706, 2.228, 2.042, 2.042)
