"""Compact the many small files of the master dataset, and delete the files that a compaction replaced.

delta-rs does it while the archive appends: an append and a compaction do not touch each other's files. Two compactions
do, and delta-rs (1.6) commits both, which duplicates every row. So a compaction holds a lease and renews it before each
portion of its work. For the same reason delta-rs may repeat a commit whose answer an object store lost. It then adds
and removes the same files again, which changes nothing, because nobody else removes files.
"""

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import structlog
from deltalake import CommitProperties, DeltaTable, PostCommitHookProperties, WriterProperties
from pyarrow import parquet

from master_dataset.delta.append import REWRITES, committed_once
from master_dataset.delta.commit_intents import commit_intent
from master_dataset.delta.dataset import path_of, report_lost_files
from master_dataset.delta.fsync import fsync_checkpoint
from master_dataset.delta.history import MARK
from master_dataset.errors import OperatorError
from master_dataset.storage import filesystem, open_table

log = structlog.get_logger()

TARGET_BYTES = 128 * 1024 * 1024
MIN_SMALL_FILES = 4
"""A partition with this many files below half the target size is compacted: all of it is rewritten."""
PORTION_BYTES = 1024 * 1024 * 1024
"""How much one commit compacts. The archive searches the newest 100 commits for its own marks."""
ROWS_AT_ONCE = 8_192
"""Rows that delta-rs decodes at once. As measured, it holds two to four times their bytes."""
MOST_BYTES_AT_ONCE = 256 * 1024 * 1024
"""Maximum size of the rows that are decoded at once, uncompressed: large ones may compress to a thousandth."""
_PARALLEL_TASKS = 2
_LIKE_ARCHIVE = WriterProperties(compression="ZSTD", compression_level=3, max_row_group_size=100_000)
"""The archive's options. A row group is in memory while it is written, including raw bytes."""
_COMMIT_INFO = {"galatea": "compact"}

Step = Callable[[int, int, str], None]


@dataclass(frozen=True)
class Compacted:
    """The result for one table. `removed`: deleted files that earlier compactions had replaced."""

    table: str
    files_before: int
    files_after: int
    bytes_before: int
    bytes_after: int
    removed: int


@dataclass(frozen=True)
class Compaction:
    """How to compact.

    `renew`: called before each portion; raises if another process compacts. `vacuum_days`, at least 7: how long
    replaced files are kept, because a rebuild reads the version that it planned with.
    """

    renew: Callable[[], None]
    vacuum_days: int
    min_small_files: int = MIN_SMALL_FILES
    portion_bytes: int = PORTION_BYTES

    def run(self, path: str, step: Step) -> Compacted:
        """Compact one table.

        Args:
            path: The folder or URI of the table.
            step: Called with the portions that are done, of how many, and the name of the table.

        Raises:
            MasterFileLostError: A file cannot be read. Earlier commits stay.
            OperatorError: The name of the folder hides the log from delta-rs.
        """
        table = open_table(path)
        if not table.history(1):
            message = f"the log of `{path}` cannot be listed because of the folder's name"
            raise OperatorError(message, do="move the master dataset to a folder without # [ ] * ? in its name")
        name = path.rpartition("/")[2]
        before = _files(table)
        portions = list(self._portions(table))
        for number, values in enumerate(portions):
            step(number, len(portions), name)
            self.renew()
            compact_partitions(open_table(path), values)
        self.renew()
        hours = 24 * self.vacuum_days
        removed = open_table(path).vacuum(
            retention_hours=hours,
            dry_run=False,
            full=True,
            post_commithook_properties=PostCommitHookProperties(create_checkpoint=False),  # it would not be flushed
            commit_properties=CommitProperties(custom_metadata=_COMMIT_INFO),
        )
        _truncate_log(path)
        step(len(portions), len(portions), name)
        after = _files(open_table(path))
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
        """Groups of partitions with several small files, one group per commit; none whose rows are too large."""
        columns = table.metadata().partition_columns
        if not columns:
            return
        [column] = columns
        small: dict[str, list[int]] = {}
        paths: dict[str, list[str]] = {}
        for each in _files(table):
            value = str(each[f"partition.{column}"])
            paths.setdefault(value, []).append(unquote(each["path"]))
            if each["size_bytes"] < TARGET_BYTES // 2:
                small.setdefault(value, []).append(each["size_bytes"])
        portion: list[str] = []
        size = 0
        for value in sorted(value for value, sizes in small.items() if len(sizes) >= self.min_small_files):
            if (most := heaviest_rows(table, paths[value])) > MOST_BYTES_AT_ONCE:
                left = {"table": path_of(table).rpartition("/")[2], column: value, "bytes_at_once": most}
                log.info("master.not_compacted", **left)
                continue
            portion.append(value)
            size += sum(small[value])
            if size >= self.portion_bytes:
                yield portion
                portion, size = [], 0
        if portion:
            yield portion


def heaviest_rows(table: DeltaTable, paths: Collection[str]) -> int:
    """The uncompressed bytes that `ROWS_AT_ONCE` rows of these files may have, as their footers say."""
    files, root = filesystem(path_of(table))
    groups: list[tuple[int, int]] = []
    with report_lost_files(table):
        for path in paths:
            with files.open_input_file(f"{root}/{path}") as file:
                footer = parquet.read_metadata(file)
            each = (footer.row_group(number) for number in range(footer.num_row_groups))
            groups += [(group.num_rows, group.total_byte_size) for group in each if group.num_rows]
    left, size = ROWS_AT_ONCE, 0.0
    for rows, of_rows in sorted(groups, key=lambda group: group[1] / group[0], reverse=True):
        size += of_rows * min(1.0, left / rows)
        left -= min(left, rows)
    return round(size)


def compact_partitions(table: DeltaTable, partitions: Collection[str]) -> None:
    """Rewrite the files of these partitions in one commit, as they are in the loaded version."""
    [column] = table.metadata().partition_columns
    path = path_of(table)
    with (
        report_lost_files(table),
        commit_intent(path) as mark,
        committed_once(path, table.version(), REWRITES, {**_COMMIT_INFO, MARK: mark}) as properties,
    ):
        table.optimize.compact(
            partition_filters=[(column, "in", list(partitions))],
            target_size=TARGET_BYTES,
            max_concurrent_tasks=_PARALLEL_TASKS,
            writer_properties=_LIKE_ARCHIVE,
            commit_properties=properties,
        )


def _truncate_log(path: str) -> None:
    """Delete log entries beyond the retention, once the checkpoint that replaces them is on the disk."""
    table = open_table(path)
    table.create_checkpoint()
    fsync_checkpoint(path, table.version())
    table.cleanup_metadata()


def _files(table: DeltaTable) -> list[dict[str, Any]]:
    files: list[dict[str, Any]] = pa.table(table.get_add_actions(flatten=True)).to_pylist()
    return files
