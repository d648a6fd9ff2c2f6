"""Append to a Delta table: data files first, then one commit that adds them. The same on a disk and an object store.

delta-rs commits, never Spark: its log entry is a file that must not exist yet, on an object store a PUT with that
condition, so that of several writers each gets a version of its own. Spark's log store for S3 loses commits of another
process (docs/adr/0056-commits-on-object-stores.md).

The answer to a commit may be lost although the commit was made. It carries a random id, and the log entries since are
searched for it before it is tried again. It also carries an application transaction, which a second commit of the same
application conflicts with: so the library cannot repeat a commit that came through, either.
"""

import re
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from random import random
from typing import Any, NamedTuple
from uuid import uuid4

import orjson
import pyarrow as pa
import structlog
from deltalake import CommitProperties, DeltaTable, PostCommitHookProperties, Schema, Transaction
from deltalake.exceptions import CommitFailedError, DeltaError
from deltalake.transaction import AddAction, RemoveAction

from master_dataset.delta.commit_intents import commit_intent
from master_dataset.delta.data_files import DATA_FILES, STATISTICS, FileWriter, TableLayout
from master_dataset.delta.history import MARK
from master_dataset.errors import CheckpointInUseError, GalateaError, OperatorError
from master_dataset.storage import open_table, read_bytes

log = structlog.get_logger()

ATTEMPT = "galateaCommit"
"""Where a commit carries what tells it from all others."""
_MAX_ATTEMPTS = 1000
"""Writers of one application take turns: only the one that gets the version goes on."""
_MAX_FAILURES = 4
"""Of the storage itself, in a row."""
_PAUSE_SECONDS = 0.2


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
        """Raise CheckpointInUseError if the table has a number that only another process can have committed."""
        if not self.is_alone or known is None or known < self.number or (known == self.number and self.repeats):
            return
        message = f"another process commits to `{table}` as `{self.application}`: it has number {known} already"
        do = "stop the other one; if a checkpoint was put back from an older copy, delete it"
        raise CheckpointInUseError(message, do=do)


APPENDS = Writer("galatea appends", 0, is_alone=False)
"""All small appends."""
REWRITES = Writer("galatea rewrites", 0)
"""Whatever replaces data files or columns: a compaction, an export. One at a time, by a lease."""


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
        CheckpointInUseError: Another process commits as this application.
        OperatorError: The table lacks a column.
        DeltaError: The commit failed; `MasterTables.holds` says whether it came through after all.
        OSError, ObjectStoreUnavailableError, ObjectStoreAccessError: The same.
    """
    failures, attempt_id = 0, uuid4().hex
    actions: list[AddAction | RemoveAction] = [_action(file, layout) for file in files.to_pylist()]
    hooks = PostCommitHookProperties(create_checkpoint=True, cleanup_expired_logs=False)
    opened = open_table(table)
    since, before = opened.version(), opened.transaction_version(writer.application)
    writer.refuse_another(table, before)
    _refuse_other_columns(table, opened, layout)
    for attempt in range(_MAX_ATTEMPTS):
        if attempt:
            opened = open_table(table)  # first: a commit that comes through after this conflicts
            if is_committed(table, since, attempt_id):
                return
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
        OSError: The same.
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


_LOST_RACE = re.compile(r"(?i)concurrent|Failed to commit transaction: \d+$")
"""What delta-rs says if other commits came first: of the same application, or again and again of the same version."""


def _is_conflict(error: Exception) -> bool:
    return isinstance(error, CommitFailedError) and bool(_LOST_RACE.search(str(error)))


def _refuse_other_columns(table: str, opened: DeltaTable, layout: TableLayout) -> None:
    """Raise OperatorError if rows would lose values: delta-rs adds files whatever their columns are."""
    known = {field.name for field in opened.schema().fields}
    if missing := [name for name in layout.schema.names if name not in known]:
        message = f"the table `{table}` lacks the column `{missing[0]}`, which this release writes"
        raise OperatorError(message, do="start the archive of this release, which adds it")
    if (found := opened.metadata().partition_columns) != layout.partition_columns:
        message = f"the table `{table}` is partitioned by {found or 'nothing'}, not by {layout.partition_columns}"
        raise OperatorError(message, do="put the table of this release back from a backup: docs/how-to/backups.md")


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
