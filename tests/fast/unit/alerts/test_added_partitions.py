"""A store moves to a partition that was added: what is known about it moves along, and the old one stops."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from random import Random

import pytest

from master_dataset.kafka.connection import KafkaConnection
from master_dataset.kafka.growth import Growth, Partitions
from speed_layer.alerts.processor import AlertProcessor, ProcessorConfig
from speed_layer.alerts.snapshots import Snapshots
from tests.fast.model.alert_processor.memory_clients import Process
from tests.fast.model.alert_processor.memory_kafka import MemoryKafka, Slot
from tests.fast.model.alert_processor.simulated import BEGIN, MemoryRuleStore, Variant, in_process
from tests.support.alert_signatures import signatures_of
from tests.support.alerting import value
from views.alerts.alert import CORRECTIONS_TOPIC, Alert

TOPIC, OLD, NEW = "pos_transactions", 1, 3  # of 2 and of 4 partitions, where store 1 is
DAY, MINUTE = 86_400_000, 60_000
OPENED_MS = BEGIN + DAY // 2
FENCE = 2


class Over(BaseException):
    """Everything is read that is to be read."""


def sale(number: int, at: int, received: int | None = None) -> Slot:
    line = {"title": "thing", "price": 1, "amount": 1}
    received = at if received is None else received
    return Slot(value(TOPIC, at, operation_id="1", transaction_id=number, transactions=[line]), received)


def grown(fence: int = FENCE) -> Partitions:
    opens_at = datetime.fromtimestamp(OPENED_MS / 1000, UTC)
    return Partitions(2, (Growth(2, 4, opens_at, opens_at, {TOPIC: {0: fence, OLD: fence}}, is_open=True),))


def run(  # noqa: PLR0913 - what a run is
    broker: MemoryKafka, partition: int, partitions: Partitions, folder: Path, end: int, *, fence: int | None = None
) -> Sequence[Alert]:
    """What a processor emits until its committed position is `end`. `fence`: where it stops."""
    emitted, process = list[Alert](), Process(broker, Random(1), 10**6)
    process.is_harmed = False

    class Follower(AlertProcessor):
        def _process(self, *words: object) -> None:
            super()._process(*words)  # type: ignore[arg-type]
            if broker.committed.get((TOPIC, partition), 0) == end:
                raise Over

    config = ProcessorConfig(
        KafkaConnection("memory"),
        [TOPIC],
        partitions,
        MemoryRuleStore(),
        Snapshots(folder),
        signatures_of(),
        fences={} if fence is None else {TOPIC: {partition: fence}},
        emitted=emitted.extend,
    )
    with in_process(process, Variant()), pytest.raises(Over):
        Follower(config, partition).run()
    return emitted


def broker_of(logs: Mapping[int, Sequence[Slot]]) -> MemoryKafka:
    committed = {(TOPIC, OLD): 0, (CORRECTIONS_TOPIC, OLD): 0}
    return MemoryKafka({(TOPIC, partition): list(log) for partition, log in logs.items()}, committed=committed)


def facts(alerts: Sequence[Alert]) -> list[tuple[str, str, str]]:
    """What they say, wherever the record was that led to them."""
    return [(each.kind, each.rule, each.alert_id) for each in alerts]


def kinds(alerts: Sequence[Alert]) -> list[str]:
    return [each.kind for each in alerts]


def test_a_new_partition_goes_on_where_the_old_one_stopped(tmp_path: Path) -> None:
    before = [sale(0, BEGIN), sale(1, BEGIN + MINUTE), Slot(b"", BEGIN + 2 * MINUTE)]
    later = [sale(number, BEGIN + number * DAY) for number in range(2, 6)]
    repeated = sale(1, BEGIN + MINUTE, BEGIN + 3 * MINUTE)
    moved = broker_of({OLD: before, NEW: [repeated, *later]})
    stayed = broker_of({OLD: [*before, sale(1, BEGIN + MINUTE, OPENED_MS), *later]})

    first = run(moved, OLD, Partitions(2), tmp_path / "old", 3)
    second = run(moved, NEW, grown(), tmp_path / "new", 5)
    all_of_it = run(stayed, OLD, Partitions(2), tmp_path / "stayed", 8)

    assert facts([*first, *second]) == facts(all_of_it)
    assert {kind for kind, *_ in facts(second)} == {"raised", "resolved"}
    assert first


def test_an_old_partition_stops_at_the_fence(tmp_path: Path) -> None:
    log = [sale(0, BEGIN), sale(1, BEGIN + MINUTE), Slot(b"", BEGIN + 2 * MINUTE), sale(2, BEGIN + DAY)]
    broker = broker_of({OLD: log})

    emitted = run(broker, OLD, Partitions(2), tmp_path, FENCE + 1, fence=FENCE)

    assert kinds(emitted) == ["raised"]
    assert broker.committed[TOPIC, OLD] == FENCE + 1


def test_a_partition_whose_stores_have_moved_forgets_them_and_emits_nothing_about_them(tmp_path: Path) -> None:
    log = [sale(0, BEGIN), sale(1, BEGIN + MINUTE), Slot(b"", BEGIN + 2 * MINUTE), Slot(b"", BEGIN + DAY)]
    broker = broker_of({OLD: log})
    run(broker, OLD, Partitions(2), tmp_path, FENCE + 1, fence=FENCE)

    emitted = run(broker, OLD, grown(), tmp_path, 4)

    assert emitted == []


def test_records_that_were_deleted_before_the_fence_are_not_missed(tmp_path: Path) -> None:
    broker = broker_of({OLD: [sale(0, BEGIN)] * 5, NEW: [sale(9, BEGIN + DAY)]})
    broker.firsts[TOPIC, OLD] = 5

    emitted = run(broker, NEW, grown(), tmp_path, 1)

    assert kinds(emitted) == ["raised"]
