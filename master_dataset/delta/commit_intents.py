"""Commits by others than the archive: a file records each one before it is made, so that a restart can finish it.

A micro-batch of the archive has its plan in Spark's checkpoint. Everything else that commits to a table (compaction,
conflicts, replays) writes an intent first and removes it once the commit is on the disk. After a power cut in between,
the next start finds the intent. It contains the boot id of the machine: only after another boot can its commit be
incomplete. While a commit is in progress, its intent is locked: on a folder that several machines share, another boot
may be that of another machine.
"""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO
from uuid import uuid4

from master_dataset.delta.fsync import fsync_commit, fsync_files, fsync_path
from master_dataset.delta.history import DeltaHistory
from master_dataset.machine import boot_id

INTENTS = "_untold"
"""Folder of the intents below a table; the name is part of the layout on disk."""
_UNLOCKED = ".part"
"""The end of the name of an intent that is not locked yet."""


@contextmanager
def commit_intent(table: str) -> Iterator[str]:
    """Record the intent to commit, and flush the commit to the disk at the end.

    A table on an object store needs no intent.

    Args:
        table: URI of the table.

    Yields:
        The mark that the commit has to carry in its `userMetadata`.

    Raises:
        OSError: The intent or the commit cannot be written.
    """
    mark, history = uuid4().hex, DeltaHistory.of(table)
    if not history.folder.exists():
        yield mark
        return
    with _locked_intent(history, mark):
        try:
            yield mark
        except BaseException:
            if history.marked(mark) is None:
                clear_intent(table, mark)
            raise
        fsync_commit(table, mark)
        clear_intent(table, mark)


def pending_intents(table: str) -> dict[str, bool]:
    """Return the marks of commits that are in progress or interrupted, and whether a reboot has interrupted them."""
    intents = sorted((DeltaHistory.of(table).folder / INTENTS).glob("*"))
    return {intent.name: _has_rebooted(intent) for intent in intents if intent.suffix != _UNLOCKED}


def clear_intent(table: str, mark: str) -> None:
    """Remove an intent whose commit is on the disk, or was rolled back.

    The removal is flushed: an intent that reappeared would roll back a good commit.
    """
    folder = DeltaHistory.of(table).folder
    (folder / INTENTS / mark).unlink(missing_ok=True)
    fsync_path(folder / INTENTS)


@contextmanager
def _locked_intent(history: DeltaHistory, mark: str) -> Iterator[None]:
    """Nobody ever sees it unlocked."""
    intent = history.folder / INTENTS / mark
    intent.parent.mkdir(exist_ok=True)
    part = intent.with_name(f"{mark}{_UNLOCKED}")
    with part.open("w") as file:
        with suppress(OSError):  # a file system without locks: then one machine alone may use it
            fcntl.flock(file, fcntl.LOCK_EX)
        file.write(f"{boot_id()}\n")  # with the line end that former releases compare, too
        file.flush()
        part.replace(intent)
        fsync_files([intent], history.folder)
        yield


def _has_rebooted(intent: Path) -> bool:
    try:
        with intent.open() as file:
            return file.read().strip() != boot_id() != "" and not _is_locked(file)
    except FileNotFoundError:
        return False  # the commit has just ended


def _is_locked(file: IO[str]) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False  # a file system without locks
    return False
