"""Puts the many small files of the master dataset's tables together, and removes what that replaced.

By delta-rs, while the archive appends: an append and a compaction do not touch each other's files. Two compactions do,
and delta-rs (1.6) commits both, after which every row is there twice. So a compaction holds a lease, and each portion
of its work renews it.
"""

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import structlog
from deltalake import CommitProperties, DeltaTable, WriterProperties

from master_dataset.delta.commit_intents import commit_intent
from master_dataset.delta.dataset import path_of, report_lost_files
from master_dataset.delta.fsync import fsync_checkpoint
from master_dataset.delta.history import MARK
from master_dataset.errors import OperatorError

log = structlog.get_logger()

TARGET_BYTES = 128 * 1024 * 1024
SEVERAL = 4
"""So many files of less than half the target are worth a compaction: the whole partition is read and written again."""
PORTION_BYTES = 1024 * 1024 * 1024
"""So much is put together by one commit. The archive looks for its own marks in the newest 100 commits."""
_AT_ONCE = 2
_LIKE_SPARK = WriterProperties(compression="ZSTD", compression_level=3, max_row_group_size=100_000)
"""The archive's codec. Row groups are kept in memory while they are written, raw bytes and all."""
_SAID = {"galatea": "compact"}

Step = Callable[[int, int, str], None]


@dataclass(frozen=True)
class Compacted:
    """What became of one table. `removed`: files that an earlier compaction replaced, gone from the disk now."""

    table: str
    files_before: int
    files_after: int
    bytes_before: int
    bytes_after: int
    removed: int


@dataclass(frozen=True)
class Compaction:
    """`renew` is called before each portion and raises if somebody else compacts. `vacuum_days`: at least 7.

    Files that were replaced are kept for so long: a rebuild reads the version that it planned with.
    """

    renew: Callable[[], None]
    vacuum_days: int
    several: int = SEVERAL
    portion_bytes: int = PORTION_BYTES

    def run(self, path: str, step: Step) -> Compacted:
        """Compact one table. MasterFileLostError if a file cannot be read; what was committed until then stays."""
        table = DeltaTable(path)
        if not table.history(1):
            message = f"the log of `{path}` cannot be listed because of the folder's name"
            raise OperatorError(message, do="move the master dataset to a folder without # [ ] * ? in its name")
        name = path.rpartition("/")[2]
        before = _files(table)
        portions = list(self._portions(table))
        for number, values in enumerate(portions):
            step(number, len(portions), name)
            self.renew()
            compact_partitions(DeltaTable(path), values)
        self.renew()
        hours = 24 * self.vacuum_days
        removed = DeltaTable(path).vacuum(
            retention_hours=hours, dry_run=False, full=True, commit_properties=CommitProperties(custom_metadata=_SAID)
        )
        _shorten(path)
        step(len(portions), len(portions), name)
        after = _files(DeltaTable(path))
        found = Compacted(
            name,
            len(before),
            len(after),
            sum(each["size_bytes"] for each in before),
            sum(each["size_bytes"] for each in after),
            len({file.rpartition("/")[2] for file in removed}),
        )
        log.info("master.compacted", table=name, files=len(before), to=len(after), removed=found.removed)
        return found

    def _portions(self, table: DeltaTable) -> Iterator[list[str]]:
        """Partitions with several small files, as many as one commit may put together. None of a table without any."""
        columns = table.metadata().partition_columns
        if not columns:
            return
        [column] = columns
        small: dict[str, list[int]] = {}
        for each in _files(table):
            if each["size_bytes"] < TARGET_BYTES // 2:
                small.setdefault(str(each[f"partition.{column}"]), []).append(each["size_bytes"])
        portion: list[str] = []
        size = 0
        for value in sorted(value for value, sizes in small.items() if len(sizes) >= self.several):
            portion.append(value)
            size += sum(small[value])
            if size >= self.portion_bytes:
                yield portion
                portion, size = [], 0
        if portion:
            yield portion


def compact_partitions(table: DeltaTable, partitions: Collection[str]) -> None:
    """Rewrite the files of these partitions by one commit, as they are in the version that was loaded."""
    [column] = table.metadata().partition_columns
    with report_lost_files(table), commit_intent(path_of(table)) as mark:
        table.optimize.compact(
            partition_filters=[(column, "in", list(partitions))],
            target_size=TARGET_BYTES,
            max_concurrent_tasks=_AT_ONCE,
            writer_properties=_LIKE_SPARK,
            commit_properties=CommitProperties(custom_metadata={**_SAID, MARK: mark}),
        )


def _shorten(path: str) -> None:
    """Take away lines of the log that are older than it keeps, once the checkpoint that stands for them is there."""
    table = DeltaTable(path)
    table.create_checkpoint()
    fsync_checkpoint(path, table.version())
    table.cleanup_metadata()


def _files(table: DeltaTable) -> list[dict[str, Any]]:
    files: list[dict[str, Any]] = pa.table(table.get_add_actions(flatten=True)).to_pylist()
    return files
