"""Receipts as they were sent, packed into blocks: the rows of the table `receipt_blocks` (ADR 0072)."""

from collections.abc import Iterator, Sequence
from hashlib import blake2b
from typing import NamedTuple

import msgspec

from master_dataset.compressed_blocks import compress, decompress

_DIGEST_BYTES = 16


class SentReceipt(NamedTuple):
    """One delivery of a receipt.

    Attributes:
        happened_ms: when the sale happened, in milliseconds since 1970. With `till` and `transaction_id`, it says which
            receipt of its store this is.
        till: the fiscal module.
        transaction_id: the number of the receipt.
        received_ms: when the broker received it, in milliseconds since 1970.
        partition: of the topic; -1 where it is not known.
        offset: in the partition; -1 where it is not known.
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
    return Packed(blake2b(content, digest_size=_DIGEST_BYTES).digest(), compress(content))


def unpack(block: bytes) -> Iterator[SentReceipt]:
    """The deliveries that `pack` was given."""
    return map(SentReceipt._make, zip(*msgspec.msgpack.decode(decompress(block)), strict=True))
