"""A router hears a device: what it may say of it, and when it says the same again."""

from datetime import date

import pytest

from master_dataset.registry.stores import Sensor, Store, business_date
from master_dataset.sources.wifi_sightings import WIFI_SIGHTINGS
from tests.support.corpus.record import MISSING, event, is_repeat, payload, refusal

HASH = "9f86d081884c7d659a2feaa0c55ad015"


def test_the_golden_record_says_who_was_heard_where() -> None:
    heard = payload(WIFI_SIGHTINGS)

    assert (heard.sensor_id, heard.device, heard.salt_id) == ("ap-2", HASH, "2026-03-07")
    assert (heard.is_inside, heard.signal_dbm, heard.is_randomized, heard.flags) == (True, -61, False, [])


@pytest.mark.parametrize(
    "device",
    [
        "aa:bb:cc:dd:ee:ff",
        "AA:BB:CC:DD:EE:FF",
        "aa-bb-cc-dd-ee-ff",
        "AA-BB-CC-DD-EE-FF",
        "aabb.ccdd.eeff",
        "aabbccddeeff",
        "AABBCCDDEEFF",
        "aa bb cc dd ee ff",
        "aa.bb.cc.dd.ee.ff",
        "aabbcc-ddeeff",
        "aabb:ccdd:eeff",
        "123456789012",
        "a:b:c:d:e:f",
        "0:1b:63:84:45:e6",
        "0-1B-63-84-45-E6",
    ],
)
def test_a_hardware_address_in_any_spelling_is_refused_as_one(device: str) -> None:
    assert refusal(WIFI_SIGHTINGS, device=device) == ("raw_mac_address", "/device")


@pytest.mark.parametrize(
    ("device", "expected"),
    [
        (HASH, None),
        ("0" * 32, None),
        ("123456789012" * 2 + "12345678", None),
        (HASH.upper(), "out_of_range"),
        (HASH[:-1], "out_of_range"),
        (HASH + "0", "out_of_range"),
        (HASH[:-1] + "g", "out_of_range"),
        (HASH[:-1] + "٣", "out_of_range"),  # a digit, but not of ASCII
        (HASH + "\n", "out_of_range"),
        ("printer", "out_of_range"),
        ("", "bad_identity"),
        (HASH * 2 + "0", "bad_identity"),
        (123456789012, "wrong_type"),
        (None, "wrong_type"),
        (MISSING, "missing_field"),
    ],
)
def test_a_device_is_a_hash_of_32_hex_digits(device: object, expected: str | None) -> None:
    refused = refusal(WIFI_SIGHTINGS, device=device)

    assert refused == (expected and (expected, "/device"))


@pytest.mark.parametrize(
    ("put", "expected"),
    [
        ({"signal_dbm": 0}, None),
        ({"signal_dbm": -127}, None),
        ({"signal_dbm": 1}, ("out_of_range", "/signal_dbm")),
        ({"signal_dbm": -128}, ("out_of_range", "/signal_dbm")),
        ({"signal_dbm": -61.5}, ("bad_number", "/signal_dbm")),
        ({"signal_dbm": MISSING}, ("missing_field", "/signal_dbm")),
        ({"zone": "door"}, ("unknown_value", "/zone")),
        ({"zone": "Inside"}, ("unknown_value", "/zone")),
        ({"randomized": None}, None),
        ({"randomized": "true"}, ("wrong_type", "/randomized")),
        ({"randomized": 1}, ("wrong_type", "/randomized")),
        ({"salt_id": ""}, ("bad_identity", "/salt_id")),
        ({"salt_id": 20260307}, ("wrong_type", "/salt_id")),
    ],
)
def test_a_field_out_of_its_bounds_is_named(put: dict[str, object], expected: tuple[str, str] | None) -> None:
    assert refusal(WIFI_SIGHTINGS, **put) == expected


@pytest.mark.parametrize(("signal", "flags"), [(-90, []), (-91, ["weak_signal"]), (-127, ["weak_signal"])])
def test_a_signal_below_ninety_is_weak(signal: int, flags: list[str]) -> None:
    assert payload(WIFI_SIGHTINGS, signal_dbm=signal).flags == flags


def test_a_router_that_is_not_registered_is_flagged() -> None:
    store = Store("1", "UTC", sensors=(Sensor("ap-1", "wifi_sightings"),))

    assert payload(WIFI_SIGHTINGS, store.terms, signal_dbm=-95).flags == ["unregistered_sensor", "weak_signal"]


def test_a_sighting_lies_in_the_business_day_of_its_store() -> None:
    bar = Store("1", "Europe/Bratislava", day_starts_at="04:00")

    days = [
        business_date(payload(WIFI_SIGHTINGS, bar.terms, happened_at=f"2026-03-07T{clock}+01:00").business_day)
        for clock in ("03:59:59.999", "04:00:00")
    ]

    assert days == [date(2026, 3, 6), date(2026, 3, 7)]


def test_a_router_that_sends_its_day_again_says_nothing_new() -> None:
    zones = ("inside", "outside")
    day = [{"happened_at": f"2026-03-07T{hour:02}:00:00Z", "zone": zone} for hour in range(24) for zone in zones]

    sent = [event(WIFI_SIGHTINGS, **put) for put in (*day, *day)]

    assert len({each.identity for each in sent}) == len({each.identity_hash for each in sent}) == len(day)
    assert sent[: len(day)] == sent[len(day) :]


@pytest.mark.parametrize(
    "put",
    [
        {"sensor_id": "ap-3"},
        {"salt_id": "2026-03-08"},
        {"device": "0" * 32},
        {"zone": "outside"},
        {"happened_at": "2026-03-07T09:02:00.001Z"},
    ],
)
def test_another_router_salt_device_zone_or_instant_is_another_event(put: dict[str, object]) -> None:
    assert is_repeat(WIFI_SIGHTINGS, {}, put) is False


@pytest.mark.parametrize("put", [{"signal_dbm": -62}, {"randomized": True}])
def test_another_strength_of_the_same_frame_is_a_conflict(put: dict[str, object]) -> None:
    assert is_repeat(WIFI_SIGHTINGS, {}, put) is None


def test_a_device_that_is_not_said_to_be_random_is_not() -> None:
    assert is_repeat(WIFI_SIGHTINGS, {}, {"randomized": False}) is True
