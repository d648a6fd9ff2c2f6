"""Receipts as they were sent, packed into blocks: the rows of the table `receipt_blocks` (ADR 0072)."""

import struct
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from typing import NamedTuple

import msgspec
import pyarrow as pa

_SIZE = struct.Struct("<Q")
_CODEC, _DIGEST_BYTES = "zstd", 16


class SentReceipt(NamedTuple):
    """One delivery of a receipt.

    Attributes:
        happened_ms: when the sale happened, in milliseconds since 1970. With `till` and `transaction_id`, it says which
            receipt of its store this is.
        till: the fiscal module.
        transaction_id: the number of the receipt.
        received_ms: when the broker received it, likewise.
        partition: of the topic; -1 where it is not known.
        offset: in the partition; -1 likewise.
        value: the bytes that were sent.
    """

    happened_ms: int
    till: str
    transaction_id: str
    received_ms: int
    partition: int
    offset: int
    value: bytes

    @property
    def identity(self) -> tuple[int, str, str]:
        """Which receipt of its store it is a delivery of."""
        return self[:3]

    @property
    def precedence(self) -> tuple[int, int, int]:
        """The least among the deliveries of a receipt is shown: the one that counts (R3), unless clocks step back."""
        return self.received_ms, self.partition, self.offset


class Packed(NamedTuple):
    """A block, and a digest of what it contains, which is the same for the same deliveries."""

    digest: bytes
    block: bytes


def pack(columns: Sequence[Sequence[object]]) -> Packed:
    """Deliveries as bytes.

    Args:
        columns: A sequence for each attribute of `SentReceipt`, all of one length.
    """
    content = msgspec.msgpack.encode(columns)
    compressed: bytes = pa.compress(content, codec=_CODEC, asbytes=True)
    digest = blake2b(content, digest_size=_DIGEST_BYTES).digest()
    return Packed(digest, _SIZE.pack(len(content)) + compressed)


def unpack(block: bytes) -> Iterator[SentReceipt]:
    """The deliveries that `pack` was given."""
    (size,) = _SIZE.unpack_from(block)
    content = pa.decompress(memoryview(block)[_SIZE.size :], decompressed_size=size, codec=_CODEC, asbytes=True)
    return map(SentReceipt._make, zip(*msgspec.msgpack.decode(content), strict=True))
