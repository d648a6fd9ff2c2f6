"""Where a new endpoint begins: with what was told after it was made, however long it takes until somebody consumes.

"From the end" would not do: whoever dies before the first commit would come back to a later end.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import structlog
from confluent_kafka import Consumer, KafkaException, TopicPartition

from master_dataset.errors import OperatorError

log = structlog.get_logger()
TIMEOUT_SECONDS = 15.0


class PositionLostError(OperatorError):
    """The broker has forgotten where an endpoint stood: from its beginning it would be told again what it knows."""


def commit_start_positions(
    settings: dict[str, Any], topic: str, partitions: Iterable[int], since_ms: int, *, has_begun: bool = False
) -> None:
    """Commit, for the group of these settings, where the topic was at that time. Does nothing where it has committed.

    So a partition that was added later begins as the others did. What the topic has deleted behind a place is logged:
    it is told nobody any more. Raises KafkaException, and PlaceLost if it `has_begun` and has committed nothing at all.
    """
    own = {"enable.auto.commit": False, "isolation.level": "read_committed"}  # its end lies before what is still open
    consumer = Consumer({**settings, **own})
    try:
        places = [TopicPartition(topic, number) for number in partitions]
        known = _answered(consumer.committed(places, timeout=TIMEOUT_SECONDS))
        _say_what_is_gone(consumer, settings, known)
        new = [each for each in known if each.offset < 0]
        if not new:
            return
        if has_begun and len(new) == len(places):
            message = f"the broker no longer knows where it stood in {len(new)} partitions"
            raise PositionLostError(message, do="see docs/how-to/troubleshooting.md")
        # The ends first: an alert that comes between the two questions lies behind them, or is found by its time.
        ends = {each.partition: _end(consumer, each) for each in new}
        asked = [TopicPartition(topic, each.partition, since_ms) for each in new]
        found = _answered(consumer.offsets_for_times(asked, timeout=TIMEOUT_SECONDS))
        at = [
            TopicPartition(topic, each.partition, ends[each.partition] if each.offset < 0 else each.offset)
            for each in found
        ]
        consumer.commit(offsets=at, asynchronous=False)
    finally:
        consumer.close()


def _say_what_is_gone(consumer: Any, settings: dict[str, Any], known: Sequence[TopicPartition]) -> None:  # noqa: ANN401 - confluent_kafka ships no types
    """It stood still for longer than the topic keeps records."""
    for each in known:
        first, _ = consumer.get_watermark_offsets(TopicPartition(each.topic, each.partition), timeout=TIMEOUT_SECONDS)
        if 0 <= each.offset < first:
            place = f"{each.topic}/{each.partition}/{each.offset}"
            log.error("webhook.alerts_gone", group=settings.get("group.id"), place=place, records=first - each.offset)


def _answered(places: Sequence[TopicPartition]) -> Sequence[TopicPartition]:
    for each in places:
        if each.error is not None:
            raise KafkaException(each.error)
    return places


def _end(consumer: Any, place: TopicPartition) -> int:  # noqa: ANN401 - confluent_kafka ships no types
    _, end = consumer.get_watermark_offsets(TopicPartition(place.topic, place.partition), timeout=TIMEOUT_SECONDS)
    return int(end)
