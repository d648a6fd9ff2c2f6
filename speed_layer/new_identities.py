"""Says which identities are surely not remembered, so that Cassandra need not be asked for them.

A Bloom filter for each day and task, in files that the workers of one query share. It speaks only for partitions of the
table of first deliveries that were empty when this query met them first; for all others, Cassandra is asked. So it
decides how much is read, and never what counts: an identity that it takes for a known one is looked up.

That it takes no known identity for a new one rests on this:

- One task at a time writes to a partition of the table, and it adds identities to the filter before it writes them.
- What others write to the same generation, such as a worker of a former process that is still busy, are events of
  micro-batches that were complete before this query met their partitions, or that it counts itself: a claim binds the
  number of a micro-batch to its records.
- A query that starts again, in this process or another, has a folder of its own. With executors there are no filters.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Hashes = npt.NDArray[np.uint64]
Mask = npt.NDArray[np.bool_]
Places = npt.NDArray[np.int64]

FILTER_BYTES = 8 * 2**20
"""Four million identities take 16 bits each: one in 400 is looked up for nothing. With twice as many, one in 40."""
_PROBES = 4
_KEPT = timedelta(days=3)
"""Beside the newest day. Events that speed counts are younger than a day on arrival."""
_UNMET, _EMPTY, _FILLED = 0, 1, 2
"""What a partition held when it was met first."""
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
"""2**64 divided by the golden ratio: multiplicative hashing (Knuth, The Art of Computer Programming, volume 3, 6.4)."""


@dataclass(frozen=True)
class FilterFiles:
    """Where the filters of a query are.

    Attributes:
        folder: Of this query alone, on this host. Its workers never make it: those of a query that has ended must fail.
        tasks: How many tasks count at most: each has files of its own.
        topics: Of the events, in any order that stays.
        buckets: Of the table of first deliveries.
    """

    folder: Path
    tasks: int
    topics: Sequence[str]
    buckets: int

    def of(self, day: date, task: int) -> "IdentityFilter":
        """The filter of a day and task.

        Raises:
            OSError: There is no room for it, or the query has ended and its folder is removed.
        """
        path = self.folder / f"{day}-{task}"
        known = _opened.get(path)
        if known is None or not known.is_at(path):
            for each in [each for each, own in _opened.items() if not own.is_at(each)]:
                del _opened[each]
            known = _opened[path] = IdentityFilter(path, self)
        return known

    def remove_old(self) -> None:
        """Remove the files of days that are over. Only between micro-batches."""
        days = {path: date.fromisoformat(path.name[:10]) for path in self.folder.glob("????-??-??-*")}
        for path in [path for path, day in days.items() if day < max(days.values()) - _KEPT]:
            path.unlink()


class IdentityFilter:
    """The identities of one day in the partitions of one task."""

    def __init__(self, path: Path, files: FilterFiles) -> None:
        """Opens the file, or creates it."""
        self._topics, self._buckets = {topic: number for number, topic in enumerate(files.topics)}, files.buckets
        partitions = len(files.topics) * files.buckets
        if not path.exists():
            begun = path.with_name(f"begun-{path.name}")  # one that a killed worker has left is not complete
            begun.write_bytes(bytes(partitions + FILTER_BYTES))
            begun.replace(path)
        every = np.memmap(path, np.uint8, "r+")
        self._met, self._bits = every[:partitions], every[partitions:]
        self._inode = path.stat().st_ino

    def is_at(self, path: Path) -> bool:
        """Whether the file is still there. When a day is over, it is removed."""
        try:
            return path.stat().st_ino == self._inode
        except FileNotFoundError:
            return False

    def partitions(self, topics: pa.ChunkedArray, buckets: Places) -> Places:
        """The numbers of partitions, as the other methods take them."""
        named = topics.combine_chunks().dictionary_encode()
        numbers = np.array([self._topics[topic] for topic in named.dictionary.to_pylist()], np.int64)
        partitions: Places = numbers[named.indices.to_numpy()] * self._buckets + buckets
        return partitions

    def unmet(self, partitions: Iterable[int]) -> list[int]:
        """Partitions that have not been passed to `meet`."""
        return [each for each in partitions if self._met[each] == _UNMET]

    def meet(self, partition: int, *, is_empty: bool) -> None:
        """Say whether a partition is empty, before anything is written to it."""
        self._met[partition] = _EMPTY if is_empty else _FILLED

    def add(self, partitions: Places, hashes: Hashes) -> Mask:
        """Add identities, and return which of them surely were not there.

        Args:
            partitions: The partition of each; all of them are met.
            hashes: Of the identities.
        """
        mixed = hashes ^ (partitions.astype(np.uint64) + np.uint64(1)) * _GOLDEN
        step = (mixed * _GOLDEN) >> np.uint64(32) | np.uint64(1)
        is_new: Mask = np.zeros(len(hashes), np.bool_)
        probes = []
        for _ in range(_PROBES):
            place = mixed % np.uint64(8 * FILTER_BYTES)
            at, bit = (place >> np.uint64(3)).astype(np.int64), np.uint8(1) << (place & np.uint64(7)).astype(np.uint8)
            is_new |= (self._bits[at] & bit) == 0
            probes.append((at, bit))
            mixed = mixed + step
        for at, bit in probes:
            np.bitwise_or.at(self._bits, at, bit)
        is_new &= self._met[partitions] == _EMPTY
        return is_new


_opened: dict[Path, IdentityFilter] = {}
"""Those that this process has open."""
