"""Commits by others than the archive: a file records each one before it is made, so that a restart can finish it.

A micro-batch of the archive has its plan in Spark's checkpoint. Everything else that commits to a table (compaction,
conflicts, replays) writes an intent first and removes it once the commit is on the disk. After a power cut in between,
the next start finds the intent. It contains the boot id of the machine: only after another boot can its commit be
incomplete.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

from master_dataset.delta.fsync import fsync_commit, fsync_files, fsync_path
from master_dataset.delta.history import DeltaHistory

INTENTS = "_untold"
"""Folder of the intents below a table; the name is part of the layout on disk."""
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


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
    is_local = history.folder.exists()
    if is_local:
        _write_intent(history, mark)
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
    """Return the marks of commits that are in progress or interrupted, and whether the machine has rebooted since."""
    boot_id = _boot_id()
    intents = (DeltaHistory.of(table).folder / INTENTS).glob("*")
    return {intent.name: bool(boot_id) and intent.read_text() != boot_id for intent in sorted(intents)}


def clear_intent(table: str, mark: str) -> None:
    """Remove an intent whose commit is on the disk, or was rolled back.

    The removal is flushed: an intent that reappeared would roll back a good commit.
    """
    folder = DeltaHistory.of(table).folder
    (folder / INTENTS / mark).unlink(missing_ok=True)
    fsync_path(folder / INTENTS)


def _write_intent(history: DeltaHistory, mark: str) -> None:
    intent = history.folder / INTENTS / mark
    intent.parent.mkdir(exist_ok=True)
    intent.write_text(_boot_id())
    fsync_files([intent], history.folder)


def _boot_id() -> str:
    """Empty if the system has none."""
    return _BOOT_ID.read_text() if _BOOT_ID.exists() else ""
