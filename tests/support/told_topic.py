"""Alerts of five stores of two tenants, told to a real topic, and waiting for what comes of them."""

import time
from collections.abc import Callable

from confluent_kafka import Producer

from master_dataset.kafka.client_settings import producer_settings
from tests.support.raised import alert

TENANTS = {"1": "acme", "2": "acme", "3": "globex", "4": "acme", "5": "globex"}
ACME = {store for store, tenant in TENANTS.items() if tenant == "acme"}
PATIENCE = 120.0


def tell(bootstrap: str, topic: str, numbers: range) -> None:
    """Alerts of every store, numbered."""
    producer = Producer(producer_settings(bootstrap, "test", 30))
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
