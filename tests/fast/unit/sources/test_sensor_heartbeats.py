"""Signs of life: of the sensors whose silence could mean either nothing or no sensor."""

import pytest

from master_dataset.registry.stores import Sensor, Store
from master_dataset.sources import registered_sources
from master_dataset.sources.sensor_heartbeats import SENSOR_HEARTBEATS, WATCHED
from tests.support.corpus.record import MISSING, is_repeat, payload, refusal


def test_the_golden_record_says_who_was_alive_for_how_long() -> None:
    beat = payload(SENSOR_HEARTBEATS)

    assert (beat.sensor_id, beat.source, beat.interval_ms, beat.flags) == ("ap-2", "wifi_sightings", 60_000, [])


def test_the_watched_sources_are_registered_and_counters_are_their_own_proof_of_life() -> None:
    assert set(WATCHED) < set(registered_sources())
    assert refusal(SENSOR_HEARTBEATS, source="people_counts") == ("unknown_value", "/source")


@pytest.mark.parametrize(
    ("put", "expected"),
    [
        *[({"source": source}, None) for source in WATCHED],
        ({"source": "pos_transactions"}, ("unknown_value", "/source")),
        ({"source": MISSING}, ("missing_field", "/source")),
        ({"interval_ms": 1}, None),
        ({"interval_ms": 900_000}, None),
        ({"interval_ms": 0}, ("out_of_range", "/interval_ms")),
        ({"interval_ms": 900_001}, ("out_of_range", "/interval_ms")),
        ({"happened_at": "2026-03-07T09:14:00Z"}, None),
        ({"happened_at": "2026-03-07T09:14:00.001Z"}, ("interval_crosses_window", "/interval_ms")),
        ({"sensor_id": ""}, ("bad_identity", "/sensor_id")),
    ],
)
def test_a_field_out_of_its_bounds_is_named(put: dict[str, object], expected: tuple[str, str] | None) -> None:
    assert refusal(SENSOR_HEARTBEATS, **put) == expected


@pytest.mark.parametrize(
    ("sensor", "flags"),
    [
        (Sensor("ap-2", "wifi_sightings"), []),
        (Sensor("ap-2", "queue_events"), ["unregistered_sensor"]),
        (Sensor("ap-3", "wifi_sightings"), ["unregistered_sensor"]),
    ],
)
def test_a_sensor_is_known_by_the_source_that_it_feeds(sensor: Sensor, flags: list[str]) -> None:
    store = Store("1", "UTC", sensors=(sensor,))

    assert payload(SENSOR_HEARTBEATS, store.terms).flags == flags


@pytest.mark.parametrize("put", [{"sensor_id": "ap-3"}, {"happened_at": "2026-03-07T09:01:00Z"}])
def test_another_sensor_or_interval_is_another_event(put: dict[str, object]) -> None:
    assert is_repeat(SENSOR_HEARTBEATS, {}, put) is False


@pytest.mark.parametrize("put", [{"source": "queue_events"}, {"interval_ms": 30_000}])
def test_the_same_beat_of_another_source_or_length_is_a_conflict(put: dict[str, object]) -> None:
    assert is_repeat(SENSOR_HEARTBEATS, {}, put) is None


def test_a_beat_that_is_sent_again_is_the_same_event() -> None:
    assert is_repeat(SENSOR_HEARTBEATS, {}, {"happened_at": "2026-03-07T10:00:00+01:00"}) is True
