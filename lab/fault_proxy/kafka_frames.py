"""As much of Kafka's protocol as a tap needs: where a frame ends, which request it is, and which one it answers.

A frame is its length (int32) and as many bytes. A request begins with api_key int16, version int16 and correlation_id
int32; an answer begins with the correlation_id of its request. All are big-endian.
"""

import struct
from asyncio import IncompleteReadError, StreamReader
from enum import IntEnum
from typing import NamedTuple

_LENGTH, _REQUEST, _CORRELATION = struct.Struct(">i"), struct.Struct(">hhi"), struct.Struct(">i")
_ERROR, _OUTCOME = struct.Struct(">h"), struct.Struct(">hq")
_FLEXIBLE_PRODUCE = 9
"""From this version of Produce on the number of partitions is one byte, before it was four."""
NOT_ENOUGH_REPLICAS = 19


class Api(IntEnum):
    """The requests that can be harmed."""

    PRODUCE = 0
    INIT_PRODUCER_ID = 22
    ADD_PARTITIONS_TO_TXN = 24
    ADD_OFFSETS_TO_TXN = 25
    END_TXN = 26
    TXN_OFFSET_COMMIT = 28


class Head(NamedTuple):
    """How a request begins."""

    api: int
    version: int
    correlation: int


async def read_frame(reader: StreamReader) -> bytes | None:
    """One frame without its length; None at the end of the stream."""
    try:
        (length,) = _LENGTH.unpack(await reader.readexactly(_LENGTH.size))
        return await reader.readexactly(length)
    except IncompleteReadError:
        return None


def framed(frame: bytes) -> bytes:
    """A frame with its length, as it goes over the wire."""
    return _LENGTH.pack(len(frame)) + frame


def head_of(request: bytes) -> Head:
    """How this request begins."""
    return Head(*_REQUEST.unpack_from(request))


def answered(answer: bytes) -> int:
    """The correlation id of the request that this answers."""
    return int(_CORRELATION.unpack_from(answer)[0])


def refusal(answer: bytes, version: int, topic: str, correlation: int) -> bytes:
    """Make of an answer to Produce (of one topic and partition) one that refuses the request with this correlation id.

    The error and the offset stand behind the topic's name, the number of partitions and the partition. ValueError if
    the answer is about another topic.
    """
    name = topic.encode()
    at = answer.index(name) + len(name) + (1 if version >= _FLEXIBLE_PRODUCE else 4) + 4
    changed = bytearray(answer)
    _CORRELATION.pack_into(changed, 0, correlation)
    _OUTCOME.pack_into(changed, at, NOT_ENOUGH_REPLICAS, -1)
    return bytes(changed)


def end_txn_error(answer: bytes, version: int) -> int:
    """The error code in an answer to EndTxn: behind correlation id, tags (from version 3 on) and throttle time."""
    flexible = 3
    return int(_ERROR.unpack_from(answer, 4 + (1 if version >= flexible else 0) + 4)[0])
