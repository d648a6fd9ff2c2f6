"""How far a partition is done without a gap: only that may be committed, else a record that is still under way is lost.

Offsets have gaps of their own (markers of transactions), so what is between two records counts as done.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from master_dataset.kafka.record import ConsumerRecord

if TYPE_CHECKING:
    from master_dataset.kafka.consumer.key_queue import KeyQueue


class Partition:
    """It remembers what is under way and where each key goes on that was let go, however much was done behind that.

    What waits of a key that does not get on is let go, from one of its records on, and read again later.
    """

    def __init__(self) -> None:
        """Nothing was read. `left`: records that were read, let go and not read again.

        `unread_from`: where that begins which was never read; None at the end.
        """
        self.lanes: dict[bytes, KeyQueue] = {}
        self.left = 0
        self.unread_from: int | None = None
        self._next: int | None = None  # as it is read
        self._seen = 0  # all before it was read once
        self._gone: dict[bytes, int] = {}  # by key, the record from which on it was let go
        self._again: dict[bytes, int] = {}  # by key that is read again, how far it was taken

    @property
    def position(self) -> int | None:
        """Before it all is done; None as long as nothing was read."""
        if self._next is None:
            return None
        waiting = (lane.waiting[0].offset for lane in self.lanes.values() if lane.waiting)
        return min((*waiting, *self._gone.values(), *self._again.values()), default=self._seen)

    def has_passed(self, offset: int) -> bool:
        """Whether that is no place where reading can be: offsets rise, but after `go_back`."""
        return self._next is not None and offset < self._next

    def takes(self, record: ConsumerRecord, wants: Callable[[ConsumerRecord], bool]) -> bool:
        """Whether this record, which was read just now, is to be handed over now."""
        key, is_new = record.key, record.offset >= self._seen
        self._next = record.offset + 1
        if is_new:
            self._seen = self.unread_from = self._next
        is_due = is_new or record.offset >= self._again.get(key, self._seen)
        is_taken = is_due and wants(record)
        if is_taken and not is_new:
            self._again[key] = self._next
            self.left -= 1
        elif is_taken and key in self._gone:
            self.left += 1
            is_taken = False
        if self._next == self._seen:
            self._again.clear()
            self.left = self.left if self._gone else 0  # what the topic keeps no more comes no more
        return is_taken

    def let_go(self, key: bytes, keep: int) -> int:
        """Forget what waits of a key beyond so many records, but what was handed over already. How many they were."""
        cut = self.lanes[key].cut(keep)
        if cut:
            self._lose(key, cut[0])
            self.left += len(cut)
        return len(cut)

    def end(self, key: bytes) -> int:
        """Its lane has ended. How many records waited in it still: they are not done."""
        lane = self.lanes.pop(key)
        if lane.waiting:
            self._lose(key, lane.waiting[0])
            self.left += len(lane.waiting)
        return len(lane.waiting)

    def go_back(self) -> int | None:
        """Give keys that have got on what was let go of them. Where reading has to go back to for it; None: nowhere."""
        due = {key: offset for key, offset in self._gone.items() if key not in self.lanes}
        for key in due:
            del self._gone[key]
        self._again |= due
        first = min(due.values(), default=None)
        if first is None or self._next is None or first >= self._next:
            return None
        self._next = first
        return first

    def _lose(self, key: bytes, first: ConsumerRecord) -> None:
        self._again.pop(key, None)
        self._gone[key] = first.offset
