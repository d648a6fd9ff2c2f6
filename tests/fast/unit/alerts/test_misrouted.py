"""A record under a wrong key reaches a partition that is not its store's: there it must be as if it had not come."""

from collections.abc import Iterable

import pytest
from confluent_kafka import murmur2

from master_dataset.registry.stores import Store
from master_dataset.sources import registered_sources
from speed_layer.alerts.fold import Fold, LogRecord
from tests.support.alerting import MARKER, at_ms, rule_history_of, value
from views.alerts.alert import Alert
from views.alerts.timings import AlertTimings

MINUTE, HOUR = 60_000, 3_600_000
PARTITIONS = 2
BEGIN = at_ms("2026-03-07 10:00")
STORE = Store(id="1", timezone="UTC")
RULE_HISTORY = rule_history_of(
    {"kind": "threshold", "id": "few", "metric": "net_sales", "window": "hour", "below": 5, "hours": "always"},
    {"kind": "threshold", "id": "many", "metric": "total_transactions_count", "window": "15m", "above": 0},
    {"kind": "silence", "id": "silent", "source": "pos_transactions", "minutes": 10, "hours": "always"},
    stores=[STORE],
)
TOPIC = "pos_transactions"
OWN = murmur2(STORE.id.encode(), PARTITIONS)
OTHER = 1 - OWN


def sale(number: int, at: int, **fields: object) -> bytes:
    line = {"title": "x", "price": 9, "amount": 1}
    return value(TOPIC, at, transaction_id=number, transactions=[line], **fields)


def followed(partition: int, events: Iterable[tuple[int, bytes]], until: int) -> tuple[Fold, list[Alert]]:
    """A log with markers every minute and these events."""
    fold = Fold(registered_sources()[TOPIC], partition, AlertTimings(), partitions=PARTITIONS)
    markers = [(at, b"", MARKER) for at in range(BEGIN, until, MINUTE)]
    log = sorted([*markers, *((at + 1000, each, ()) for at, each in events)], key=lambda each: each[0])
    emitted = [fold.step(LogRecord(offset, *each), RULE_HISTORY) for offset, each in enumerate(log)]
    return fold, [alert for some in emitted for alert in some]


def test_one_receipt_in_the_wrong_partition_raises_nothing_there_and_hides_nothing_elsewhere() -> None:
    sold = [(at, sale(number, at)) for number, at in enumerate(range(BEGIN, BEGIN + 4 * HOUR, 4 * MINUTE))]
    stray = sold.pop(7)

    own, emitted = followed(OWN, sold, BEGIN + 4 * HOUR)
    other, astray = followed(OTHER, [stray], BEGIN + 4 * HOUR)

    assert astray == []
    assert {each.rule for each in emitted} == {"many"}
    assert (own.misrouted, other.misrouted) == (0, 1)


def test_the_same_window_is_emitted_by_one_partition_only() -> None:
    both = (BEGIN + MINUTE, BEGIN + 2 * MINUTE)

    _, emitted = followed(OWN, [(both[0], sale(1, both[0]))], BEGIN + HOUR)
    _, astray = followed(OTHER, [(both[1], sale(2, both[1]))], BEGIN + HOUR)

    ids = [each.alert_id for each in (*emitted, *astray)]
    assert len(ids) == len(set(ids)) > 0


def test_a_receipt_that_strayed_is_not_remembered_and_the_clock_of_its_log_goes_on() -> None:
    at = BEGIN + 2 * HOUR

    other, _ = followed(OTHER, [(at, sale(1, at))], BEGIN + HOUR)

    assert other.state.identity_count == 0
    assert other.state.log_ms == at + 1000


@pytest.mark.parametrize("partitions", [1, 2, 3, 6])
def test_of_all_partitions_exactly_one_counts_a_store(partitions: int) -> None:
    folds = [
        Fold(registered_sources()[TOPIC], each, AlertTimings(), partitions=partitions) for each in range(partitions)
    ]

    for fold in folds:
        fold.step(LogRecord(0, BEGIN + 1000, sale(1, BEGIN)), RULE_HISTORY)

    assert [fold.state.identity_count for fold in folds].count(1) == 1
    assert sum(fold.misrouted for fold in folds) == partitions - 1
