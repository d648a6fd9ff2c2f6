"""Brings the stream to the broker: a part as if it had been received hours ago, the rest now, at a steady rate."""

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from master_dataset.kafka.ingest import ingest
from master_dataset.parsing.parse import key_of
from master_dataset.sources.pos_transactions import POS_TRANSACTIONS
from tests.system.drills.receipts import Expected, Sent

if TYPE_CHECKING:
    from deploy.settings import Settings

TIMEOUT_SECONDS = 60


def received_in_the_past(
    settings: "Settings", lines: Sequence[Sent], first: datetime, last: datetime, expected: Expected
) -> None:
    """Records whose receipt time is spread evenly over [first, last): the topic takes the sender's time meanwhile."""
    step = (last - first) / max(len(lines), 1)
    producer = Producer(
        {
            "bootstrap.servers": settings.kafka.bootstrap,
            "enable.idempotence": True,
            "partitioner": "murmur2_random",
        }
    )
    key = key_of(POS_TRANSACTIONS)
    with stamped_by(settings, "CreateTime"):
        for number, each in enumerate(lines):
            expected.add(each)
            stamp = int((first + step * number).timestamp() * 1000)
            own = key(each.line)
            where = {"partition": 0} if own is None else {"key": own}
            producer.produce(POS_TRANSACTIONS.topic, each.line, timestamp=stamp, **where)
            producer.poll(0)
        assert producer.flush(TIMEOUT_SECONDS) == 0


@contextmanager
def stamped_by(settings: "Settings", kind: str) -> Iterator[None]:
    """The topic's records get their time from `kind` inside, and from the broker again behind it."""
    _stamps_of(settings, kind)
    yield
    _stamps_of(settings, "LogAppendTime")


def _stamps_of(settings: "Settings", kind: str) -> None:
    admin = AdminClient({"bootstrap.servers": settings.kafka.bootstrap})
    entry = ConfigEntry("message.timestamp.type", kind, incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, POS_TRANSACTIONS.topic, incremental_configs=[entry])
    admin.incremental_alter_configs([resource])[resource].result(TIMEOUT_SECONDS)
    asked = ConfigResource(ResourceType.TOPIC, POS_TRANSACTIONS.topic)
    deadline = time.monotonic() + TIMEOUT_SECONDS
    while admin.describe_configs([asked])[asked].result(TIMEOUT_SECONDS)["message.timestamp.type"].value != kind:
        assert time.monotonic() < deadline, f"the topic does not take {kind}"
        time.sleep(0.1)


class Feeding(threading.Thread):
    """Sends lines while other things happen, until they are all sent. `acknowledged` when it is over."""

    def __init__(self, settings: "Settings", lines: Sequence[Sent], rate: float, expected: Expected) -> None:
        super().__init__(name="feeding", daemon=True)
        self._settings, self._lines, self._pause, self._expected = settings, lines, 1 / rate, expected
        self._hurry = threading.Event()
        self.acknowledged = 0

    def run(self) -> None:
        result = ingest(POS_TRANSACTIONS, self._paced(), self._settings.kafka.bootstrap, lambda _: None)
        self.acknowledged = result.acknowledged

    def finish(self) -> None:
        """Send what is left at once, and wait until all is acknowledged."""
        self._hurry.set()
        self.join()

    def _paced(self) -> Iterator[bytes]:
        for each in self._lines:
            self._expected.add(each)  # from here on an answer may contain it
            yield each.line
            self._hurry.wait(self._pause)
