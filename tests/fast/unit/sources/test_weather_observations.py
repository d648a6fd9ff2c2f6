"""The weather at a store, in whole thousandths and within what the earth has seen."""

import pytest

from master_dataset.sources.weather_observations import WEATHER_OBSERVATIONS
from tests.support.corpus.record import MISSING, is_repeat, payload, refusal


def test_the_golden_record_says_what_the_weather_was() -> None:
    observed = payload(WEATHER_OBSERVATIONS)

    assert (observed.provider, observed.interval_ms) == ("s1", 900_000)
    assert (observed.temperature_mc, observed.precipitation_um, observed.wind_mm_s) == (7400, 200, 3100)
    assert observed.cloud_permille is None


@pytest.mark.parametrize(
    ("name", "least", "most"),
    [
        ("temperature_mc", -90_000, 65_000),
        ("precipitation_um", 0, 10**9),
        ("wind_mm_s", 0, 10**9),
        ("cloud_permille", 0, 1000),
        ("interval_ms", 1, 900_000),
    ],
)
def test_every_number_has_its_bounds_and_they_are_included(name: str, least: int, most: int) -> None:
    assert [refusal(WEATHER_OBSERVATIONS, **{name: number}) for number in (least, most)] == [None, None]
    for number in (least - 1, most + 1, 10**18):
        assert refusal(WEATHER_OBSERVATIONS, **{name: number}) == ("out_of_range", f"/{name}")
    assert refusal(WEATHER_OBSERVATIONS, **{name: 0.5}) == ("bad_number", f"/{name}")
    assert refusal(WEATHER_OBSERVATIONS, **{name: "7400"}) == ("wrong_type", f"/{name}")


@pytest.mark.parametrize("name", ["temperature_mc", "precipitation_um", "wind_mm_s", "provider", "interval_ms"])
def test_what_every_observation_has_is_missed(name: str) -> None:
    assert refusal(WEATHER_OBSERVATIONS, **{name: MISSING}) == ("missing_field", f"/{name}")


def test_an_observation_over_two_windows_is_a_dead_letter() -> None:
    refused = refusal(WEATHER_OBSERVATIONS, happened_at="2026-03-07T09:00:00.001Z")

    assert refused == ("interval_crosses_window", "/interval_ms")


@pytest.mark.parametrize("put", [{"provider": "s2"}, {"operation_id": 2}, {"happened_at": "2026-03-07T09:15:00Z"}])
def test_another_provider_store_or_interval_is_another_event(put: dict[str, object]) -> None:
    assert is_repeat(WEATHER_OBSERVATIONS, {}, put) is False


@pytest.mark.parametrize(
    "put",
    [{"temperature_mc": 7401}, {"precipitation_um": 0}, {"wind_mm_s": 0}, {"cloud_permille": 0}, {"interval_ms": 1}],
)
def test_another_observation_of_the_same_interval_is_a_conflict(put: dict[str, object]) -> None:
    assert is_repeat(WEATHER_OBSERVATIONS, {}, put) is None


def test_an_observation_that_is_sent_again_is_the_same_event() -> None:
    assert is_repeat(WEATHER_OBSERVATIONS, {}, {"happened_at": "2026-03-07T10:00:00+01:00", "cloud_permille": None})
