"""A record with millions of headers is read like any other where Java has the memory for it.

Kafka accepts it: compressed, it has less than a megabyte. Only who may write to a topic can send one.
"""

import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from http import HTTPStatus

import pytest

from tests.integration.conftest import PATIENCE_SECONDS, Stack, around_now, settings_of, started
from tests.support import receipt

pytestmark = pytest.mark.nightly
TOPIC, STORE, HEADERS = "pos_transactions", "many-headers", 12_000_000
HEAP_MB = "8000"
_SEND = f"""
import sys
from confluent_kafka import Producer
bootstrap, event = sys.argv[1:]
producer = Producer({{"bootstrap.servers": bootstrap, "compression.type": "snappy", "message.max.bytes": 100_000_000,
                     "partitioner": "murmur2_random"}})
errors = []
producer.produce({TOPIC!r}, event.encode(), {STORE!r}.encode(), headers=[("", None)] * {HEADERS},
                 on_delivery=lambda error, _: errors.append(error))
producer.flush(120)
sys.exit(0 if errors == [None] else str(errors))
"""


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    more = {"GALATEA_ARCHIVE_HEAP_MB": HEAP_MB, "GALATEA_SPEED_HEAP_MB": HEAP_MB}
    with started(*settings_of(tmp_path_factory.mktemp("headers") / "home", **more)) as found:
        yield found


def test_a_record_with_millions_of_headers_is_archived_and_counted(stack: Stack) -> None:
    send(stack, 1)
    await_counted(stack, 1)

    sent = [sys.executable, "-c", _SEND, stack.settings.kafka.bootstrap, receipt_of(2).decode()]
    subprocess.run(sent, check=True, timeout=PATIENCE_SECONDS)
    send(stack, 3)

    await_counted(stack, 3)
    stack.rebuild()
    assert counted(stack) == 3
    assert {each["topic"]: each["events"] for each in stack.galatea("reconcile")["topics"]}[TOPIC] == 3


def receipt_of(number: int) -> bytes:
    return receipt(datetime.now(UTC).isoformat(timespec="milliseconds"), minor=100, number=number, store=STORE)


def send(stack: Stack, number: int) -> None:
    stack.ingest(TOPIC, [receipt_of(number)])


def await_counted(stack: Stack, due: int) -> None:
    """Receipts: each is one euro."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while (found := counted(stack)) != due:
        assert time.monotonic() < deadline, f"{found} of {due} are counted"
        time.sleep(2)


def counted(stack: Stack) -> float | None:
    question = {"store": STORE, "grain": "total", **around_now()}
    answer = stack.request("GET", "/v1/metrics/net_sales", params=question)
    if answer.status_code == HTTPStatus.SERVICE_UNAVAILABLE:  # the speed layer starts
        return None
    assert answer.status_code == HTTPStatus.OK, answer.text
    series = answer.json()["series"]
    return series[0]["points"][0]["value"] if series else None
