"""A record that is broken on purpose becomes a dead letter for exactly the reason that is announced."""

from datetime import UTC, date, datetime

import pytest

from lab.simulation.faults import INVALID_RECORDS
from lab.simulation.simulation import World
from lab.simulation.store_day import store_day
from master_dataset.parsing.parse import parse
from master_dataset.parsing.results import DeadLetter, Reason
from master_dataset.registry.stores import Store
from master_dataset.sources import registered_sources, source_named

RECEIVED_US = int(datetime(2026, 3, 9, tzinfo=UTC).timestamp()) * 1_000_000
BESIDE = {
    Reason.ALERT_DELIVERY_REJECTED,
    Reason.ALERT_NOT_SIGNED,
    Reason.ALERT_NOT_VALID,
    Reason.CONFLICTING_DUPLICATE,
    Reason.EMPTY_VALUE,
    Reason.TOO_LARGE,
    Reason.UNKNOWN_SCHEMA,
}


@pytest.mark.parametrize("topic", sorted(registered_sources()))
def test_each_way_to_be_wrong_has_its_reason(store: Store, topic: str) -> None:
    source, records = source_named(topic), World(store_day(store, date(2026, 3, 7), "1")).records([topic])
    for record in records[:: max(1, len(records) // 100)]:
        for reason, broken in INVALID_RECORDS.items():
            value = broken(source, dict(record.body))
            if value is not None:
                dead_letter = parse(source, value, lambda _: store.terms, received_us=RECEIVED_US)
                assert isinstance(dead_letter, DeadLetter), (reason, value)
                assert dead_letter.reason == reason


def test_every_reason_that_a_line_can_have_is_among_them() -> None:
    assert set(INVALID_RECORDS) | BESIDE == set(Reason)
