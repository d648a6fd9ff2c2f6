"""Clocks that run fast or slow: an hour is let pass in every source, and not a millisecond more."""

from datetime import UTC, datetime
from typing import Any

import pytest

from master_dataset.parsing.parse import parse
from master_dataset.parsing.results import DeadLetter
from master_dataset.registry.stores import DEFAULT_TERMS
from master_dataset.source import Source
from master_dataset.sources import registered_sources
from tests.support.corpus.record import MISSING, record

RECEIVED_US = int(datetime(2026, 3, 7, 9, tzinfo=UTC).timestamp()) * 1_000_000
STARTS = ("joined_at", "service_started_at", "entered_at", "started_at")
each_source = pytest.mark.parametrize("source", registered_sources().values(), ids=lambda source: source.topic)


def reason_at(source: Source[Any], happened_at: str, received_us: int | None = RECEIVED_US) -> str:
    """An event without length, so that only the clock is tried."""
    put: dict[str, object] = {name: happened_at for name in STARTS if name in source.example}
    if "interval_ms" in source.example:
        put["interval_ms"] = 1
    value = record(source, **{**put, source.happened_at: happened_at})
    parsed = parse(source, value, lambda _: DEFAULT_TERMS, received_us=received_us)
    return parsed.reason if isinstance(parsed, DeadLetter) else "event"


@each_source
@pytest.mark.parametrize(
    ("happened_at", "expected"),
    [
        ("2026-03-07T10:00:00Z", "event"),
        ("2026-03-07T11:00:00+01:00", "event"),
        ("2026-03-07T10:00:00.001Z", "from_the_future"),
        ("2026-03-07T10:00:00+00:00", "event"),
        ("2026-03-07T10:00:00-00:30", "from_the_future"),
        ("2200-12-31T23:59:59Z", "from_the_future"),
        ("1970-01-01T00:00:00Z", "event"),
        ("1969-12-31T23:59:59Z", "bad_time"),
        ("2201-01-01T00:00:00Z", "bad_time"),
        ("2026-03-07T09:00:00", "bad_time"),
        ("2026-03-07T08:59:60Z", "bad_time"),
    ],
)
def test_an_event_may_be_an_hour_ahead_of_its_receipt(source: Source[Any], happened_at: str, expected: str) -> None:
    assert reason_at(source, happened_at) == expected


@each_source
def test_nothing_is_from_the_future_before_it_was_received(source: Source[Any]) -> None:
    assert reason_at(source, "2200-12-31T23:59:59Z", received_us=None) == "event"


@each_source
@pytest.mark.parametrize(("happened_at", "reason"), [(MISSING, "missing_field"), (None, "bad_time"), (0, "bad_time")])
def test_an_event_without_a_moment_is_none(source: Source[Any], happened_at: object, reason: str) -> None:
    parsed = parse(source, record(source, happened_at=happened_at), lambda _: DEFAULT_TERMS)

    assert isinstance(parsed, DeadLetter)
    assert (parsed.reason, parsed.field) == (reason, "/happened_at")
