"""Receipts of this moment on a topic: what comes in beside something that is measured."""

import time
from typing import TYPE_CHECKING

from benchmarks import bare, receipts
from master_dataset.kafka.ingest import paced
from master_dataset.parsing.parse import key_of
from master_dataset.sources.pos_transactions import POS_TRANSACTIONS

if TYPE_CHECKING:
    from threading import Event

    from deploy.settings import Settings

PER_SECOND = 1_000


class Stream:
    """Sends until the event is set, so it goes `beside`. Afterwards `rate` says how many a second it really sent."""

    def __init__(self, settings: "Settings", topic: str, per_second: int = PER_SECOND) -> None:
        """On this topic."""
        self._bootstrap, self._topic, self._per_second = settings.kafka_bootstrap, topic, per_second
        self.rate = 0.0

    def __call__(self, leave: "Event") -> None:
        """Send, and wait in the end until all is acknowledged."""
        producer, key = bare.producer(self._bootstrap), key_of(POS_TRANSACTIONS)
        began, sent = time.monotonic(), 0
        for value in paced(receipts.live(time.time_ns() // 1000), self._per_second):
            if leave.is_set():
                break
            producer.produce(self._topic, value, key=key(value))
            producer.poll(0)
            sent += 1
        self.rate = sent / (time.monotonic() - began)
        producer.flush(30)
