"""Alerts as the alert processor writes them, numbered by `value`, and a real topic with some of two tenants."""

import time
from collections.abc import Callable
from decimal import Decimal

from confluent_kafka import Producer

from master_dataset.kafka.client_settings import producer_settings
from master_dataset.kafka.connection import KafkaConnection
from master_dataset.kafka.consumer import ConsumerRecord
from views.alerts.alert import ALERTS_TOPIC, Alert, AlertKind, Window, follow_up_id, raised_id


def alert(tenant: str, store: str, number: int, kind: AlertKind = "raised") -> Alert:
    """The same arguments give the same alert, id and all."""
    window = Window(f"2026-11-22T09:00:00.{number % 1000:03}Z")
    raised = raised_id("queue", number // 1000, (tenant, store), window, {})
    return Alert(
        alert_id=raised if kind == "raised" else follow_up_id(raised, kind),
        kind=kind,
        about=None if kind == "raised" else raised,
        rule="queue",
        version=number // 1000,
        tenant=tenant,
        store=store,
        window=window,
        dimensions={},
        value=Decimal(number),
        threshold=Decimal(4),
        sentence="More than 4 wait.",
        raised_at="2026-11-22T09:00:00.000Z",
    )


def record(tenant: str, store: str, number: int, offset: int = 0) -> ConsumerRecord:
    """The alert as it lies in the topic."""
    return ConsumerRecord(
        ALERTS_TOPIC, 0, offset, store.encode(), alert(tenant, store, number).to_json(), 1_800_000_000_000
    )


TENANTS = {"1": "acme", "2": "acme", "3": "globex", "4": "acme", "5": "globex"}
ACME = {store for store, tenant in TENANTS.items() if tenant == "acme"}
PATIENCE = 120.0


def tell(kafka: KafkaConnection, topic: str, numbers: range) -> None:
    """Alerts of every store, numbered."""
    producer = Producer(producer_settings(kafka, "test", 30))
    for number in numbers:
        for store, tenant in TENANTS.items():
            producer.produce(topic, alert(tenant, store, number).to_json(), key=store)
    assert producer.flush(30) == 0


def until(done: Callable[[], bool]) -> None:
    """Wait; AssertionError if it never is so."""
    deadline = time.monotonic() + PATIENCE
    while not done():
        assert time.monotonic() < deadline, "it never came"
        time.sleep(0.05)
