"""Receipts as they were sent, packed into blocks: the rows of the table `receipt_blocks` (ADR 0072)."""

import struct
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import msgspec
import pyarrow as pa

_SIZE = struct.Struct("<Q")
_CODEC = "zstd"


class SentReceipt(NamedTuple):
    """One delivery of a receipt.

    Attributes:
        happened_ms: when the sale happened, in milliseconds since 1970. With `till` and `transaction_id`, it says which
            receipt of its store this is.
        till: the fiscal module.
        transaction_id: the number of the receipt.
        received_us: when the broker received it, in microseconds since 1970.
        value: the bytes that were sent.
    """

    happened_ms: int
    till: str
    transaction_id: str
    received_us: int
    value: bytes

    @property
    def identity(self) -> tuple[int, str, str]:
        """Which receipt of its store it is a delivery of."""
        return self[:3]

    @property
    def precedence(self) -> tuple[int, bytes]:
        """The least among the deliveries of a receipt is shown."""
        return self.received_us, self.value


def pack(columns: Sequence[Sequence[object]]) -> bytes:
    """Deliveries as bytes, always the same for the same deliveries.

    Args:
        columns: A sequence for each attribute of `SentReceipt`, all of one length.
    """
    text = msgspec.msgpack.encode(columns)
    compressed: bytes = pa.compress(text, codec=_CODEC, asbytes=True)
    return _SIZE.pack(len(text)) + compressed


def unpack(block: bytes) -> Iterator[SentReceipt]:
    """The deliveries that `pack` was given."""
    (size,) = _SIZE.unpack_from(block)
    text = pa.decompress(memoryview(block)[_SIZE.size :], decompressed_size=size, codec=_CODEC, asbytes=True)
    return map(SentReceipt._make, zip(*msgspec.msgpack.decode(text), strict=True))
