"""Windows chosen one by one, such as those in which a store is open."""

from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Self

import numpy as np

from master_dataset.registry.stores import Store
from views.core.local_time import STEP, Span, open_spans


@dataclass(frozen=True, eq=False, slots=True)
class Windows(AbstractSet[int]):
    """A set of windows by their starts, iterated in order.

    Attributes:
        start: of the window that the first flag is about.
        flags: a byte for each window from there on: 1 if it is one of them. So ten years take 350 kB; as a set of
            integers they would take 14 MB.
    """

    start: int = 0
    flags: bytes = b""

    @classmethod
    def within(cls, *spans: Span) -> Self:
        """All windows of these spans, which may overlap."""
        held = [span for span in spans if span.start < span.end]
        if not held:
            return cls()
        start = min(span.start for span in held)
        flags = bytearray((max(span.end for span in held) - start) // STEP)
        for span in held:
            first, end = ((at - start) // STEP for at in span)
            flags[first:end] = b"\x01" * (end - first)
        return cls(start, bytes(flags))

    @classmethod
    def of(cls, starts: Iterable[int]) -> Self:
        """The windows that begin at these times, all of them on the grid."""
        places = np.fromiter(starts, np.int64) // STEP
        if not places.size:
            return cls()
        flags = np.zeros(places.max() - places.min() + 1, np.uint8)
        flags[places - places.min()] = 1
        return cls(int(places.min()) * STEP, flags.tobytes())

    def __contains__(self, window: object) -> bool:
        """Whether this window, on the grid, is one of them."""
        if not isinstance(window, int | np.integer):
            return False
        place = (window - self.start) // STEP
        return 0 <= place < len(self.flags) and bool(self.flags[place])

    def __iter__(self) -> Iterator[int]:
        """The starts, in order."""
        starts = np.flatnonzero(np.frombuffer(self.flags, np.uint8)) * STEP + self.start
        return iter(starts.tolist())

    def __len__(self) -> int:
        """How many there are."""
        return self.flags.count(1)

    def __and__(self, other: AbstractSet[object]) -> "Windows":
        """Those that are in both."""
        if not isinstance(other, Windows):
            return Windows.of(window for window in self if window in other)
        start = max(self.start, other.start)
        one, two = (np.frombuffer(each.flags, np.uint8)[(start - each.start) // STEP :] for each in (self, other))
        both = min(len(one), len(two))
        return Windows(start, (one[:both] & two[:both]).tobytes())


def open_windows(store: Store, start: int, end: int) -> Windows:
    """The open windows of [start, end), in seconds. Empty if the store has no opening hours."""
    return Windows.within(*open_spans(store.opening, start, end))
