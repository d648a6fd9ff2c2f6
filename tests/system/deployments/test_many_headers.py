"""A record with millions of headers, for which Java has not enough memory: it is read once in another way, then passed.

Kafka accepts it: compressed, it has less than a megabyte. It is an event like any other, as if it had no header.
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
TOPICS, STORE, HEADERS = ("pos_transactions", "wifi_sightings"), "many-headers", 12_000_000
"""In memory of Java, each header needs 80 bytes or more. The visits of WiFi are found again by reading back."""
_SEND = f"""
import sys
from confluent_kafka import Producer
bootstrap, topic, event = sys.argv[1:]
producer = Producer({{"bootstrap.servers": bootstrap, "compression.type": "snappy", "message.max.bytes": 100_000_000,
                     "partitioner": "murmur2_random"}})
errors = []
producer.produce(topic, event.encode(), {STORE!r}.encode(), headers=[("", None)] * {HEADERS},
                 on_delivery=lambda error, _: errors.append(error))
producer.flush(120)
sys.exit(0 if errors == [None] else str(errors))
"""


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    more = {"GALATEA_ARCHIVE_PROCESSES": "2", "GALATEA_SPEED_PROCESSES": "2"}
    with started(*settings_of(tmp_path_factory.mktemp("headers") / "home", **more)) as found:
        yield found


def test_a_record_that_java_cannot_hold_is_archived_and_counted(stack: Stack) -> None:
    send(stack, 1)
    await_counted(stack, 1)

    for topic in TOPICS:
        sent = [sys.executable, "-c", _SEND, stack.settings.kafka.bootstrap, topic, receipt_of(2).decode()]
        subprocess.run(sent, check=True, timeout=PATIENCE_SECONDS)
    send(stack, 3)

    await_counted(stack, 3)
    stack.run("speed", "restart")  # it reads the last hours of WiFi again
    send(stack, 4)
    await_counted(stack, 4)
    topics = {each["topic"]: each for each in stack.galatea("reconcile")["topics"]}
    assert topics["pos_transactions"]["events"] == 4
    assert topics["wifi_sightings"]["dead_letters"] == 1
    stack.rebuild()
    assert counted(stack) == 4


def receipt_of(number: int) -> bytes:
    return receipt(datetime.now(UTC).isoformat(timespec="milliseconds"), minor=100, number=number, store=STORE)


def send(stack: Stack, number: int) -> None:
    stack.ingest("pos_transactions", [receipt_of(number)])


def await_counted(stack: Stack, due: int) -> None:
    """Receipts: each is one euro."""
    deadline = time.monotonic() + 4 * PATIENCE_SECONDS
    while (found := counted(stack)) != due:
        assert time.monotonic() < deadline, f"{found} of {due} are counted"
        time.sleep(2)


def counted(stack: Stack) -> float | None:
    question = {"store": STORE, "grain": "total", **around_now()}
    answer = stack.request("GET", "/v1/metrics/net_sales", params=question)
    if answer.status_code == HTTPStatus.SERVICE_UNAVAILABLE:  # the speed layer starts again
        return None
    assert answer.status_code == HTTPStatus.OK, answer.text
    series = answer.json()["series"]
    return series[0]["points"][0]["value"] if series else None
