"""Zones of the sales floor: an exit carries its entry, and nobody browses for over twelve hours."""

import pytest

from master_dataset.registry.stores import Sensor, Store, Zone
from master_dataset.sources.zone_presence import ZONE_PRESENCE
from tests.support.corpus.record import MISSING, is_repeat, payload, refusal

NOON = "2026-03-07T12:00:00Z"


def test_an_exit_carries_how_long_somebody_dwelt() -> None:
    left = payload(ZONE_PRESENCE)

    assert (left.zone, left.track, left.crossing, left.dwell_ms) == ("shoes", "t81", "exit", 90_000)
    assert left.entered_us == 1_772_874_360_000_000  # 2026-03-07 09:06 in UTC
    assert left.flags == []


def test_an_enter_has_no_entry_before_it_whatever_it_says() -> None:
    entered = payload(ZONE_PRESENCE, kind="enter", entered_at=MISSING)
    derived = payload(ZONE_PRESENCE, kind="enter", entered_at="2026-03-08T10:00:00Z")

    assert entered == derived
    assert (entered.entered_us, entered.dwell_ms) == (None, None)


@pytest.mark.parametrize(
    ("entered", "expected"),
    [
        (NOON, None),
        ("2026-03-07T00:00:00Z", None),
        ("2026-03-06T23:59:59.999Z", "duration_too_long"),
        ("2026-03-07T12:00:00.001Z", "negative_duration"),
        (MISSING, "missing_field"),
        (None, "missing_field"),
        ("2026-03-07 11:00:00Z", "bad_time"),
        ("2026-02-29T11:00:00Z", "bad_time"),
    ],
)
def test_an_exit_comes_after_its_entry_and_within_twelve_hours(entered: object, expected: str | None) -> None:
    refused = refusal(ZONE_PRESENCE, happened_at=NOON, entered_at=entered)

    assert refused == (expected and (expected, "/entered_at"))


@pytest.mark.parametrize(
    ("put", "expected"),
    [
        ({"kind": "leave"}, ("unknown_value", "/kind")),
        ({"kind": None}, ("wrong_type", "/kind")),
        ({"zone": ""}, ("bad_identity", "/zone")),
        ({"zone": "z" * 65}, ("bad_identity", "/zone")),
        ({"zone": 7}, ("wrong_type", "/zone")),
        ({"track": MISSING}, ("missing_field", "/track")),
    ],
)
def test_a_field_out_of_its_bounds_is_named(put: dict[str, object], expected: tuple[str, str]) -> None:
    assert refusal(ZONE_PRESENCE, **put) == expected


@pytest.mark.parametrize(
    ("zones", "sensors", "flags"),
    [
        ((), (), []),
        ((Zone("shoes"),), (Sensor("st-4", "zone_presence"),), []),
        ((Zone("hats"),), (), ["unknown_zone"]),
        ((Zone("Shoes"),), (Sensor("st-5", "zone_presence"),), ["unknown_zone", "unregistered_sensor"]),
    ],
)
def test_a_zone_is_missed_only_where_zones_are_registered(
    zones: tuple[Zone, ...], sensors: tuple[Sensor, ...], flags: list[str]
) -> None:
    store = Store("1", "Europe/Bratislava", zones=zones, sensors=sensors)

    assert payload(ZONE_PRESENCE, store.terms).flags == flags


@pytest.mark.parametrize(
    "put",
    [
        {"sensor_id": "st-5"},
        {"zone": "hats"},
        {"track": "t82"},
        {"kind": "enter"},
        {"happened_at": "2026-03-07T10:07:30.001+01:00"},
    ],
)
def test_another_zone_track_kind_or_instant_is_another_event(put: dict[str, object]) -> None:
    assert is_repeat(ZONE_PRESENCE, {}, put) is False


def test_an_exit_with_another_entry_is_a_conflict() -> None:
    assert is_repeat(ZONE_PRESENCE, {}, {"entered_at": "2026-03-07T10:06:01+01:00"}) is None


def test_an_exit_that_is_sent_again_is_the_same_event() -> None:
    assert is_repeat(ZONE_PRESENCE, {}, {"entered_at": "2026-03-07T09:06:00Z", "x": "y"}) is True
