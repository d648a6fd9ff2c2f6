"""Archive, speed, rebuild and verify on a Spark standalone cluster: the same answers from executors on two workers."""

import json
import os
import signal
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from deploy.settings import Settings
from tests.integration.conftest import PATIENCE_SECONDS, Stack, around_now, settings_of
from tests.support.object_stores import object_store_for_stacks
from tests.system.deployments.standalone import Standalone, standalone

pytestmark = pytest.mark.nightly

STORES = [str(number) for number in range(1, 7)]
EACH = 10
ON_CLUSTER = {
    "GALATEA_SPEED_PARTITIONS": "2",
    "GALATEA_SPARK_CORES": "2",
    "GALATEA_SPARK_EXECUTOR_MEMORY_MB": "512",
}


@pytest.fixture(params=["shared folder", "object store"])
def shared(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[dict[str, str]]:
    """Settings of a master dataset and checkpoints that are not in the home; workers inherit the credentials."""
    if request.param == "shared folder":
        yield {"GALATEA_MASTER_URI": (tmp_path / "lake").as_uri(), "GALATEA_CHECKPOINT_URI": str(tmp_path / "marks")}
        return
    with object_store_for_stacks() as served:
        yield served.variables


@pytest.fixture
def cluster(shared: dict[str, str], tmp_path: Path) -> Iterator[Standalone]:  # noqa: ARG001 - credentials come first
    with standalone(tmp_path / "cluster", Settings()) as running:
        yield running


@pytest.fixture
def on_cluster(cluster: Standalone, shared: dict[str, str], tmp_path: Path) -> Iterator[Stack]:
    """A stack whose Spark is elsewhere, and whose master dataset and checkpoints are not in its home."""
    settings, environment = settings_of(tmp_path / "home", GALATEA_SPARK_MASTER=cluster.master, **shared, **ON_CLUSTER)
    stack = Stack(settings, environment)
    try:
        stack.run("up", "--detach", "--without-airflow")
        yield stack
    finally:
        stack.run("down")


def receipt(store: str, number: int, happened_at: datetime) -> bytes:
    body = {
        "happened_at": happened_at.isoformat(timespec="milliseconds"),
        "operation_id": store,
        "transaction_id": number,
        "vendor_fiscal_module": 1,
        "transactions": [{"title": "Milk 1 l", "price": 1.09, "amount": 2, "sku": "8580001"}],
    }
    return json.dumps(body).encode()


def receipts(first: int) -> list[tuple[int, str, bytes]]:
    """Some of every store: the partition that they belong to, the key, the body."""
    now = datetime.now(UTC)
    return [
        (place % 2, store, receipt(store, number, now))
        for place, store in enumerate(STORES)
        for number in range(first, first + EACH)
    ]


def other(records: list[tuple[int, str, bytes]]) -> list[tuple[int, str, bytes]]:
    """The same, and every second one on the partition that its store does not belong to."""
    return [((at + place) % 2, store, body) for place, (at, store, body) in enumerate(records)]


def send(stack: Stack, *parts: list[tuple[int, str, bytes]]) -> None:
    producer = Producer({**stack.settings.kafka.connection.client(), "enable.idempotence": True})
    for records in parts:
        for partition, store, body in records:
            producer.produce("pos_transactions", body, store.encode(), partition=partition)
        assert producer.flush(PATIENCE_SECONDS) == 0


def shown(stack: Stack, layer: str = "merged", **question: str) -> dict[str, tuple[int, int]]:
    """Of each store: receipts, and cents."""
    found = {}
    for store in STORES:
        cells = stack.get("/v1/views/sales/cells", store=store, **around_now(), **question)["cells"]
        states: list[dict[str, Any]] = [cell[layer] for cell in cells if cell[layer]]
        found[store] = (sum(each["receipts"] for each in states), sum(each["gross_sales"] for each in states))
    return found


def of_each(number: int) -> dict[str, tuple[int, int]]:
    return dict.fromkeys(STORES, (number, 218 * number))


def wait_for(stack: Stack, number: int) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while shown(stack, partial="true") != of_each(number) and time.monotonic() < deadline:
        time.sleep(0.5)


def speed_pid(stack: Stack) -> int:
    return int(next(each["pid"] for each in stack.galatea("status")["components"] if each["name"] == "speed"))


def test_two_workers_count_every_event_once_wherever_and_in_whichever_micro_batch_it_is_delivered_again(
    on_cluster: Stack, cluster: Standalone
) -> None:
    stack, morning, noon, evening = on_cluster, receipts(0), receipts(EACH), receipts(2 * EACH)

    send(stack, morning, morning)
    wait_for(stack, EACH)
    streamed = shown(stack)

    speed = speed_pid(stack)
    os.killpg(speed, signal.SIGSTOP)
    try:
        send(stack, noon)
        stack.galatea("rebuild", "--wait")
        send(stack, other(noon), other(morning), evening)  # in one micro-batch with the first of noon, behind the cut
    finally:
        os.killpg(speed, signal.SIGCONT)
    wait_for(stack, 3 * EACH)
    verdict = stack.galatea("verify")

    assert streamed == of_each(EACH)
    assert shown(stack) == of_each(3 * EACH)
    assert shown(stack, "batch") == of_each(2 * EACH)
    assert (verdict["differing"], verdict["waiting_for_batch"]) == (0, 0), verdict
    assert verdict["cells"] > 0
    first, second = cluster.applications()
    assert len(first & second) >= 2, (first, second)  # both streams; a command may be done before a worker has begun
