"""What holds of every index, whatever the history."""

import random
from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from serving_layer.index.model import BANDS, Conditions, Model, Past

MONDAY = date(2026, 1, 5)
WEATHER = st.tuples(st.sampled_from([None, *BANDS]), st.sampled_from([None, True, False]))
VALUES = st.floats(0.01, 1e7, allow_nan=False)


def conditions(number: int, temperature: str | None, rain: bool | None) -> Conditions:  # noqa: FBT001 - drawn
    day = MONDAY + timedelta(days=number)
    return Conditions(day, (day.isoweekday(), None), temperature, rain)


def pasts(values: st.SearchStrategy[float]) -> st.SearchStrategy[list[Past]]:
    drawn = st.lists(st.tuples(WEATHER, values), min_size=28, max_size=60)
    return drawn.map(
        lambda points: [Past(conditions(number, *sky), value) for number, (sky, value) in enumerate(points)]
    )


@given(past=pasts(st.just(1.0)), value=VALUES, sky=WEATHER)
def test_the_index_of_a_constant_series_is_100_in_any_weather(
    past: list[Past], value: float, sky: tuple[str | None, bool | None]
) -> None:
    constant = [each._replace(value=value) for each in past]

    found = Model.of(constant).expectation(conditions(len(past), *sky))

    assert found.value == pytest.approx(value)
    assert found.error == pytest.approx(0, abs=1e-6)


@given(past=pasts(VALUES), sky=WEATHER, times=st.floats(0.001, 1000))
def test_an_index_does_not_depend_on_the_unit(
    past: list[Past], sky: tuple[str | None, bool | None], times: float
) -> None:
    weather_conditions = conditions(len(past), *sky)

    found = Model.of(past).expectation(weather_conditions)
    scaled = Model.of([each._replace(value=each.value * times) for each in past]).expectation(weather_conditions)

    assert found.value is not None
    assert scaled.value == pytest.approx(found.value * times, rel=1e-4)
    assert scaled.error == pytest.approx(found.error, rel=1e-3, abs=1e-6)


@given(past=pasts(VALUES))
def test_every_weekday_is_expected_to_sell_what_it_sold(past: list[Past]) -> None:
    factors = Model.of(past).factors

    for weekday in range(1, 8):
        alike = [each for each in past if each.conditions.cell[0] == weekday]
        expected = sum(factors.expected(each.conditions) for each in alike)
        assert expected == pytest.approx(sum(each.value for each in alike), rel=1e-9)


def test_of_points_like_those_of_the_history_95_in_100_lie_within_the_interval() -> None:
    chance = random.Random(20260307)
    within = 0
    for _ in range(400):
        values = [chance.gauss(100, 15) for _ in range(13 * 7 + 1)]
        past = [Past(conditions(number, "0 to 10", rain=False), value) for number, value in enumerate(values[:-1])]
        found = Model.of(past).expectation(conditions(91, "0 to 10", rain=False))
        assert found.value is not None
        within += abs(100 * values[-1] / found.value - 100) <= found.error

    assert 0.93 <= within / 400 <= 0.97
