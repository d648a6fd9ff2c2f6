"""Commits that nobody was told of yet: a note of each is on the disk before it is made, until it is there itself.

A micro-batch of the archive has its plan for that. What else commits to a table leaves such a note, so that a power cut
between a commit and its sync leaves nothing that a start does not find. A note says in which life of the machine it was
made: only in a later one can its commit be torn.

A commit of a few rows that needs no Spark, on the disk when it is made.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

import pyarrow as pa
from deltalake import CommitProperties, write_deltalake

from master_dataset.delta.fsync import fsync_commit, fsync_files, fsync_path
from master_dataset.delta.history import MARK, DeltaHistory

NOTES = "_untold"
_LIFE = Path("/proc/sys/kernel/random/boot_id")


@contextmanager
def commit_intent(table: str) -> Iterator[str]:
    """The mark that a commit to this table has to carry; it is on the disk in the end. OSError.

    A table on an object store needs no note.
    """
    mark, history = uuid4().hex, DeltaHistory.of(table)
    is_local = history.folder.exists()
    if is_local:
        _note(history, mark)
    try:
        yield mark
    except BaseException:
        if is_local and history.marked(mark) is None:
            clear_intent(table, mark)
        raise
    fsync_commit(table, mark)
    if is_local:
        clear_intent(table, mark)


def pending_intents(table: str) -> dict[str, bool]:
    """Marks of commits that are under way or were never told of, and whether the machine has lost its power since."""
    life = _life()
    notes = (DeltaHistory.of(table).folder / NOTES).glob("*")
    return {note.name: bool(life) and note.read_text() != life for note in sorted(notes)}


def clear_intent(table: str, mark: str) -> None:
    """That commit is on the disk, or was taken back. Its note may not come again: then it would be taken back."""
    folder = DeltaHistory.of(table).folder
    (folder / NOTES / mark).unlink(missing_ok=True)
    fsync_path(folder / NOTES)


def _note(history: DeltaHistory, mark: str) -> None:
    note = history.folder / NOTES / mark
    note.parent.mkdir(exist_ok=True)
    note.write_text(_life())
    fsync_files([note], history.folder)


def _life() -> str:
    """Of the machine, from one start to the next; empty where nobody says."""
    return _LIFE.read_text() if _LIFE.exists() else ""


MOST_RETRIES = 1000
"""Of several who append at once one is first, and each of the others tries the next number."""


def append(table: str, rows: pa.Table) -> None:
    """Append them to the table. DeltaError, OSError."""
    with commit_intent(table) as mark:
        said = CommitProperties({MARK: mark}, max_commit_retries=MOST_RETRIES)
        write_deltalake(table, rows, mode="append", commit_properties=said)
