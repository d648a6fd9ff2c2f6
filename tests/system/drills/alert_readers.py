"""Readers of the `alerts` topic: all alerts at the end, and meanwhile any that is visible before its positions."""

import json
import time
from collections.abc import Iterator
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from master_dataset.kafka.connection import KafkaConnection

GROUP, PARTITIONS = "galatea.alerts", 2
SETTLE_SECONDS = 3.0
"""The end of a transaction reaches alerts and positions one after the other."""
_CALL_SECONDS = 20
START_SECONDS = 120.0
"""So long a broker may take until it answers again."""


def _consumer(kafka: KafkaConnection, isolation: str) -> Consumer:
    return Consumer(
        {
            **kafka.client(),
            "group.id": GROUP,
            "isolation.level": isolation,
            "log_level": 0,
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "error_cb": lambda _: None,
        }
    )


def _to_the_end(consumer: Consumer, at: dict[int, int]) -> Iterator[dict[str, Any]]:
    """Alerts from these offsets on, which move to where one goes on."""
    consumer.assign([TopicPartition("alerts", number, offset) for number, offset in at.items()])
    ended = set[int]()
    while len(ended) < len(at):
        for message in consumer.consume(1000, 1.0):
            error = message.error()
            if error is None:
                at[message.partition() or 0] = (message.offset() or 0) + 1
                yield json.loads(message.value() or b"")
            elif error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001 - its name
                ended.add(message.partition() or 0)


def read_alerts(kafka: KafkaConnection) -> list[dict[str, Any]]:
    """Every committed alert."""
    consumer = _consumer(kafka, "read_committed")
    found = list(_to_the_end(consumer, dict.fromkeys(range(PARTITIONS), 0)))
    consumer.close()
    return found


def left_to_read(kafka: KafkaConnection) -> int:
    """How many records of the tills have no committed position behind them. A broker that starts is asked again."""
    deadline = time.monotonic() + START_SECONDS
    while True:
        try:
            return _left_to_read(kafka)
        except KafkaException:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)


def _left_to_read(kafka: KafkaConnection) -> int:
    consumer = _consumer(kafka, "read_committed")
    places = [TopicPartition("pos_transactions", number) for number in range(PARTITIONS)]
    try:
        ends = [consumer.get_watermark_offsets(place, _CALL_SECONDS)[1] for place in places]
        done = consumer.committed(places, _CALL_SECONDS)
        return sum(end - max(0, each.offset) for end, each in zip(ends, done, strict=True))
    finally:
        consumer.close()


class Reader:
    """Follows `alerts` as a receiver does. `premature`: alerts that were visible before their positions.

    Read only while no alert processor runs: an open transaction hides positions that are not committed.
    """

    def __init__(self, kafka: KafkaConnection) -> None:
        """From the first alert on."""
        self._reader = _consumer(kafka, "read_committed")
        self._at = dict.fromkeys(range(PARTITIONS), 0)
        self._asker = _consumer(kafka, "read_uncommitted")  # the other kind waits for an open transaction's end
        self._ahead: set[tuple[int, int]] = set()
        self.premature = 0

    def look(self) -> int:
        """The number of new premature ones."""
        for alert in _to_the_end(self._reader, self._at):
            place = alert["place"]
            if place["topic"] == "pos_transactions":
                self._ahead.add((place["partition"], place["offset"]))
        deadline = time.monotonic() + SETTLE_SECONDS
        self._drop_committed()
        while self._ahead and time.monotonic() < deadline:
            time.sleep(0.1)
            self._drop_committed()
        found = len(self._ahead)
        self.premature += found
        self._ahead.clear()
        return found

    def close(self) -> None:
        """Read nothing more."""
        self._reader.close()
        self._asker.close()

    def _drop_committed(self) -> None:
        places = [TopicPartition("pos_transactions", number) for number in range(PARTITIONS)]
        try:
            committed = [each.offset for each in self._asker.committed(places, _CALL_SECONDS)]
        except KafkaException:  # asked again
            return
        self._ahead = {(number, offset) for number, offset in self._ahead if offset >= committed[number]}
