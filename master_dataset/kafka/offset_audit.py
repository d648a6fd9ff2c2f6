"""Count the records of a topic before some positions, by reading it.

Offsets cannot be subtracted for that: transaction markers, aborted records and Galatea's own markers take offsets too.
"""

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import NamedTuple

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from master_dataset.errors import BrokerUnavailableError
from master_dataset.kafka.client_errors import explained
from master_dataset.kafka.connection import KafkaConnection
from master_dataset.kafka.record import headers_of_message
from master_dataset.parsing.parse import is_marker

RECORDS_PER_POLL = 1000
SILENT_SECONDS = 30.0
POLL_SECONDS = 0.5
REPORT_SECONDS = 2.0
_DELETED = (KafkaError.OFFSET_OUT_OF_RANGE, KafkaError._AUTO_OFFSET_RESET)  # noqa: SLF001 - its name

Step = Callable[[int, int, str], None]
"""Called with the number of offsets read, their total, and the topic."""


class OffsetAudit(NamedTuple):
    """The committed records of one partition from `first`, its oldest offset, to before `until`.

    `runs`: offsets of records as half-open intervals.
    """

    first: int
    until: int
    runs: Sequence[tuple[int, int]]

    @property
    def records(self) -> int:
        """How many records there are."""
        return sum(until - first for first, until in self.runs)


def audit_offsets(kafka: KafkaConnection, topic: str, until: Mapping[int, int], step: Step) -> dict[int, OffsetAudit]:
    """Read a topic up to some positions.

    Args:
        kafka: The cluster.
        topic: The topic.
        until: Partition to position.
        step: Called with the progress.

    Returns:
        Partition to its records before the position.

    Raises:
        BrokerUnavailableError: No partition that is not read to its position sends anything for SILENT_SECONDS.
    """
    consumer = Consumer(
        {
            **kafka.client(),
            "group.id": "galatea.balance",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
            "log_level": 2,
            "auto.offset.reset": "error",  # never skip to the end, even if records were deleted
        }
    )
    try:
        return _Counter(consumer, topic, until).run(step)
    except KafkaException as error:
        raise explained(error.args[0], kafka, f"read the topic `{topic}`") from error
    finally:
        consumer.close()


class _Counter:
    """Reads one topic. `at`: how far each partition is read, from `firsts` on; `left`: those not read to the end."""

    def __init__(self, consumer: Consumer, topic: str, until: Mapping[int, int]) -> None:
        self._consumer, self._topic, self._until = consumer, topic, until
        self._firsts = {part: self._first(part) for part in until}
        self._runs = {part: list[tuple[int, int]]() for part in until}
        self._at = dict(self._firsts)
        self._left = {part for part, first in self._firsts.items() if first < until[part]}

    def run(self, step: Step) -> dict[int, OffsetAudit]:
        self._assign()
        reported_at = heard_at = time.monotonic()
        while self._left:
            messages, awaited = self._consumer.consume(RECORDS_PER_POLL, POLL_SECONDS), set(self._left)
            deleted = {part for each in messages if (part := self._receive(each)) is not None}
            if deleted:
                self._restart(deleted)
            if any((each.partition() or 0) in awaited for each in messages):  # others may go on growing
                heard_at = time.monotonic()
            if time.monotonic() - reported_at > REPORT_SECONDS:
                reported_at = time.monotonic()
                step(self._sum(self._at), self._sum(self._until), self._topic)
            if time.monotonic() - heard_at > SILENT_SECONDS:
                silent = ", ".join(f"`{self._topic}/{part}`" for part in sorted(self._left))
                message = f"{silent} sent nothing for {SILENT_SECONDS:g} s."
                raise BrokerUnavailableError(message, do="galatea status")
        total = self._sum(self._until)
        step(total, total, self._topic)
        return {part: OffsetAudit(first, self._until[part], self._runs[part]) for part, first in self._firsts.items()}

    def _receive(self, message: Message) -> int | None:
        """Count it. Returns the partition if the next record there was deleted by retention."""
        part, error, offset = message.partition() or 0, message.error(), message.offset() or 0
        if error is not None and error.code() in _DELETED:
            return part
        if error is not None and error.code() != KafkaError._PARTITION_EOF:  # noqa: SLF001 - the client's public name for it
            raise KafkaException(error)
        if error is None and offset < self._until[part]:
            if not is_marker(headers_of_message(message)):
                _add(self._runs[part], offset)
            self._at[part] = offset + 1
        if error is not None or offset + 1 >= self._until[part]:
            self._left.discard(part)
        return None

    def _restart(self, parts: Collection[int]) -> None:
        """Start again at the oldest offset that these partitions still have."""
        for part in parts:
            self._firsts[part] = self._at[part] = self._first(part)
            self._runs[part].clear()
            if self._firsts[part] >= self._until[part]:
                self._left.discard(part)
        self._assign()

    def _assign(self) -> None:
        self._consumer.assign([TopicPartition(self._topic, part, self._at[part]) for part in sorted(self._left)])

    def _first(self, part: int) -> int:
        return self._consumer.get_watermark_offsets(TopicPartition(self._topic, part), SILENT_SECONDS)[0]

    def _sum(self, offsets: Mapping[int, int]) -> int:
        return sum(max(offsets[part] - first, 0) for part, first in self._firsts.items())


def _add(runs: list[tuple[int, int]], offset: int) -> None:
    begun = runs.pop()[0] if runs and runs[-1][1] == offset else offset
    runs.append((begun, offset + 1))
