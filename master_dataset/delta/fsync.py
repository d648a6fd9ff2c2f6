"""Flush the files of Delta tables and checkpoints to the disk before another process relies on them.

delta-rs, Arrow and Spark close their files and leave them to the operating system, which writes them within half a
minute. A power cut before that could leave an empty commit, although the position says that its events are archived.

Spark keeps a checksum file (`.name.crc`) beside each file of a checkpoint, and releases that wrote tables by Spark have
left some beside data files. It refuses to read a file that does not match its checksum file, so both are flushed
together. Format of Hadoop's ChecksumFileSystem: `crc`, a zero byte, the bytes per
chunk, then the CRC-32 of each chunk, all big-endian.
"""

import os
import struct
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from zlib import crc32

from master_dataset.delta.history import LAST_CHECKPOINT, MARK, Commit, DeltaHistory

_HEAD = struct.Struct(">4sI")
_MAGIC = b"crc\0"


def fsync_commit(table: str, mark: str) -> None:
    """Flush the newest commit that carries the mark, if there is one, and a checkpoint of the log that came with it.

    Does nothing for a table on an object store.
    """
    history = DeltaHistory.of(table)
    if commit := history.marked(mark):
        _fsync(history, commit)


def fsync_commits(table: str, query: str, since: int) -> None:
    """Flush the newest commits of this micro-batch, and of later ones of its query, as `fsync_commit`."""
    history = DeltaHistory.of(table)
    for path in history.newest_first():
        commit = Commit.read(path)
        committer, _, number = str(commit.info.get(MARK, "")).partition(" ")
        if committer == query and number.isdecimal():
            if int(number) < since:
                return
            _fsync(history, commit)


def _fsync(history: DeltaHistory, commit: Commit) -> None:
    checkpoint = history.checkpoints(commit.number)
    hint = [history.log / LAST_CHECKPOINT] if checkpoint else []
    added = [history.folder / name for name in commit.added]
    fsync_files([*added, commit.path, *checkpoint, *hint], history.folder)


def fsync_first_commit(table: str) -> None:
    """Flush the commit that created the table: without it no other one can be read."""
    history = DeltaHistory.of(table)
    if (first := history.path(0)).exists():
        fsync_files([first], history.folder)


def fsync_checkpoint(table: str, number: int) -> None:
    """Flush the checkpoint of that version, before older log entries are deleted."""
    history = DeltaHistory.of(table)
    if checkpoint := history.checkpoints(number):
        fsync_files([*checkpoint, history.log / LAST_CHECKPOINT], history.folder)


def fsync_files(files: Sequence[Path], root: Path) -> None:
    """Flush files with their checksum files, then every folder on the way up to the parent of `root`."""
    folders = dict.fromkeys(
        parent
        for file in files
        for parent in file.parents
        if parent == root.parent or root in (parent, *parent.parents)
    )
    for file in files:
        fsync_path(file)
        with suppress(FileNotFoundError):  # few have one, and incomplete ones are removed at a start
            fsync_path(checksum_file(file))
    for folder in folders:
        fsync_path(folder)


def fsync_path(path: Path) -> None:
    """Flush one file, or the names in one folder."""
    opened = os.open(path, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def checksum_file(file: Path) -> Path:
    """Return where Spark keeps the checksums of a file that it wrote."""
    return file.with_name(f".{file.name}.crc")


def matches_checksum(file: Path) -> bool | None:
    """Return whether a file matches its checksum file; None if that is missing or incomplete itself."""
    try:
        stored = checksum_file(file).read_bytes()
    except FileNotFoundError:
        return None
    if len(stored) < _HEAD.size:
        return None
    magic, chunk = _HEAD.unpack_from(stored)
    size = file.stat().st_size
    if magic != _MAGIC or not chunk or len(stored) != _HEAD.size + 4 * -(-size // chunk):
        return None
    with file.open("rb") as opened:
        found = b"".join(struct.pack(">I", crc32(part)) for part in iter(lambda: opened.read(chunk), b""))
    return found == stored[_HEAD.size :]
