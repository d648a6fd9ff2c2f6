"""A backend of telemetry that is slow or down costs whoever has something to send nothing, and losses are counted."""

import threading
import time
from collections.abc import Sequence

from prometheus_client import REGISTRY
from structlog.testing import capture_logs

from deploy.telemetry.export_queue import ExportQueue


def count(name: str, **labels: str) -> float:
    return REGISTRY.get_sample_value(f"galatea_telemetry_{name}_total", labels) or 0


def test_what_is_queued_is_sent_in_order_and_the_rest_when_it_closes() -> None:
    sent: list[int] = []
    before = count("sent", signal="lineage")
    queue = ExportQueue[int]("lineage", sent.extend)

    for number in range(1000):
        queue.put(number)
    queue.close(60)

    assert sent == list(range(1000))
    assert count("sent", signal="lineage") - before == 1000


def test_full_export_queue_drops_and_counts_without_blocking() -> None:
    sent, arrived, goes_on = list[int](), threading.Event(), threading.Event()

    def slow(items: Sequence[int]) -> None:
        arrived.set()
        goes_on.wait()
        sent.extend(items)

    before = count("dropped", signal="lineage", reason="full")
    queue = ExportQueue[int]("lineage", slow, most=3)
    queue.put(0)
    arrived.wait()
    for number in range(1, 8):
        queue.put(number)
    goes_on.set()
    queue.close(60)

    assert sent == [0, 1, 2, 3]
    assert count("dropped", signal="lineage", reason="full") - before == 4


def test_what_a_backend_refuses_is_counted_and_logged_once_in_a_while_without_its_words() -> None:
    sent, tries = list[int](), list[int]()

    def failing(items: Sequence[int]) -> None:
        tries.extend(items)
        if len(tries) < 3:
            raise ConnectionError("canary-7c2e")
        sent.extend(items)

    before = count("dropped", signal="lineage", reason="failed")
    with capture_logs() as logs:
        queue = ExportQueue[int]("lineage", failing)
        for number in range(3):
            queue.put(number)
            while len(tries) <= number:
                threading.Event().wait(0.01)
        queue.close(60)

    assert sent == [2]
    assert count("dropped", signal="lineage", reason="failed") - before == 2
    assert [(each["event"], each["error"]) for each in logs] == [("telemetry.not_sent", "ConnectionError")]


def test_closing_does_not_wait_for_a_backend_that_hangs() -> None:
    goes_on = threading.Event()

    def hanging(_: Sequence[int]) -> None:
        goes_on.wait()

    queue = ExportQueue[int]("lineage", hanging)
    queue.put(1)

    began = time.monotonic()
    queue.close(0.01)
    took = time.monotonic() - began
    goes_on.set()

    assert took < 5
