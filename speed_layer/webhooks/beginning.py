"""Where a new endpoint begins: with what was told after it was made, however long it takes until somebody consumes.

"From the end" would not do: whoever dies before the first commit would come back to a later end.
"""

from collections.abc import Iterable
from typing import Any

from confluent_kafka import OFFSET_END, Consumer, TopicPartition

TIMEOUT_SECONDS = 15.0


def begin(settings: dict[str, Any], topic: str, partitions: Iterable[int], since_ms: int) -> None:
    """Commit, for the group of these settings, where the topic was at that time. Does nothing where it has committed.

    Raises KafkaException.
    """
    consumer = Consumer({**settings, "enable.auto.commit": False})
    try:
        places = [TopicPartition(topic, number) for number in partitions]
        new = [each for each in consumer.committed(places, timeout=TIMEOUT_SECONDS) if each.offset < 0]
        if not new:
            return
        asked = [TopicPartition(topic, each.partition, since_ms) for each in new]
        found = consumer.offsets_for_times(asked, timeout=TIMEOUT_SECONDS)
        at = [TopicPartition(topic, each.partition, _offset(consumer, each)) for each in found]
        consumer.commit(offsets=at, asynchronous=False)
    finally:
        consumer.close()


def _offset(consumer: Any, found: TopicPartition) -> int:  # noqa: ANN401 - confluent_kafka ships no types
    """The end, where nothing was told since. What is told after it was asked lies behind it."""
    if found.offset not in (OFFSET_END, -1):
        return int(found.offset)
    _, end = consumer.get_watermark_offsets(TopicPartition(found.topic, found.partition), timeout=TIMEOUT_SECONDS)
    return int(end)
