"""What is told as kept is on the disk: the files of a commit, written down to it where the table lies in a folder.

Spark closes its files and leaves them to the system, which writes them within half a minute; a power cut before that
would leave an empty commit behind a position that says that its events are kept.

Beside each file Spark keeps its sums, and reads no file that they do not fit: they are a part of it.
"""

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from master_dataset.delta.checksum_files import sums_of
from master_dataset.delta.history import LAST_CHECKPOINT, DeltaHistory


def sync(table: str, mark: str) -> None:
    """The newest commit that carries the mark, if one does. A table on an object store is on its disks already."""
    history = DeltaHistory.of(table)
    if commit := history.marked(mark):
        sync_files([*(history.folder / name for name in commit.added), commit.path], history.folder)


def sync_checkpoint(table: str, number: int) -> None:
    """The checkpoint of that commit, before older lines are taken away."""
    history = DeltaHistory.of(table)
    if checkpoint := history.checkpoints(number):
        sync_files([*checkpoint, history.log / LAST_CHECKPOINT], history.folder)


def sync_beginning(table: str) -> None:
    """The commit that has made the table: without it no other one can be read."""
    history = DeltaHistory.of(table)
    if (first := history.path(0)).exists():
        sync_files([first], history.folder)


def sync_files(files: Sequence[Path], root: Path) -> None:
    """Files below a folder with their sums, then each folder that names one, up to the parent of `root`."""
    folders = dict.fromkeys(
        place for file in files for place in file.parents if place == root.parent or root in (place, *place.parents)
    )
    for file in files:
        sync_one(file)
        with suppress(FileNotFoundError):  # few have any, and torn ones are taken away at a start
            sync_one(sums_of(file))
    for folder in folders:
        sync_one(folder)


def sync_one(path: Path) -> None:
    """A file, or which names a folder has."""
    opened = os.open(path, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
