"""The sums that Spark keeps beside each file that it writes (`.name.crc`); it reads no file that they do not fit.

As Hadoop's ChecksumFileSystem has them: `crc`, a zero, the bytes of a chunk, then CRC-32 of each, all big-endian.

What is told as kept is on the disk: the files of a commit, written down to it where the table lies in a folder.

Spark closes its files and leaves them to the system, which writes them within half a minute; a power cut before that
would leave an empty commit behind a position that says that its events are kept.

Beside each file Spark keeps its sums, and reads no file that they do not fit: they are a part of it.
"""

import os
import struct
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from zlib import crc32

from master_dataset.delta.history import LAST_CHECKPOINT, DeltaHistory

_HEAD = struct.Struct(">4sI")
_MAGIC = b"crc\0"


def checksum_file(file: Path) -> Path:
    """Where Spark keeps those of a file, if it wrote it."""
    return file.with_name(f".{file.name}.crc")


def matches_checksum(file: Path) -> bool | None:
    """Whether a file is what its sums say; None if there are none, or not all."""
    try:
        kept = checksum_file(file).read_bytes()
    except FileNotFoundError:
        return None
    if len(kept) < _HEAD.size:
        return None
    magic, chunk = _HEAD.unpack_from(kept)
    size = file.stat().st_size
    if magic != _MAGIC or not chunk or len(kept) != _HEAD.size + 4 * -(-size // chunk):
        return None
    with file.open("rb") as opened:
        found = b"".join(struct.pack(">I", crc32(part)) for part in iter(lambda: opened.read(chunk), b""))
    return found == kept[_HEAD.size :]


def fsync_commit(table: str, mark: str) -> None:
    """The newest commit that carries the mark, if one does. A table on an object store is on its disks already."""
    history = DeltaHistory.of(table)
    if commit := history.marked(mark):
        fsync_files([*(history.folder / name for name in commit.added), commit.path], history.folder)


def fsync_checkpoint(table: str, number: int) -> None:
    """The checkpoint of that commit, before older lines are taken away."""
    history = DeltaHistory.of(table)
    if checkpoint := history.checkpoints(number):
        fsync_files([*checkpoint, history.log / LAST_CHECKPOINT], history.folder)


def fsync_first_commit(table: str) -> None:
    """The commit that has made the table: without it no other one can be read."""
    history = DeltaHistory.of(table)
    if (first := history.path(0)).exists():
        fsync_files([first], history.folder)


def fsync_files(files: Sequence[Path], root: Path) -> None:
    """Files below a folder with their sums, then each folder that names one, up to the parent of `root`."""
    folders = dict.fromkeys(
        place for file in files for place in file.parents if place == root.parent or root in (place, *place.parents)
    )
    for file in files:
        fsync_path(file)
        with suppress(FileNotFoundError):  # few have any, and torn ones are taken away at a start
            fsync_path(checksum_file(file))
    for folder in folders:
        fsync_path(folder)


def fsync_path(path: Path) -> None:
    """A file, or which names a folder has."""
    opened = os.open(path, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
