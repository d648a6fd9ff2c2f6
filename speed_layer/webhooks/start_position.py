"""Where a new endpoint starts: with the alerts emitted after it was added, however late its consumer starts.

Starting at the end of the topic would skip alerts: after a crash before the first commit, the end would have moved.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import structlog
from confluent_kafka import Consumer, KafkaException, TopicPartition

from master_dataset.errors import OperatorError

log = structlog.get_logger()
TIMEOUT_SECONDS = 15.0


class PositionLostError(OperatorError):
    """The broker has lost the position of an endpoint. Starting at its creation time would repeat alerts."""


def commit_start_positions(
    settings: dict[str, Any], topic: str, partitions: Iterable[int], since_ms: int, *, has_begun: bool = False
) -> None:
    """Commit positions for that time in the partitions where the group has none.

    A partition that was added later thus starts like the others. Records that the topic deleted before they were
    delivered are logged.

    Args:
        settings: Of librdkafka, with the group.
        topic: The topic of alerts.
        partitions: Its partitions.
        since_ms: When the endpoint was added, in ms since 1970.
        has_begun: Whether the group had committed positions before.

    Raises:
        PositionLostError: Delivery has begun, and the group has no position at all.
        KafkaException: The broker did not respond.
    """
    own = {"enable.auto.commit": False, "isolation.level": "read_committed"}  # so ends are before open transactions
    consumer = Consumer({**settings, **own})
    try:
        positions = [TopicPartition(topic, number) for number in partitions]
        committed = _checked(consumer.committed(positions, timeout=TIMEOUT_SECONDS))
        _log_deleted(consumer, settings, committed)
        new = [each for each in committed if each.offset < 0]
        if not new:
            return
        if has_begun and len(new) == len(positions):
            message = f"the broker no longer knows where it stood in {len(new)} partitions"
            raise PositionLostError(message, do="see docs/how-to/troubleshooting.md")
        # The ends are read first: an alert written between the two calls is beyond them, or is found by its time.
        ends = {each.partition: _end(consumer, each) for each in new}
        queries = [TopicPartition(topic, each.partition, since_ms) for each in new]
        found = _checked(consumer.offsets_for_times(queries, timeout=TIMEOUT_SECONDS))
        at = [
            TopicPartition(topic, each.partition, ends[each.partition] if each.offset < 0 else each.offset)
            for each in found
        ]
        consumer.commit(offsets=at, asynchronous=False)
    finally:
        consumer.close()


def _log_deleted(consumer: Any, settings: dict[str, Any], committed: Sequence[TopicPartition]) -> None:  # noqa: ANN401 - confluent_kafka ships no types
    """The group was down for longer than the topic keeps records."""
    for each in committed:
        first, _ = consumer.get_watermark_offsets(TopicPartition(each.topic, each.partition), timeout=TIMEOUT_SECONDS)
        if 0 <= each.offset < first:
            place, deleted = f"{each.topic}/{each.partition}/{each.offset}", first - each.offset
            log.error("webhook.alerts_gone", group=settings.get("group.id"), place=place, records=deleted)


def _checked(positions: Sequence[TopicPartition]) -> Sequence[TopicPartition]:
    for each in positions:
        if each.error is not None:
            raise KafkaException(each.error)
    return positions


def _end(consumer: Any, of: TopicPartition) -> int:  # noqa: ANN401 - confluent_kafka ships no types
    _, end = consumer.get_watermark_offsets(TopicPartition(of.topic, of.partition), timeout=TIMEOUT_SECONDS)
    return int(end)
