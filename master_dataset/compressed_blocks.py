"""Compressed bytes for rows of Cassandra: the length of the content (8 bytes, little-endian), then zstd."""

import struct

import pyarrow as pa

_SIZE = struct.Struct("<Q")
_CODEC = "zstd"


def compress(content: "bytes | pa.Buffer") -> bytes:
    """The block of this content."""
    compressed: bytes = pa.compress(content, codec=_CODEC, asbytes=True)
    return _SIZE.pack(len(content)) + compressed


def decompress(block: bytes) -> pa.Buffer:
    """The content of a block. ArrowInvalid or OSError if these bytes are none."""
    (size,) = _SIZE.unpack_from(block)
    return pa.decompress(memoryview(block)[_SIZE.size :], decompressed_size=size, codec=_CODEC)


def pack(table: pa.Table) -> bytes:
    """The block of a table: an Arrow stream, compressed as a whole.

    Compressed column by column, as Arrow would, small tables take ten times longer to read.
    """
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return compress(sink.getvalue())


def unpack(block: bytes) -> pa.Table:
    """The table that `pack` was given. ArrowInvalid or OSError if these bytes are none."""
    return pa.ipc.open_stream(decompress(block)).read_all()
