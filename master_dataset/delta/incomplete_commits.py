"""What a power cut has left of a table that lies in a folder: commits that nobody was told of are taken back.

Only the commit of a micro-batch that comes again can be torn, and one that a note is left of (`untold.py`), as every
other one was synced before anybody was told. Its line may be cut short, or name files that are. It is taken back before
an engine reads the table. The micro-batch commits again, as does who asked for something else. A micro-batch may have
been told of without being done: its commit stays if it is whole. What a note is left of was never told of.
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
END_OF_PARQUET, END_OF_NAME = b"PAR1", ".parquet"
_NUMBER = re.compile(r"^\.?(\d{20})\.")


def drop_incomplete_creation(table: str) -> None:
    """Forget a table of which nothing but the name is left, so that it is made anew."""
    history = DeltaHistory.of(table)
    commits = list(history.log.glob("*.json"))
    if commits and all(map(_is_torn, commits)):  # one that is whole ends it
        shutil.rmtree(history.log)
        log.warning("table.torn", table=table, taken_back="all of it")


def roll_back_incomplete(table: str, unfinished: Collection[str] = ()) -> None:
    """Of a table, before an engine has read it: torn lines, checkpoints, and the commits that nobody was told of.

    `unfinished`: the marks of micro-batches that come again. One of them may have been told of: it is whole then.
    """
    drop_incomplete_creation(table)
    history = DeltaHistory.of(table)
    _drop_torn_checkpoints(history)
    for path in history.newest_first():
        if _is_torn(path):
            _take_back(history, Commit(path, []))
    for mark in unfinished:
        commit = history.marked(mark)
        if commit and not _is_whole(history, commit):
            _take_back(history, commit)
    for mark, is_lost in pending_intents(table).items():
        commit = history.marked(mark)
        if commit and is_lost and _is_last_word(history, commit):
            _take_back(history, commit)
        elif commit:
            fsync_commit(table, mark)
        if commit or is_lost:  # without one it may be under way
            clear_intent(table, mark)


def _drop_torn_checkpoints(history: DeltaHistory) -> None:
    """Nothing depends on one: lines are taken away only behind one that is on the disk (`compaction.py`)."""
    found = sorted(history.log.glob("[0-9]*.checkpoint*.parquet"))
    for file in found:
        is_newest = file.name[:20] == found[-1].name[:20]
        if not file.stat().st_size or _end_of(file) != END_OF_PARQUET or (is_newest and not _can_be_read(file)):
            _drop(file)
    hint = history.log / LAST_CHECKPOINT
    number = history.hinted()
    if hint.exists() and (number is None or not history.checkpoints(number)):
        _drop(hint)


def _drop(file: Path) -> None:
    file.unlink()
    checksum_file(file).unlink(missing_ok=True)
    log.warning("table.torn", table=str(file.parent.parent), taken_back=file.name)


def _end_of(file: Path) -> bytes:
    with file.open("rb") as opened:
        opened.seek(-min(len(END_OF_PARQUET), file.stat().st_size), os.SEEK_END)
        return opened.read()


def _is_torn(line: Path) -> bool:
    try:
        Commit.read(line)
    except ValueError:
        return True
    return not line.stat().st_size


def _is_whole(history: DeltaHistory, commit: Commit) -> bool:
    """Read to its end, as a disk may have the last block of a file and not the first. It is one micro-batch."""
    files = {history.folder / name: size for name, size in commit.added.items()}
    are_there = all(file.exists() and file.stat().st_size == size for file, size in files.items())
    return are_there and all(map(_can_be_read, files)) and _can_be_read(commit.path)


def _can_be_read(file: Path) -> bool:
    """As its sums say. Where these are torn, which an engine would take for a torn file, they go, and its pages say."""
    if (said := matches_checksum(file)) is not None:
        return said
    checksum_file(file).unlink(missing_ok=True)
    if file.suffix != END_OF_NAME:
        return True  # a line that was read
    try:
        for _ in ParquetFile(file, page_checksum_verification=True).iter_batches():
            pass
    except (OSError, pa.ArrowInvalid):
        return False
    return True


def _is_last_word(history: DeltaHistory, commit: Commit) -> bool:
    """Whether the table can do without it: nobody has built on what it added, and what it replaced is there."""
    later = (Commit.read(path) for path in history.newest_first() if int(path.stem) > commit.number)
    is_used = any(each.removed & commit.added.keys() for each in later)
    return not is_used and all((history.folder / name).exists() for name in commit.removed)


def _take_back(history: DeltaHistory, commit: Commit) -> None:
    """A commit that has added nothing stands in its place: numbers have no gap. What was worked out from it goes first.

    So whoever is ended in between finds the commit again.
    """
    for file in history.log.iterdir():
        found = _NUMBER.match(file.name)
        is_worked_out = ".crc" in file.name or ".checkpoint" in file.name
        if found and is_worked_out and int(found[1]) >= commit.number:
            file.unlink()
    for file in (history.log / LAST_CHECKPOINT, checksum_file(history.log / LAST_CHECKPOINT)):
        file.unlink(missing_ok=True)  # engines look for one themselves
    fsync_path(history.log)
    info = {name: value for name, value in commit.info.items() if name != MARK} | {"operation": "TAKEN BACK"}
    part = commit.path.with_suffix(".part")
    part.write_bytes(orjson.dumps({"commitInfo": info}) + b"\n")
    part.replace(commit.path)
    fsync_files([commit.path], history.folder)
    log.warning("table.torn", table=str(history.folder), taken_back=commit.path.name)
