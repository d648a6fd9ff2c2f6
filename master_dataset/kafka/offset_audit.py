"""How many records a topic has before some positions, counted by reading it: what no position and no offset can say.

Offsets are no count: markers of transactions, aborted records and Galatea's own markers take some, too.
"""

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import NamedTuple

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from master_dataset.errors import BrokerUnavailableError
from master_dataset.parsing.parse import is_marker

AT_ONCE = 1000
SILENT_SECONDS = 30.0
POLL_SECONDS = 0.5
TELL_SECONDS = 2.0
_DELETED = (KafkaError.OFFSET_OUT_OF_RANGE, KafkaError._AUTO_OFFSET_RESET)  # noqa: SLF001 - its name

Step = Callable[[int, int, str], None]
"""Told how many offsets are read, of how many, and of which topic."""


class OffsetAudit(NamedTuple):
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


def audit_offsets(bootstrap: str, topic: str, until: Mapping[int, int], step: Step) -> dict[int, OffsetAudit]:
    """Partition to what it has before the position in `until`. BrokerUnavailableError if nobody answers for long."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "galatea.balance",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
            "log_level": 2,
            "auto.offset.reset": "error",  # else a partition would go on at its end where its first records are deleted
        }
    )
    try:
        return _Count(consumer, topic, until).counted(step)
    except KafkaException as error:
        raise BrokerUnavailableError(
            f"`{topic}` could not be read: {error.args[0].str()}", do="galatea status"
        ) from error
    finally:
        consumer.close()


class _Count:
    """Of one topic. `at`: how far each partition is read, from `firsts` on; `left`: what is not read to its end."""

    def __init__(self, consumer: Consumer, topic: str, until: Mapping[int, int]) -> None:
        self._consumer, self._topic, self._until = consumer, topic, until
        self._firsts = {part: self._first(part) for part in until}
        self._runs = {part: list[tuple[int, int]]() for part in until}
        self._at = dict(self._firsts)
        self._left = {part for part, first in self._firsts.items() if first < until[part]}

    def counted(self, step: Step) -> dict[int, OffsetAudit]:
        self._assign()
        told_at = heard_at = time.monotonic()
        while self._left:
            messages = self._consumer.consume(AT_ONCE, POLL_SECONDS)
            deleted = {part for each in messages if (part := self._take(each)) is not None}
            if deleted:
                self._begin_again(deleted)
            if messages:
                heard_at = time.monotonic()
            if time.monotonic() - told_at > TELL_SECONDS:
                told_at = time.monotonic()
                step(self._sum(self._at), self._sum(self._until), self._topic)
            if time.monotonic() - heard_at > SILENT_SECONDS:
                raise BrokerUnavailableError(
                    f"`{self._topic}` says nothing for {SILENT_SECONDS:g} s.", do="galatea status"
                )
        total = self._sum(self._until)
        step(total, total, self._topic)
        return {part: OffsetAudit(first, self._until[part], self._runs[part]) for part, first in self._firsts.items()}

    def _take(self, message: Message) -> int | None:
        """Count it. A partition if the record that would come next there is deleted."""
        part, error, offset = message.partition() or 0, message.error(), message.offset() or 0
        if error is not None and error.code() in _DELETED:
            return part
        if error is not None and error.code() != KafkaError._PARTITION_EOF:  # noqa: SLF001 - the client's public name for it
            raise KafkaException(error)
        if error is None and offset < self._until[part]:
            if not is_marker(message.headers() or []):  # type: ignore[arg-type]  # a list
                _add(self._runs[part], offset)
            self._at[part] = offset + 1
        if error is not None or offset + 1 >= self._until[part]:
            self._left.discard(part)
        return None

    def _begin_again(self, parts: Collection[int]) -> None:
        """At what these have by now: what was counted of them lay before."""
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
