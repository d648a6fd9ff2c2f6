"""How many records a topic has before some positions, counted by reading it: what no position and no offset can say.

Offsets are no count: markers of transactions, aborted records and Galatea's own markers take some, too.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from master_dataset.errors import BrokerUnavailable
from master_dataset.parsing.parse import is_marker

AT_ONCE = 1000
SILENT_SECONDS = 30.0
POLL_SECONDS = 0.5
TELL_SECONDS = 2.0

Step = Callable[[int, int, str], None]
"""Told how many offsets are read, of how many, and of which topic."""


class Census(NamedTuple):
    """Of one partition: committed records from `first`, the oldest offset that the topic still has, before `until`.

    `runs`: where they lie, each from its first offset to before its second.
    """

    first: int
    until: int
    runs: Sequence[tuple[int, int]]

    @property
    def records(self) -> int:
        """How many."""
        return sum(until - first for first, until in self.runs)


def census(bootstrap: str, topic: str, until: Mapping[int, int], step: Step) -> dict[int, Census]:
    """Partition to what it has before the position in `until`. BrokerUnavailable if nobody answers for long."""
    consumer = Consumer({
        "bootstrap.servers": bootstrap, "group.id": "galatea.balance", "enable.auto.commit": False,
        "isolation.level": "read_committed", "enable.partition.eof": True, "log_level": 2,
    })  # fmt: skip
    try:
        firsts = {
            part: consumer.get_watermark_offsets(TopicPartition(topic, part), SILENT_SECONDS)[0] for part in until
        }
        return _counted(consumer, topic, firsts, until, step)
    except KafkaException as error:
        raise BrokerUnavailable(f"`{topic}` could not be read: {error.args[0].str()}", do="galatea status") from error
    finally:
        consumer.close()


def _counted(
    consumer: Consumer, topic: str, firsts: Mapping[int, int], until: Mapping[int, int], step: Step
) -> dict[int, Census]:
    at, runs = dict(firsts), {part: list[tuple[int, int]]() for part in firsts}
    total = sum(max(until[part] - first, 0) for part, first in firsts.items())
    left = {part for part, first in firsts.items() if first < until[part]}
    consumer.assign([TopicPartition(topic, part, firsts[part]) for part in left])
    told_at = heard_at = time.monotonic()
    while left:
        for message in consumer.consume(AT_ONCE, POLL_SECONDS):
            heard_at = time.monotonic()
            part, error = message.partition() or 0, message.error()
            if error is not None and error.code() != KafkaError._PARTITION_EOF:  # noqa: SLF001 - the client's public name for it
                raise KafkaException(error)
            offset = message.offset() or 0
            if error is None and offset < until[part]:
                if not is_marker(message.headers() or []):  # type: ignore[arg-type]  # a list
                    _add(runs[part], offset)
                at[part] = offset + 1
            if error is not None or offset + 1 >= until[part]:
                left.discard(part)
        if time.monotonic() - told_at > TELL_SECONDS:
            told_at = time.monotonic()
            step(sum(at[part] - first for part, first in firsts.items()), total, topic)
        if time.monotonic() - heard_at > SILENT_SECONDS:
            raise BrokerUnavailable(f"`{topic}` says nothing for {SILENT_SECONDS:g} s.", do="galatea status")
    step(total, total, topic)
    return {part: Census(first, until[part], runs[part]) for part, first in firsts.items()}


def _add(runs: list[tuple[int, int]], offset: int) -> None:
    begun = runs.pop()[0] if runs and runs[-1][1] == offset else offset
    runs.append((begun, offset + 1))
