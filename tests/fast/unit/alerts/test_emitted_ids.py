"""Emitted ids are kept for as long as they may be requested again, and no longer."""

from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from random import Random

import pytest

from speed_layer.alerts.processor import AlertProcessor, KnownAlerts
from tests.fast.model.alert_processor.memory_clients import Process
from tests.fast.model.alert_processor.memory_kafka import MemoryKafka, Slot
from tests.fast.model.alert_processor.simulated import (
    BEGIN,
    TOPIC,
    Variant,
    in_process,
    processor_config,
)
from tests.support.alerting import value
from views.alerts.alert import CORRECTIONS_TOPIC, Alert

DAY = 86_400_000
KEPT = timedelta(days=30)


def known_after(days: int) -> KnownAlerts:
    known = KnownAlerts(KEPT)
    for day in range(days):
        known.add(f"emitted on day {day}", day * DAY)
    return known


def test_what_was_emitted_within_the_time_is_known_to_the_day() -> None:
    known = known_after(100)

    assert all(f"emitted on day {day}" in known for day in range(100 - 30, 100))


def test_what_was_emitted_earlier_is_forgotten() -> None:
    known = known_after(100)

    assert "emitted on day 60" not in known
    assert len(known) <= 30 + 2


@pytest.mark.parametrize("back_days", [1, 29])
def test_what_comes_behind_is_known_as_well(back_days: int) -> None:
    known = known_after(100)

    known.add("late", (99 - back_days) * DAY)

    assert "late" in known


class Over(BaseException):
    """Everything is read."""


def test_a_long_running_processor_forgets_what_it_emitted_long_ago(tmp_path: Path) -> None:
    broker = MemoryKafka(committed={TOPIC: 0, (CORRECTIONS_TOPIC, 0): 0})
    broker.logs[TOPIC] = [_sale(day) for day in range(50)]
    alerts_emitted, process = list[Alert](), Process(broker, Random(1), 10**6)
    process.is_harmed = False

    def heard(alerts: Sequence[Alert]) -> None:
        alerts_emitted.extend(alerts)
        if broker.committed[TOPIC] == len(broker.logs[TOPIC]):
            raise Over

    work = processor_config(tmp_path, heard)
    processor = AlertProcessor(work, 0)
    with in_process(process, Variant()), pytest.raises(Over):
        processor.run()

    assert sum(alert.kind == "raised" for alert in alerts_emitted) == 50
    assert len(processor._known) <= 2 * 6  # noqa: SLF001 - what it holds: each alert is raised, and later resolved


def _sale(day: int) -> Slot:
    at = BEGIN + day * DAY
    line = {"title": "thing", "price": 1, "amount": 1}
    return Slot(value(TOPIC[0], at, operation_id="1", transaction_id=day, transactions=[line]), at)
