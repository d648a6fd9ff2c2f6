"""Segments of work: sent once they are over, taken back by a reversal, and no longer than sixteen hours."""

from datetime import UTC, datetime

import pytest

from master_dataset.parsing.parse import parse
from master_dataset.parsing.results import DeadLetter
from master_dataset.registry.stores import DEFAULT_TERMS
from master_dataset.sources.staff_hours import STAFF_HOURS
from tests.support.corpus.record import MISSING, is_repeat, payload, record, refusal

EVENING = "2026-03-07T22:00:00Z"


def test_a_segment_says_who_was_where_from_when_on() -> None:
    worked = payload(STAFF_HOURS)

    assert (worked.staff, worked.basis, worked.role) == ("s-7f3a", "worked", "sales_floor")
    assert (worked.started_us, worked.sign, worked.revision) == (1_772_873_400_000_000, 1, 0)


@pytest.mark.parametrize(
    ("started", "expected"),
    [
        (EVENING, None),
        ("2026-03-07T06:00:00Z", None),
        ("2026-03-07T05:59:59.999Z", "duration_too_long"),
        ("2026-03-07T22:00:00.001Z", "negative_duration"),
        ("2026-03-07T23:00:00+01:00", None),
        ("2026-03-07T23:00:00", "bad_time"),
        (None, "bad_time"),
        (MISSING, "missing_field"),
    ],
)
def test_a_segment_lasts_from_nothing_to_sixteen_hours(started: object, expected: str | None) -> None:
    refused = refusal(STAFF_HOURS, happened_at=EVENING, started_at=started)

    assert refused == (expected and (expected, "/started_at"))


@pytest.mark.parametrize(
    ("sign", "expected"),
    [
        (1, None),
        (-1, None),
        (1.0, None),
        (None, None),
        (MISSING, None),
        (0, "out_of_range"),
        (2, "out_of_range"),
        (-2, "out_of_range"),
        (0.5, "bad_number"),
        ("-1", "wrong_type"),
        (True, "wrong_type"),
    ],
)
def test_a_sign_is_one_or_minus_one(sign: object, expected: str | None) -> None:
    refused = refusal(STAFF_HOURS, sign=sign)

    assert refused == (expected and (expected, "/sign"))


@pytest.mark.parametrize(
    ("revision", "expected"),
    [
        (0, None),
        (1_000_000, None),
        (None, None),
        (1_000_001, "out_of_range"),
        (-1, "out_of_range"),
        (0.5, "bad_number"),
        ("1", "wrong_type"),
    ],
)
def test_a_revision_counts_from_zero(revision: object, expected: str | None) -> None:
    refused = refusal(STAFF_HOURS, revision=revision)

    assert refused == (expected and (expected, "/revision"))


@pytest.mark.parametrize(
    ("put", "expected"),
    [
        ({"kind": "sick"}, ("unknown_value", "/kind")),
        ({"role": "boss"}, ("unknown_value", "/role")),
        ({"role": MISSING}, ("missing_field", "/role")),
        ({"staff": ""}, ("bad_identity", "/staff")),
        ({"staff": 7}, ("wrong_type", "/staff")),
    ],
)
def test_a_field_out_of_its_bounds_is_named(put: dict[str, object], expected: tuple[str, str]) -> None:
    assert refusal(STAFF_HOURS, **put) == expected


def test_a_planned_segment_that_is_not_over_is_from_the_future() -> None:
    planned = record(STAFF_HOURS, kind="planned")
    morning = datetime(2026, 3, 7, 8, tzinfo=UTC).timestamp()

    parsed = parse(STAFF_HOURS, planned, lambda _: DEFAULT_TERMS, received_us=int(morning) * 1_000_000)

    assert isinstance(parsed, DeadLetter)
    assert (parsed.reason, parsed.field) == ("from_the_future", "/happened_at")


def test_a_reversal_is_an_event_of_its_own() -> None:
    reversal = {"sign": -1, "revision": 1}

    assert payload(STAFF_HOURS, **reversal).sign == -1
    assert is_repeat(STAFF_HOURS, {}, reversal) is False
    assert is_repeat(STAFF_HOURS, reversal, reversal) is True


@pytest.mark.parametrize("put", [{"sign": -1}, {"role": "checkout"}])
def test_another_sign_or_role_of_one_revision_is_a_conflict(put: dict[str, object]) -> None:
    assert is_repeat(STAFF_HOURS, {}, put) is None


@pytest.mark.parametrize(
    "put",
    [
        {"staff": "s-1"},
        {"kind": "planned"},
        {"revision": 1},
        {"started_at": "2026-03-07T09:51:00+01:00"},
        {"happened_at": "2026-03-07T10:31:00+01:00"},
    ],
)
def test_another_person_kind_start_end_or_revision_is_another_event(put: dict[str, object]) -> None:
    assert is_repeat(STAFF_HOURS, {}, put) is False


def test_a_sign_and_a_revision_left_out_are_what_they_count_as() -> None:
    assert is_repeat(STAFF_HOURS, {}, {"sign": 1, "revision": 0}) is True
