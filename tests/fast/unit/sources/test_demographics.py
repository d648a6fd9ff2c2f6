"""Who comes: counts of a band and gender over an interval, and nothing of a person."""

import pytest

from master_dataset.registry.stores import Sensor, Store
from master_dataset.sources.demographics import AGE_BANDS, DEMOGRAPHICS, GENDERS
from tests.support.corpus.record import MISSING, is_repeat, payload, refusal


def test_the_golden_record_says_how_many_of_whom() -> None:
    seen = payload(DEMOGRAPHICS)

    assert (seen.age_band, seen.gender, seen.people, seen.interval_ms) == ("25-34", "female", 3, 900_000)
    assert seen.flags == []


@pytest.mark.parametrize("age_band", AGE_BANDS)
@pytest.mark.parametrize("gender", GENDERS)
def test_every_band_and_gender_is_taken(age_band: str, gender: str) -> None:
    assert refusal(DEMOGRAPHICS, age_band=age_band, gender=gender) is None


def test_the_bands_are_those_of_the_catalogue() -> None:
    assert AGE_BANDS == ("0-14", "15-24", "25-34", "35-44", "45-54", "55-64", "65+", "unknown")
    assert GENDERS == ("female", "male", "unknown")


@pytest.mark.parametrize(
    ("put", "expected"),
    [
        ({"age_band": "18-24"}, ("unknown_value", "/age_band")),
        ({"age_band": 25}, ("wrong_type", "/age_band")),
        ({"gender": "Female"}, ("unknown_value", "/gender")),
        ({"gender": None}, ("wrong_type", "/gender")),
        ({"people": 1}, None),
        ({"people": 10_000}, None),
        ({"people": 0}, ("out_of_range", "/people")),  # nobody of a band is no record
        ({"people": 10_001}, ("out_of_range", "/people")),
        ({"people": -3}, ("out_of_range", "/people")),
        ({"people": 0.5}, ("bad_number", "/people")),
        ({"people": MISSING}, ("missing_field", "/people")),
        ({"interval_ms": 0}, ("out_of_range", "/interval_ms")),
        ({"interval_ms": 900_001}, ("out_of_range", "/interval_ms")),
        ({"happened_at": "2026-03-07T10:00:00.001+01:00"}, ("interval_crosses_window", "/interval_ms")),
        ({"happened_at": "2026-03-07T09:14:59.999Z", "interval_ms": 1}, None),
        ({"happened_at": "2026-03-07T09:14:59.999Z", "interval_ms": 2}, ("interval_crosses_window", "/interval_ms")),
        ({"sensor_id": ""}, ("bad_identity", "/sensor_id")),
    ],
)
def test_a_field_out_of_its_bounds_is_named(put: dict[str, object], expected: tuple[str, str] | None) -> None:
    assert refusal(DEMOGRAPHICS, **put) == expected


def test_a_camera_that_is_not_registered_for_faces_is_flagged() -> None:
    store = Store("1", "UTC", sensors=(Sensor("cam-1", "people_counts"),))

    assert payload(DEMOGRAPHICS, store.terms).flags == ["unregistered_sensor"]


@pytest.mark.parametrize(
    "put",
    [{"sensor_id": "cam-2"}, {"age_band": "35-44"}, {"gender": "male"}, {"happened_at": "2026-03-07T10:15:00+01:00"}],
)
def test_another_camera_band_gender_or_interval_is_another_event(put: dict[str, object]) -> None:
    assert is_repeat(DEMOGRAPHICS, {}, put) is False


@pytest.mark.parametrize("put", [{"people": 4}, {"interval_ms": 300_000}])
def test_another_count_of_the_same_interval_is_a_conflict(put: dict[str, object]) -> None:
    assert is_repeat(DEMOGRAPHICS, {}, put) is None


def test_a_count_that_is_sent_again_is_the_same_event() -> None:
    assert is_repeat(DEMOGRAPHICS, {}, {"happened_at": "2026-03-07T09:00:00Z", "people": 3.0, "model": "v2"}) is True
