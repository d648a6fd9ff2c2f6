"""The baselines: the simplest programs that do the same work."""

import time
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from confluent_kafka import Consumer, Producer, TopicPartition

from master_dataset.kafka.client_settings import COMPRESSION
from master_dataset.kafka.connection import KafkaConnection

if TYPE_CHECKING:
    from threading import Event

    from cassandra.cluster import Session

TOPIC = "bench_bare"
TABLE = "CREATE TABLE IF NOT EXISTS bench_seen (id text PRIMARY KEY, value blob)"


def producer(kafka: KafkaConnection, linger_ms: int = 10) -> Any:  # noqa: ANN401 - confluent_kafka ships no types
    """Idempotent, acknowledged by all, compressed: as `galatea ingest` sends."""
    return Producer(
        {
            **kafka.client(),
            "enable.idempotence": True,
            "acks": "all",
            "compression.type": COMPRESSION,
            "partitioner": "murmur2_random",
            "linger.ms": linger_ms,
            "queue.buffering.max.messages": 100_000,
            "queue.buffering.max.kbytes": 65_536,
        }
    )


def produce(kafka: KafkaConnection, keyed: Sequence[tuple[bytes, bytes]]) -> float:
    """Acknowledged records a second of a loop that does nothing else."""
    acknowledged = 0

    def delivered(error: object, _message: object) -> None:
        nonlocal acknowledged
        acknowledged += error is None

    sending = producer(kafka)
    sending.list_topics(TOPIC, timeout=15)
    began = time.monotonic()
    for number, (key, value) in enumerate(keyed):
        while True:
            try:
                sending.produce(TOPIC, value, key=key, on_delivery=delivered)
                break
            except BufferError:
                sending.poll(0.1)
        if number % 256 == 0:
            sending.poll(0)
    sending.flush()
    seconds = time.monotonic() - began
    if acknowledged != len(keyed):
        raise RuntimeError(f"{len(keyed) - acknowledged} records were not acknowledged")
    return acknowledged / seconds


class ConsumeAndInsert:
    """A consumer with one prepared insert. Called with an event, it works until the event is set."""

    def __init__(self, kafka: KafkaConnection, session: "Session", partitions: Iterable[int]) -> None:
        """Reads `TOPIC` from its end."""
        self._session = session
        session.execute(TABLE)
        self._insert = session.prepare("INSERT INTO bench_seen (id, value) VALUES (?, ?)")
        self._consumer = Consumer({**kafka.client(), "group.id": "bench", "fetch.wait.max.ms": 10})
        self._consumer.assign([TopicPartition(TOPIC, number, self._end(number)) for number in partitions])

    def __call__(self, leave: "Event") -> None:
        """Consume and insert; close the consumer in the end."""
        while not leave.is_set():
            messages = self._consumer.consume(500, 0.01)
            values = [((m.key() or b"").decode(), m.value()) for m in messages if not m.error()]
            for future in [self._session.execute_async(self._insert, each) for each in values]:
                future.result()
        self._consumer.close()

    def _end(self, partition: int) -> int:
        _, end = self._consumer.get_watermark_offsets(TopicPartition(TOPIC, partition), timeout=15)
        return int(end)
