"""Roll back commits that a power cut left incomplete, before an engine reads the table.

Only two kinds of commits can be incomplete, because all others were flushed before another process relied on them: that
of a micro-batch that Spark will repeat, and one with an intent (`commit_intents.py`). Its log entry may be truncated,
or name files that are. It is replaced by an empty commit, because versions have no gaps. The micro-batch, or the
operation with the intent, is then repeated.

The commit of a micro-batch stays if it is complete, because others may already rely on it. Nothing relies on a commit
that still has an intent.
"""

import os
import re
import shutil
from collections.abc import Collection
from pathlib import Path

import orjson
import pyarrow as pa
import structlog
from pyarrow.parquet import ParquetFile

from master_dataset.delta.commit_intents import clear_intent, pending_intents
from master_dataset.delta.fsync import checksum_file, fsync_commit, fsync_files, fsync_path, matches_checksum
from master_dataset.delta.history import LAST_CHECKPOINT, MARK, Commit, DeltaHistory

log = structlog.get_logger()
PARQUET_MAGIC, PARQUET_SUFFIX = b"PAR1", ".parquet"
_NUMBER = re.compile(r"^\.?(\d{20})\.")


def drop_incomplete_creation(table: str) -> None:
    """Remove the log of a table that has no readable commit, so that the table is created again."""
    history = DeltaHistory.of(table)
    commits = list(history.log.glob("*.json"))
    if commits and all(map(_is_truncated, commits)):
        shutil.rmtree(history.log)
        log.warning("table.rolled_back", table=table, what="all of it")


def roll_back_incomplete(table: str, unfinished: Collection[str] = ()) -> None:
    """Roll back truncated log entries, checkpoints and incomplete commits of one table.

    Args:
        table: URI of the table. Does nothing for one on an object store.
        unfinished: Marks of the micro-batches that Spark will repeat.
    """
    drop_incomplete_creation(table)
    history = DeltaHistory.of(table)
    _drop_incomplete_checkpoints(history)
    for path in history.newest_first():
        if _is_truncated(path):
            _replace_by_empty_commit(history, Commit(path, []))
    _roll_back_marked(history, unfinished)
    _settle_intents(table, history)


def roll_back_marked(table: str, unfinished: Collection[str]) -> None:
    """Roll back those commits of these micro-batches that are incomplete. Other processes may write to the table."""
    _roll_back_marked(DeltaHistory.of(table), unfinished)


def _roll_back_marked(history: DeltaHistory, unfinished: Collection[str]) -> None:
    for mark in unfinished:
        commit = history.marked(mark)
        if commit and not _is_complete(history, commit):
            _replace_by_empty_commit(history, commit)
        elif commit:
            _drop_unflushed_checkpoints(history, commit)


def _settle_intents(table: str, history: DeltaHistory) -> None:
    for mark, has_rebooted in pending_intents(table).items():
        commit = history.marked(mark)
        if commit and has_rebooted and _can_be_removed(history, commit):
            _replace_by_empty_commit(history, commit)
        elif commit:
            if has_rebooted:
                _drop_unflushed_checkpoints(history, commit)
            fsync_commit(table, mark)
        if commit or has_rebooted:  # otherwise it may be in progress
            clear_intent(table, mark)


def _drop_incomplete_checkpoints(history: DeltaHistory) -> None:
    """No data depends on a checkpoint: log entries are deleted only behind one that was flushed (`compaction.py`)."""
    newest = ""  # of the complete ones, which readers begin with
    for file in sorted(history.log.glob("[0-9]*.checkpoint*.parquet"), reverse=True):
        digits = file.name[:20]
        is_used = newest in ("", digits)
        if not file.stat().st_size or _last_bytes(file) != PARQUET_MAGIC or (is_used and not _is_readable(file)):
            _drop(file)
        else:
            newest = newest or digits
    hint = history.log / LAST_CHECKPOINT
    number = history.last_checkpoint()
    if hint.exists() and (number is None or not history.checkpoints(number)):
        _drop(hint)


def _drop_unflushed_checkpoints(history: DeltaHistory, commit: Commit) -> None:
    """Drop checkpoints of a commit that may not have been flushed, and later ones, if the log can replace them.

    Those of delta-rs have no checksums: one with a hole can be readable, and describe another table.
    """
    found = {int(file.name[:20]): file for file in history.log.glob("[0-9]*.checkpoint*.parquet")}
    reached = max((number for number in found if number < commit.number), default=-1)
    suspected = [number for number in found if number >= commit.number and matches_checksum(found[number]) is None]
    if not suspected or not all(history.path(each).exists() for each in range(reached + 1, max(suspected) + 1)):
        return  # a compaction has deleted log entries behind one that it had flushed
    for number in suspected:
        for file in history.checkpoints(number):
            _drop(file)
    hint = history.log / LAST_CHECKPOINT
    if hint.exists() and history.last_checkpoint() in suspected:
        _drop(hint)


def _drop(file: Path) -> None:
    file.unlink()
    checksum_file(file).unlink(missing_ok=True)
    log.warning("table.rolled_back", table=str(file.parent.parent), what=file.name)


def _last_bytes(file: Path) -> bytes:
    with file.open("rb") as opened:
        opened.seek(-min(len(PARQUET_MAGIC), file.stat().st_size), os.SEEK_END)
        return opened.read()


def _is_truncated(line: Path) -> bool:
    try:
        Commit.read(line)
    except ValueError:
        return True
    return not line.stat().st_size


def _is_complete(history: DeltaHistory, commit: Commit) -> bool:
    """Whether all files of one micro-batch are complete.

    They are read completely, because any of their blocks may be missing.
    """
    files = {history.folder / name: size for name, size in commit.added.items()}
    are_there = all(file.exists() and file.stat().st_size == size for file, size in files.items())
    return are_there and all(map(_is_readable, files)) and _is_readable(commit.path)


def _is_readable(file: Path) -> bool:
    """Whether a file matches its checksums, or, without usable ones, can be read to its end.

    An incomplete checksum file is removed, because an engine would refuse the data file for it.
    """
    if (matches := matches_checksum(file)) is not None:
        return matches
    checksum_file(file).unlink(missing_ok=True)
    if file.suffix != PARQUET_SUFFIX:
        return True  # a log entry, which was read already
    try:
        for _ in ParquetFile(file, page_checksum_verification=True).iter_batches():
            pass
    except (OSError, pa.ArrowInvalid):
        return False
    return True


def _can_be_removed(history: DeltaHistory, commit: Commit) -> bool:
    """Whether no later commit uses the files that it added, and the files that it removed still exist."""
    later = (Commit.read(path) for path in history.newest_first() if int(path.stem) > commit.number)
    is_used = any(each.removed & commit.added.keys() for each in later)
    return not is_used and all((history.folder / name).exists() for name in commit.removed)


def _replace_by_empty_commit(history: DeltaHistory, commit: Commit) -> None:
    """Replace the commit by one that adds nothing, after removing everything that was derived from it.

    In this order, so that after a kill in between the commit is found again.
    """
    for file in history.log.iterdir():
        found = _NUMBER.match(file.name)
        is_derived = ".crc" in file.name or ".checkpoint" in file.name
        if found and is_derived and int(found[1]) >= commit.number:
            file.unlink()
    for file in (history.log / LAST_CHECKPOINT, checksum_file(history.log / LAST_CHECKPOINT)):
        file.unlink(missing_ok=True)  # engines search for checkpoints themselves
    fsync_path(history.log)
    info = {name: value for name, value in commit.info.items() if name != MARK} | {"operation": "TAKEN BACK"}
    part = commit.path.with_suffix(".part")
    part.write_bytes(orjson.dumps({"commitInfo": info}) + b"\n")
    part.replace(commit.path)
    fsync_files([commit.path], history.folder)
    log.warning("table.rolled_back", table=str(history.folder), what=commit.path.name)
