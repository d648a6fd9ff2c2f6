"""People at a door line: intervals in one window, plausible counts, and flags for unusual ones."""

import pytest

from master_dataset.registry.stores import Sensor, Store
from master_dataset.sources.people_counts import PEOPLE_COUNTS
from tests.support.corpus.record import MISSING, event, is_repeat, payload, refusal

COUNTS = ("people_in", "people_out", "group_in", "group_out", "staff_in", "staff_out")
SPLIT = {"staff_in": 0, "staff_out": 0, "group_in": MISSING}


def test_the_golden_record_says_what_its_line_counted() -> None:
    counted = payload(PEOPLE_COUNTS)

    assert (counted.sensor_id, counted.line, counted.interval_ms) == ("cam-1", "door-A", 900_000)
    assert [getattr(counted, name) for name in COUNTS] == [6, 2, 4, None, None, None]
    assert counted.flags == ["no_staff_split"]


@pytest.mark.parametrize("name", COUNTS)
@pytest.mark.parametrize(
    ("count", "expected"),
    [
        (0, None),
        (100_000, None),
        (5.0, None),
        (100_001, "out_of_range"),
        (-1, "out_of_range"),
        (1.5, "bad_number"),
        (1e30, "bad_number"),
        ("6", "wrong_type"),
        (True, "wrong_type"),
        ([], "wrong_type"),
    ],
)
def test_a_count_is_whole_and_from_zero_to_a_hundred_thousand(name: str, count: object, expected: str | None) -> None:
    refused = refusal(PEOPLE_COUNTS, **{name: count})

    assert refused == (expected and (expected, f"/{name}"))


@pytest.mark.parametrize("name", ["people_in", "people_out"])
def test_a_door_that_counts_one_way_sends_a_zero_for_the_other(name: str) -> None:
    assert payload(PEOPLE_COUNTS, **SPLIT, **{name: 0}).flags == []
    assert refusal(PEOPLE_COUNTS, **{name: MISSING}) == ("missing_field", f"/{name}")
    assert refusal(PEOPLE_COUNTS, **{name: None}) == ("wrong_type", f"/{name}")


def test_an_interval_in_which_nobody_passed_is_an_event() -> None:
    counted = payload(PEOPLE_COUNTS, people_in=0, people_out=0, **SPLIT)

    assert (counted.people_in, counted.people_out, counted.flags) == (0, 0, [])


@pytest.mark.parametrize(
    ("interval", "expected"),
    [
        (1, None),
        (900_000, None),
        (0, "out_of_range"),
        (900_001, "out_of_range"),
        (-1, "out_of_range"),
        (0.5, "bad_number"),
        ("900000", "wrong_type"),
        (None, "wrong_type"),
        (MISSING, "missing_field"),
    ],
)
def test_an_interval_has_a_millisecond_to_a_quarter_of_an_hour(interval: object, expected: str | None) -> None:
    refused = refusal(PEOPLE_COUNTS, interval_ms=interval)

    assert refused == (expected and (expected, "/interval_ms"))


@pytest.mark.parametrize(
    ("start", "interval", "crosses"),
    [
        ("2026-03-07T09:00:00Z", 900_000, False),
        ("2026-03-07T09:00:00.001Z", 899_999, False),
        ("2026-03-07T09:00:00.001Z", 900_000, True),
        ("2026-03-07T09:14:59.999Z", 1, False),
        ("2026-03-07T09:14:59.999Z", 2, True),
        ("2026-03-07T09:14:59.9999Z", 1, False),  # finer digits are cut
        ("2026-03-07T09:10:00Z", 300_000, False),
        ("2026-03-07T09:10:00Z", 300_001, True),
        ("2026-03-07T23:45:00Z", 900_000, False),
        ("2026-03-07T14:45:00+05:45", 900_000, False),  # Kathmandu: the edge is one of UTC
        ("2026-03-07T14:50:00+05:45", 900_000, True),
        ("2026-03-07T09:00:00+00:05", 300_000, False),  # 08:55 in UTC
        ("2026-03-07T09:00:00+00:05", 300_001, True),
    ],
)
def test_an_interval_lies_in_one_window_of_utc(start: str, interval: int, crosses: object) -> None:
    refused = refusal(PEOPLE_COUNTS, happened_at=start, interval_ms=interval)

    assert refused == (("interval_crosses_window", "/interval_ms") if crosses else None)


@pytest.mark.parametrize(
    ("put", "flags"),
    [
        ({"group_in": 6, "staff_in": 0}, []),
        ({"group_in": 7, "staff_in": 0}, ["groups_above_people"]),
        ({"group_out": 3, "staff_out": 0}, ["groups_above_people"]),
        ({"group_in": MISSING, "staff_in": 0}, []),
        ({"group_in": None, "staff_in": None}, ["no_staff_split"]),
        ({"interval_ms": 2000, "staff_in": 0}, []),  # 8 in 2 s: just 4 a second
        ({"interval_ms": 1999, "staff_in": 0}, ["implausible_rate"]),
        ({"people_in": 3600, "people_out": 0, "staff_in": 0}, []),
        ({"people_in": 3600, "people_out": 1, "staff_in": 0}, ["implausible_rate"]),
        ({"people_in": 100_000, "people_out": 100_000}, ["implausible_rate", "no_staff_split"]),  # a counter jumped
    ],
)
def test_what_is_odd_about_a_count_is_flagged_and_counts(put: dict[str, object], flags: list[str]) -> None:
    assert payload(PEOPLE_COUNTS, **put).flags == flags


@pytest.mark.parametrize(
    ("sensors", "flags"),
    [
        ((), []),
        ((Sensor("cam-1", "people_counts"),), []),
        ((Sensor("cam-2", "people_counts"),), ["unregistered_sensor"]),
        ((Sensor("cam-1", "queue_events"),), ["unregistered_sensor"]),
        ((Sensor("cam-1", "people_counts"), Sensor("cam-1", "demographics")), []),  # one camera, two sources
        ((Sensor("cam-1", "demographics"), Sensor("cam-1", "people_counts")), []),
    ],
)
def test_a_sensor_is_missed_only_where_sensors_are_registered(sensors: tuple[Sensor, ...], flags: list[str]) -> None:
    store = Store("1", "Europe/Bratislava", sensors=sensors)

    assert payload(PEOPLE_COUNTS, store.terms, **SPLIT).flags == flags


@pytest.mark.parametrize("name", ["sensor_id", "line"])
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a" * 64, None),
        ("é" * 32, None),
        ("a" * 65, "bad_identity"),
        ("é" * 33, "bad_identity"),
        ("", "bad_identity"),
        (1, "wrong_type"),
        (None, "wrong_type"),
        (MISSING, "missing_field"),
    ],
)
def test_a_sensor_and_a_line_have_names_of_1_to_64_bytes(name: str, text: object, expected: str | None) -> None:
    refused = refusal(PEOPLE_COUNTS, **{name: text})

    assert refused == (expected and (expected, f"/{name}"))


@pytest.mark.parametrize(
    "put",
    [
        {"sensor_id": "cam-2"},
        {"line": "door-B"},
        {"operation_id": 2},
        {"happened_at": "2026-03-07T10:00:00.001+01:00", "interval_ms": 1},
    ],
)
def test_another_sensor_line_store_or_instant_is_another_event(put: dict[str, object]) -> None:
    assert is_repeat(PEOPLE_COUNTS, {}, put) is False


@pytest.mark.parametrize(
    "put",
    [
        {"people_in": 7},
        {"people_out": 0},
        {"group_in": MISSING},
        {"group_out": 0},
        {"staff_in": 0},
        {"staff_out": 0},
        {"interval_ms": 60_000},
    ],
)
def test_another_count_of_the_same_interval_is_a_conflict(put: dict[str, object]) -> None:
    assert is_repeat(PEOPLE_COUNTS, {}, put) is None


def test_a_count_that_is_sent_again_is_the_same_event_however_it_is_written() -> None:
    again = {"happened_at": "2026-03-07T09:00:00.0000Z", "operation_id": "1", "people_in": 6.0, "group_out": None}

    assert is_repeat(PEOPLE_COUNTS, {}, {**again, "firmware": "1.2"}) is True


def test_a_flag_that_came_with_a_registration_makes_no_conflict() -> None:
    store = Store("1", "Europe/Bratislava", sensors=(Sensor("other", "people_counts"),))

    first, second = event(PEOPLE_COUNTS), event(PEOPLE_COUNTS, store.terms)

    assert first.payload.flags != second.payload.flags
    assert (first.identity, first.payload_hash) == (second.identity, second.payload_hash)
