"""Append to a Delta table: data files first, then one commit that adds them. The same on a disk and an object store.

delta-rs commits, never Spark: its log entry is a file that must not exist yet, on an object store a PUT with that
condition, so that of several writers each gets a version of its own. Spark's log store for S3 loses commits of another
process (docs/adr/0056-commits-on-object-stores.md).

The answer to a commit may be lost although the commit was made. It carries a random id, and the log entries since are
searched for it before it is tried again. It also carries an application transaction, which a second commit of the same
application conflicts with: so the library cannot repeat a commit that came through, either.
"""

import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from random import random
from typing import TYPE_CHECKING, Any, NamedTuple, Self
from uuid import uuid4

import orjson
import pyarrow as pa
import pyarrow.compute as pc
import structlog
from deltalake import CommitProperties, PostCommitHookProperties, Schema, Transaction
from deltalake.exceptions import CommitFailedError, DeltaError
from deltalake.transaction import AddAction, RemoveAction
from pyarrow.fs import LocalFileSystem
from pyarrow.parquet import ParquetWriter

from master_dataset.delta.commit_intents import commit_intent
from master_dataset.delta.history import MARK
from master_dataset.errors import GalateaError, OperatorError
from master_dataset.object_store import ObjectStore, is_remote, object_store, use
from master_dataset.storage import filesystem, open_table, read_bytes, region

if TYPE_CHECKING:
    from datetime import datetime

log = structlog.get_logger()

ATTEMPT = "galateaCommit"
"""Where a commit carries what tells it from all others."""
STATISTICS = "received_at"
"""The one column with statistics: what readers filter by."""
DATA_FILES = pa.schema(
    [
        ("path", pa.string()),
        ("size", pa.int64()),
        ("partition", pa.string()),
        ("rows", pa.int64()),
        ("oldest", pa.timestamp("us", tz="UTC")),
        ("newest", pa.timestamp("us", tz="UTC")),
    ]
)
"""One row for each data file: relative path, bytes, value of the partition column, and bounds of STATISTICS."""
_GROUP_ROWS, _GROUP_BYTES = 100_000, 64 * 1024 * 1024
"""Of a row group, which is in memory while it is written, with raw bytes."""
_MAX_ATTEMPTS = 1000
"""Writers of one application take turns: only the one that gets the version goes on."""
_MAX_FAILURES = 4
"""Of the storage itself, in a row."""
_PAUSE_SECONDS = 0.2


class TableLayout(NamedTuple):
    """The columns of a table, and the one that it is partitioned by; empty for none, as earlier releases made some."""

    schema: pa.Schema
    partitioned_by: str

    @property
    def partition_columns(self) -> list[str]:
        """As Delta Lake says it."""
        return [self.partitioned_by] if self.partitioned_by else []

    def as_made(self, table: str) -> Self:
        """The same with the partitioning that the table has."""
        return self._replace(partitioned_by="".join(open_table(table).metadata().partition_columns))


class Writer(NamedTuple):
    """Who commits: an application and its own number, which the table keeps (Delta's `txn`).

    `is_alone`: no other process may commit as this application, and numbers rise. Else it is one of many that take
    turns. `repeats`: a process that crashed may have committed this number, and this commit has what is missing.
    """

    application: str
    number: int
    is_alone: bool = True
    repeats: bool = False

    def refuse_another(self, table: str, known: int | None) -> None:
        """Raise OperatorError if the table has a number that only another process can have committed."""
        if not self.is_alone or known is None or known < self.number or (known == self.number and self.repeats):
            return
        message = f"another process commits to `{table}` as `{self.application}`: it has number {known} already"
        do = "stop the other one; if a checkpoint was put back from an older copy, delete it"
        raise OperatorError(message, do=do)


APPENDS = Writer("galatea appends", 0, is_alone=False)
"""All small appends."""
REWRITES = Writer("galatea rewrites", 0)
"""Whatever replaces data files or columns: a compaction, an export. One at a time, by a lease."""


# Data files


@dataclass(frozen=True)
class FileWriter:
    """Writes rows as data files of a table. Picklable: Spark's tasks write with it, each its own files.

    Files that no commit adds, for example of a task that failed, are deleted by a later compaction.
    """

    table: str
    layout: TableLayout
    store: ObjectStore

    @classmethod
    def of(cls, table: str, layout: TableLayout) -> "FileWriter":
        """Create the writer for a table that this process can reach. Workers may have no region of their own."""
        store = object_store()
        return cls(table, layout, replace(store, region=region()) if is_remote(table) else store)

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Write rows, those of one partition after each other. Yields the files as rows of DATA_FILES."""
        use(self.store)  # Spark's worker is another process
        file: _DataFile | None = None
        for value, rows in self._runs(batches):
            if file is None or file.value != value:
                if file is not None:
                    yield file.close()
                file = _DataFile(self, value)
            file.append(rows)
        if file is not None:
            yield file.close()

    def _runs(self, batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[str, pa.RecordBatch]]:
        """Cut batches where the partition changes."""
        for batch in batches:
            start = 0
            if batch.num_rows and not self.layout.partitioned_by:
                yield "", batch
                continue
            if batch[self.layout.partitioned_by].null_count:
                raise ValueError(f"a row for `{self.table}` has no {self.layout.partitioned_by}")
            runs = pc.run_end_encode(batch[self.layout.partitioned_by]) if batch.num_rows else None
            for value, end in zip(runs.values, runs.run_ends, strict=True) if runs is not None else ():
                yield str(value.as_py()), batch.slice(start, end.as_py() - start)
                start = end.as_py()


class _DataFile:
    """One data file while it is written."""

    def __init__(self, of: FileWriter, value: str) -> None:
        by = of.layout.partition_columns
        self.value = value
        self._path = "/".join([*(f"{name}={value}" for name in by), f"part-{uuid4()}.zstd.parquet"])
        self._schema = pa.schema([field for field in of.layout.schema if field.name not in by])
        files, place = filesystem(f"{of.table}/{self._path}")
        if isinstance(files, LocalFileSystem):
            files.create_dir(place.rpartition("/")[0])
        self._sink = files.open_output_stream(place)
        self._writer = ParquetWriter(
            self._sink, self._schema, compression="zstd", compression_level=3, write_page_checksum=True
        )
        self._kept: list[pa.RecordBatch] = []
        self._rows = self._kept_rows = self._kept_bytes = 0
        self._bounds: list[datetime] = []

    def append(self, rows: pa.RecordBatch) -> None:
        self._kept.append(rows.select(self._schema.names).cast(self._schema))
        self._kept_rows += rows.num_rows
        self._kept_bytes += rows.nbytes
        if STATISTICS in self._schema.names:
            found = pc.min_max(rows[STATISTICS]).as_py()
            self._bounds = sorted(each for each in (*self._bounds, *found.values()) if each is not None)
            self._bounds = self._bounds[:1] + self._bounds[-1:]
        if self._kept_rows >= _GROUP_ROWS or self._kept_bytes >= _GROUP_BYTES:
            self._flush()

    def close(self) -> pa.RecordBatch:
        """Finish it. Returns its row of DATA_FILES."""
        self._flush()
        self._writer.close()
        size = self._sink.tell()
        self._sink.close()
        oldest, newest = self._bounds or (None, None)
        row = {"path": self._path, "size": size, "partition": self.value, "rows": self._rows}
        return pa.RecordBatch.from_pylist([{**row, "oldest": oldest, "newest": newest}], DATA_FILES)

    def _flush(self) -> None:
        if self._kept:
            self._writer.write_table(pa.Table.from_batches(self._kept))
        self._rows += self._kept_rows
        self._kept, self._kept_rows, self._kept_bytes = [], 0, 0


# Commits


def append(table: str, rows: pa.Table, layout: TableLayout) -> None:
    """Append a few rows without Spark, in one commit that is on the disk when this returns.

    Raises:
        DeltaError: The table cannot be written.
        OSError: The disk or the object store cannot be written.
    """
    layout = layout.as_made(table)
    ordered = rows.sort_by(layout.partitioned_by) if layout.partitioned_by else rows
    files = pa.Table.from_batches(FileWriter.of(table, layout)(ordered.to_batches()), DATA_FILES)
    with commit_intent(table) as mark:
        commit_files(table, layout, files, APPENDS, mark)


def commit_files(table: str, layout: TableLayout, files: pa.Table, writer: Writer, mark: str) -> None:
    """Add data files to a table, in one commit, exactly once.

    All attempts carry one id, so that one whose answer was lost is found however late it came through.

    Args:
        table: URI of the table.
        layout: Its columns and partitioning.
        files: Rows of DATA_FILES.
        writer: Who commits.
        mark: What the commit carries for `fsync_commit` and for `is_marked`.

    Raises:
        OperatorError: Another process commits as this application.
        DeltaError: The commit failed; `MasterTables.holds` says whether it came through after all.
        OSError: Likewise. ObjectStoreUnavailableError, ObjectStoreAccessError: Likewise.
    """
    failures, attempt_id = 0, uuid4().hex
    actions: list[AddAction | RemoveAction] = [_action(file, layout) for file in files.to_pylist()]
    hooks = PostCommitHookProperties(create_checkpoint=True, cleanup_expired_logs=False)
    opened = open_table(table)
    since, before = opened.version(), opened.transaction_version(writer.application)
    writer.refuse_another(table, before)
    for attempt in range(_MAX_ATTEMPTS):
        if attempt:
            if is_committed(table, since, attempt_id):
                return
            opened = open_table(table)
            if (known := opened.transaction_version(writer.application)) != before:
                writer.refuse_another(table, known)
        try:
            with committed_once(table, since, writer, {MARK: mark}, attempt_id) as properties:
                opened.create_write_transaction(
                    actions,
                    "append",
                    Schema.from_arrow(layout.schema),
                    layout.partition_columns,
                    commit_properties=properties,
                    post_commithook_properties=hooks,
                )
        except (DeltaError, OSError) as error:
            failures = 0 if _is_conflict(error) else failures + 1
            if failures >= _MAX_FAILURES:
                raise
            time.sleep(_PAUSE_SECONDS * (failures + random()))  # noqa: S311 - writers that lost a race spread
        else:
            return
    raise CommitFailedError(f"{_MAX_ATTEMPTS} other commits to `{table}` came first")


@contextmanager
def committed_once(
    table: str, since: int, writer: Writer, info: Mapping[str, str], attempt_id: str = ""
) -> Iterator[CommitProperties]:
    """Make one commit inside the block, and find out whether it was made if there is an error.

    Args:
        table: URI of the table.
        since: The version that the commit is based on.
        writer: Who commits. A second append of the same application that is based on the same version fails.
        info: What else the commit carries.
        attempt_id: What tells it from all others; empty for a new one.

    Yields:
        The properties that the commit must have.

    Raises:
        DeltaError: The commit was not made, or it is unknown because the log cannot be read.
        OSError: Likewise.
    """
    attempt_id = attempt_id or uuid4().hex
    transaction = Transaction(writer.application, writer.number)
    try:
        yield CommitProperties({**info, ATTEMPT: attempt_id}, app_transactions=[transaction])
    except (DeltaError, OSError) as error:
        try:
            came_through = is_committed(table, since, attempt_id)
        except (OSError, GalateaError) as unknown:
            raise error from unknown
        if not came_through:
            raise
        log.info("table.commit_answer_lost", table=table, error=str(error))


def _is_conflict(error: Exception) -> bool:
    """Whether other commits came first: of the same application, or again and again of the same version."""
    return isinstance(error, CommitFailedError) and any(part in str(error) for part in ("oncurrent", "attempts"))


def is_committed(table: str, since: int, attempt_id: str) -> bool:
    """Whether a log entry after the version `since` carries this id."""
    number = since + 1
    while True:
        try:
            entry = read_bytes(f"{table}/_delta_log/{number:020}.json")
        except FileNotFoundError:
            return False
        if attempt_id.encode() in entry:
            return True
        number += 1


def is_marked(table: str, mark: str, newest: int) -> bool:
    """Whether one of the newest commits carries this mark."""
    return any(each.get(MARK) == mark for each in open_table(table).history(newest))


def _action(file: Mapping[str, Any], layout: TableLayout) -> AddAction:
    statistics: dict[str, Any] = {"numRecords": file["rows"]}
    for name, bound in (("minValues", file["oldest"]), ("maxValues", file["newest"])):
        if bound is not None:
            statistics[name] = {STATISTICS: f"{bound:%Y-%m-%dT%H:%M:%S.%f}Z"}
    values: dict[str, str | None] = dict.fromkeys(layout.partition_columns, file["partition"])
    now_ms = time.time_ns() // 1_000_000
    return AddAction(file["path"], file["size"], values, now_ms, True, orjson.dumps(statistics).decode())  # noqa: FBT003 - delta-rs takes it so
