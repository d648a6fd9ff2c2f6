"""Commits that nobody was told of yet: a note of each is on the disk before it is made, until it is there itself.

A micro-batch of the archive has its plan for that. What else commits to a table leaves such a note, so that a power cut
between a commit and its sync leaves nothing that a start does not find.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

from master_dataset.delta_history import DeltaHistory
from master_dataset.synced import sync, sync_files

NOTES = "_untold"


@contextmanager
def told(table: str) -> Iterator[str]:
    """The mark that a commit to this table has to carry; it is on the disk in the end. OSError.

    A table on an object store needs no note.
    """
    mark, notes = uuid4().hex, _notes(table)
    is_local = notes.parent.exists()
    if is_local:
        notes.mkdir(exist_ok=True)
        (notes / mark).touch()
        sync_files([notes / mark], notes.parent)
    yield mark
    sync(table, mark)
    if is_local:
        forget(table, mark)


def untold(table: str) -> list[str]:
    """Marks of commits that may be torn, are under way, or were never made."""
    return sorted(note.name for note in _notes(table).glob("*"))


def forget(table: str, mark: str) -> None:
    """That commit is on the disk, or was taken back. A note that comes again after a power cut does no harm."""
    (_notes(table) / mark).unlink(missing_ok=True)


def _notes(table: str) -> Path:
    return DeltaHistory.of(table).folder / NOTES
