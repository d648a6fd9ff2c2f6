"""The sums that Spark keeps beside each file that it writes (`.name.crc`); it reads no file that they do not fit.

As Hadoop's ChecksumFileSystem has them: `crc`, a zero, the bytes of a chunk, then CRC-32 of each, all big-endian.
"""

import struct
from pathlib import Path
from zlib import crc32

_HEAD = struct.Struct(">4sI")
_MAGIC = b"crc\0"


def sums_of(file: Path) -> Path:
    """Where Spark keeps those of a file, if it wrote it."""
    return file.with_name(f".{file.name}.crc")


def fits(file: Path) -> bool | None:
    """Whether a file is what its sums say; None if there are none, or not all."""
    try:
        kept = sums_of(file).read_bytes()
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
