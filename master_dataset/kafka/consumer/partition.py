"""One assigned partition: which records are in memory, which were dropped, and which offset may be committed."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from master_dataset.kafka.record import ConsumerRecord

if TYPE_CHECKING:
    from master_dataset.kafka.consumer.key_queue import KeyQueue


class Partition:
    """Tracks each key of a partition, so that only records done without a gap are committed.

    A key without progress must not fill the memory: the tail of its queue is dropped, and read again later by seeking
    back. So a key is in one or more of these states, each with the first offset that it still needs:

    - in `queues`: its records are in memory;
    - in `_dropped_from`: its records from that offset on were dropped, and new ones are skipped;
    - in `_rereading`: it is read again after a seek, and has got its records before that offset.

    The memory needed is per key, never per record. Offsets have gaps (transaction markers, aborted records); whatever
    is between two records, or between the last one and the end, counts as done.
    """

    def __init__(self) -> None:
        """Start before the first record is read."""
        self.queues: dict[bytes, KeyQueue] = {}
        self.dropped_records = 0  # records that were read, dropped and not read again
        self.unread_from: int | None = None  # first offset never read; None at the end of the partition
        self._next: int | None = None  # offset that is read next; None before anything was read
        self._high = 0  # everything before was read at least once
        self._dropped_from: dict[bytes, int] = {}
        self._rereading: dict[bytes, int] = {}

    @property
    def position(self) -> int | None:
        """The offset to commit: all records before it are done. None before anything was read."""
        if self._next is None:
            return None
        waiting = (queue.waiting[0].offset for queue in self.queues.values() if queue.waiting)
        return min((*waiting, *self._dropped_from.values(), *self._rereading.values()), default=self._high)

    def went_back(self, offset: int) -> bool:
        """Whether the offset is behind what was read although this partition did not seek: the topic was recreated."""
        return self._next is not None and offset < self._next

    def admit(self, record: ConsumerRecord, accepts: Callable[[ConsumerRecord], bool]) -> bool:
        """Note a record that was just read. Returns whether it goes into the queue of its key now."""
        is_new = record.offset >= self._high
        self._next = record.offset + 1
        if is_new:
            self._high = self.unread_from = self._next
        is_due = is_new or record.offset >= self._rereading.get(record.key, self._high)
        is_admitted = is_due and accepts(record)
        if is_admitted and not is_new:
            self._rereading[record.key] = self._next
            self.dropped_records -= 1
        elif is_admitted and record.key in self._dropped_from:  # earlier records of its key come first
            self.dropped_records += 1
            is_admitted = False
        self._end_rereading()
        return is_admitted

    def reach_end(self, offset: int) -> None:
        """Everything before `offset` was read, and nothing else is there yet.

        What lies behind the last record is no record, such as the marker that ends its transaction. It must not stay
        behind the position: once the topic has deleted both, the position would look as if a record was missed.
        """
        self.unread_from = None
        if offset >= self._high:  # otherwise the end went back, which the next record shows
            self._next = self._high = offset
            self._end_rereading()

    def _end_rereading(self) -> None:
        if self._next == self._high:  # nothing is left to be read again
            self._rereading.clear()
            if not self._dropped_from:
                self.dropped_records = 0  # retention has deleted the rest

    def drop_tail(self, key: bytes, keep: int) -> int:
        """Drop a key's waiting records beyond `keep`, but nothing in flight. Returns how many were dropped."""
        removed = self.queues[key].drop_tail(keep)
        if removed:
            self._drop_from(key, removed[0].offset, len(removed))
        return len(removed)

    def end_queue(self, key: bytes) -> int:
        """Remove a queue that has ended. Returns how many records still waited in it: they are not done."""
        waiting = self.queues.pop(key).waiting
        if waiting:
            self._drop_from(key, waiting[0].offset, len(waiting))
        return len(waiting)

    def seek_offset(self) -> int | None:
        """Start to read dropped keys again that have no queue any more. Returns where to seek; None: nowhere."""
        due = {key: offset for key, offset in self._dropped_from.items() if key not in self.queues}
        for key in due:
            del self._dropped_from[key]
        self._rereading |= due
        first = min(due.values(), default=None)
        if first is None or self._next is None or first >= self._next:
            return None
        self._next = first
        return first

    def _drop_from(self, key: bytes, offset: int, records: int) -> None:
        self._rereading.pop(key, None)
        self._dropped_from[key] = offset
        self.dropped_records += records
