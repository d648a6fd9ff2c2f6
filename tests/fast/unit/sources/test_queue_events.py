"""A queue: every end carries its start, and no wait or service lasts over four hours."""

import pytest

from master_dataset.registry.stores import Sensor, Store
from master_dataset.sources.queue_events import QUEUE_EVENTS
from tests.support.corpus.record import MISSING, is_repeat, payload, refusal

LEFT = {
    "kind": "leave",
    "joined_at": "2026-03-07T10:00:00+01:00",
    "service_started_at": "2026-03-07T10:10:00+01:00",
    "happened_at": "2026-03-07T10:14:00+01:00",
}
NOON = "2026-03-07T12:00:00Z"


def test_a_service_start_carries_the_wait_before_it() -> None:
    started = payload(QUEUE_EVENTS)

    assert (started.queue, started.track, started.change) == ("Q1", "p1", "service_start")
    assert (started.wait_ms, started.service_ms, started.length_after) == (240_000, None, None)
    assert started.joined_us == 1_772_874_600_000_000  # 2026-03-07 09:10 in UTC


def test_whoever_gives_up_has_waited_and_was_not_served() -> None:
    abandoned = payload(QUEUE_EVENTS, kind="abandon", length_after=3)

    assert (abandoned.wait_ms, abandoned.service_ms, abandoned.length_after) == (240_000, None, 3)


def test_a_leave_carries_the_service_and_leaves_the_wait_to_its_start() -> None:
    left = payload(QUEUE_EVENTS, **LEFT)

    assert (left.wait_ms, left.service_ms) == (None, 240_000)
    assert left.joined_us == 1_772_874_000_000_000


def test_a_join_joins_when_it_happens_whatever_else_it_says() -> None:
    joined = payload(QUEUE_EVENTS, kind="join", joined_at=MISSING)
    derived = payload(QUEUE_EVENTS, kind="join", joined_at="2026-03-07T23:00:00Z")

    assert joined == derived
    assert (joined.joined_us, joined.wait_ms) == (1_772_874_840_000_000, None)


@pytest.mark.parametrize(
    ("put", "field"),
    [
        ({"joined_at": MISSING}, "joined_at"),
        ({"joined_at": None}, "joined_at"),
        ({"kind": "abandon", "joined_at": MISSING}, "joined_at"),
        ({**LEFT, "joined_at": MISSING}, "joined_at"),
        ({**LEFT, "service_started_at": MISSING}, "service_started_at"),
        ({**LEFT, "service_started_at": None}, "service_started_at"),
    ],
)
def test_an_end_without_its_start_is_a_dead_letter(put: dict[str, object], field: str) -> None:
    assert refusal(QUEUE_EVENTS, **put) == ("missing_field", f"/{field}")


@pytest.mark.parametrize("kind", ["service_start", "abandon"])
@pytest.mark.parametrize(
    ("joined", "expected"),
    [
        ("2026-03-07T08:00:00Z", None),
        ("2026-03-07T07:59:59.999Z", "duration_too_long"),
        ("2026-03-06T12:00:00Z", "duration_too_long"),
        (NOON, None),
        ("2026-03-07T12:00:00.001Z", "negative_duration"),
        ("2026-03-07T13:00:00Z", "negative_duration"),  # a clock that is wrong by an hour
        ("2026-03-07T13:00:00+01:00", None),
    ],
)
def test_a_wait_lasts_from_nothing_to_four_hours(kind: str, joined: str, expected: str | None) -> None:
    refused = refusal(QUEUE_EVENTS, kind=kind, happened_at=NOON, joined_at=joined)

    assert refused == (expected and (expected, "/joined_at"))


@pytest.mark.parametrize(
    ("joined", "started", "expected"),
    [
        (NOON, NOON, None),
        ("2026-03-07T04:00:00Z", "2026-03-07T08:00:00Z", None),  # four hours each
        ("2026-03-07T08:00:00Z", "2026-03-07T07:59:59.999Z", ("negative_duration", "/joined_at")),
        ("2026-03-07T03:59:59.999Z", "2026-03-07T08:00:00Z", ("duration_too_long", "/joined_at")),
        ("2026-03-07T07:00:00Z", "2026-03-07T07:59:59.999Z", ("duration_too_long", "/service_started_at")),
        ("2026-03-07T11:00:00Z", "2026-03-07T12:00:00.001Z", ("negative_duration", "/service_started_at")),
    ],
)
def test_a_leave_has_a_wait_and_a_service_in_order(joined: str, started: str, expected: tuple[str, str] | None) -> None:
    put = {**LEFT, "happened_at": NOON, "joined_at": joined, "service_started_at": started}

    assert refusal(QUEUE_EVENTS, **put) == expected


@pytest.mark.parametrize(
    ("kind", "flags"), [("service_start", ["instant_wait"]), ("abandon", ["instant_wait"]), ("join", []), ("leave", [])]
)
def test_a_wait_of_no_time_is_flagged(kind: str, flags: list[str]) -> None:
    at_once = {"happened_at": NOON, "joined_at": NOON, "service_started_at": NOON}

    assert payload(QUEUE_EVENTS, kind=kind, **at_once).flags == flags


@pytest.mark.parametrize(
    ("put", "expected"),
    [
        ({"kind": "Join"}, ("unknown_value", "/kind")),
        ({"kind": ""}, ("unknown_value", "/kind")),
        ({"kind": 1}, ("wrong_type", "/kind")),
        ({"length_after": 0}, None),
        ({"length_after": 1000}, None),
        ({"length_after": 1001}, ("out_of_range", "/length_after")),
        ({"length_after": -1}, ("out_of_range", "/length_after")),
        ({"length_after": 0.5}, ("bad_number", "/length_after")),
        ({"joined_at": "2026-03-07T10:10:00"}, ("bad_time", "/joined_at")),
        ({"joined_at": 1772874600}, ("bad_time", "/joined_at")),
        ({"kind": "join", "joined_at": "soon"}, ("bad_time", "/joined_at")),
        ({"queue": ""}, ("bad_identity", "/queue")),
        ({"track": "t" * 65}, ("bad_identity", "/track")),
    ],
)
def test_a_field_out_of_its_bounds_is_named(put: dict[str, object], expected: tuple[str, str] | None) -> None:
    assert refusal(QUEUE_EVENTS, **put) == expected


def test_a_camera_of_another_source_is_not_registered_for_queues() -> None:
    store = Store("1", "UTC", sensors=(Sensor("q-1", "people_counts"),))

    assert payload(QUEUE_EVENTS, store.terms).flags == ["unregistered_sensor"]


@pytest.mark.parametrize(
    "put",
    [
        {"sensor_id": "q-2"},
        {"queue": "Q2"},
        {"track": "p2"},
        {"kind": "abandon"},
        {"happened_at": "2026-03-07T10:14:00.001+01:00"},
    ],
)
def test_another_queue_track_kind_or_instant_is_another_event(put: dict[str, object]) -> None:
    assert is_repeat(QUEUE_EVENTS, {}, put) is False


@pytest.mark.parametrize("put", [{"joined_at": "2026-03-07T10:10:00.001+01:00"}, {"length_after": 0}])
def test_the_same_change_with_another_start_or_length_is_a_conflict(put: dict[str, object]) -> None:
    assert is_repeat(QUEUE_EVENTS, {}, put) is None


def test_a_leave_with_another_service_is_a_conflict() -> None:
    assert is_repeat(QUEUE_EVENTS, LEFT, {**LEFT, "service_started_at": "2026-03-07T10:11:00+01:00"}) is None


def test_a_change_that_is_sent_again_is_the_same_event() -> None:
    assert is_repeat(QUEUE_EVENTS, {}, {"happened_at": "2026-03-07T09:14:00Z", "length_after": None}) is True
