"""A metric that was renamed keeps its former name as well, with the same value."""

from types import SimpleNamespace
from typing import Any, cast

from prometheus_client import REGISTRY

from deploy.services import alert_processor
from deploy.services.api_metrics import PressureMetrics, pressures


def test_emitted_alerts_are_counted_under_both_names() -> None:
    alert = SimpleNamespace(kind="silence", cause=None, late=False)
    names = ("galatea_alerts_emitted_total", "galatea_alerts_told_total")
    before = [REGISTRY.get_sample_value(name, {"kind": "silence"}) or 0 for name in names]

    alert_processor._count([cast("Any", alert)] * 3)  # noqa: SLF001 - what the processor calls

    assert [REGISTRY.get_sample_value(name, {"kind": "silence"}) for name in names] == [each + 3 for each in before]


def test_events_in_flight_are_shown_under_both_names() -> None:
    counters = SimpleNamespace(now=1, held=2, followers=SimpleNamespace(total=lambda: 3))
    state = SimpleNamespace(in_flight=counters, bodies=counters, live=counters)
    producer = SimpleNamespace(in_flight=SimpleNamespace(records=7, size=8))
    parts: list[Any] = [
        SimpleNamespace(state=state),
        SimpleNamespace(in_flight=4),
        producer,
        [],
        SimpleNamespace(free=int),
    ]

    samples = {each.name: each.samples[0].value for each in PressureMetrics(pressures(*parts)).collect()}

    assert samples["galatea_producer_inflight_records"] == samples["galatea_courier_records"] == 7
    assert samples["galatea_producer_inflight_bytes"] == samples["galatea_courier_bytes"] == 8
