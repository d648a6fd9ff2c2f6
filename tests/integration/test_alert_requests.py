"""Requests of a publication are emitted once, in order, by an alert processor that is killed anywhere."""

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from decimal import Decimal
from pathlib import Path

import pytest

from batch_layer.alerts.alert_log import AlertLog
from deploy.jars import ensure_jars
from deploy.local.stack import Stack
from deploy.settings import Settings
from master_dataset.kafka.topics import Topics
from tests.integration.conftest import PATIENCE_SECONDS
from tests.support.alert_signatures import signatures_of
from tests.support.free_settings import settings_on_free_ports
from views.alerts.alert import CORRECTIONS_TOPIC, Alert, Window, follow_up_id

POINTS = ("folded", "begun", "produced", "flushed", "offsets", "committed", "kept")
STORES = [str(number) for number in range(6)]


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Settings]:
    """A broker by itself."""
    settings = settings_on_free_ports(tmp_path)
    ensure_jars(settings)
    with Stack(settings, only=["kafka"]):
        yield settings


def record(store: str, number: int, kind: str) -> Alert:
    raised = f"{store}-{number}"
    window = Window("2026-03-07T09:00:00Z", "2026-03-07T10:00:00Z")
    return Alert(
        alert_id=raised if kind == "raised" else follow_up_id(raised, "retracted"),
        kind="raised" if kind == "raised" else "retracted",
        about=None if kind == "raised" else raised,
        rule="r",
        version=1,
        tenant="default",
        store=store,
        window=window,
        dimensions={},
        value=Decimal("1.10"),
        threshold=Decimal(1),
        sentence="A sentence.",
        raised_at="2026-03-07T11:00:00Z",
        publication=number,
        cause="late",
        late=True,
        provisional=False,
    )


@contextmanager
def processor(settings: Settings, crash_at: str = "") -> "Iterator[subprocess.Popen[bytes]]":
    """Until the caller has seen enough, or it has ended by itself."""
    words = [settings.kafka.bootstrap, str(settings.home / "alerts"), str(settings.kafka.partitions), crash_at]
    process = subprocess.Popen([sys.executable, "-m", "tests.support.alert_process", *words])
    try:
        yield process
    finally:
        process.kill()
        process.wait()


@pytest.mark.nightly
def test_each_request_is_emitted_once_in_order_however_often_it_is_repeated_or_the_processor_is_killed(
    broker: Settings,
) -> None:
    log, requested = AlertLog(broker.kafka.connection, signatures_of()), list[Alert]()
    log.request([record("before", 0, "raised")])  # there was no alert processor yet
    for number, point in enumerate(POINTS):
        own = [record(store, number, kind) for store in STORES for kind in ("raised", "retracted")]
        requested += own
        with processor(broker, f"alerts.{point}:1") as process:
            log.request(own)
            log.request(own[::-1])  # the step of a rebuild was done twice
            with suppress(subprocess.TimeoutExpired):
                process.wait(20)
    with processor(broker):
        deadline = time.monotonic() + PATIENCE_SECONDS
        while log.processor_positions([CORRECTIONS_TOPIC]) != {
            CORRECTIONS_TOPIC: Topics(broker.kafka.connection).end_offsets(CORRECTIONS_TOPIC)
        }:
            assert time.monotonic() < deadline
            time.sleep(0.2)

    records = list(log.emitted(0))
    ids = [each.alert_id for each in records]
    assert sorted(ids) == sorted({"before-0", *(each.alert_id for each in requested)})
    for store in STORES:
        assert [each for each in records if each.store == store] == [each for each in requested if each.store == store]
    assert sum(1 for _ in (broker.home / "alerts").glob("crashed-*/*")) >= len(POINTS) - 1
