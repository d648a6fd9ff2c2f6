"""The part of Kafka's protocol that the fault proxy needs: frame boundaries, request headers, correlation ids.

A frame is its length (int32) followed by that many bytes. A request starts with api_key int16, version int16 and
correlation_id int32; a response starts with the correlation_id of its request. All integers are big-endian.
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
    """Requests that a rule can select."""

    PRODUCE = 0
    INIT_PRODUCER_ID = 22
    ADD_PARTITIONS_TO_TXN = 24
    ADD_OFFSETS_TO_TXN = 25
    END_TXN = 26
    TXN_OFFSET_COMMIT = 28


class RequestHeader(NamedTuple):
    """The first fields of a request."""

    api: int
    version: int
    correlation: int


async def read_frame(reader: StreamReader) -> bytes | None:
    """Read one frame without its length; None at the end of the stream."""
    try:
        (length,) = _LENGTH.unpack(await reader.readexactly(_LENGTH.size))
        return await reader.readexactly(length)
    except IncompleteReadError:
        return None


def with_length(frame: bytes) -> bytes:
    """Prefix a frame with its length, as it goes over the wire."""
    return _LENGTH.pack(len(frame)) + frame


def request_header(request: bytes) -> RequestHeader:
    """Parse the header of a request."""
    return RequestHeader(*_REQUEST.unpack_from(request))


def correlation_of(response: bytes) -> int:
    """Return the correlation id of the request that this response belongs to."""
    return int(_CORRELATION.unpack_from(response)[0])


def rejected(response: bytes, version: int, topic: str, correlation: int) -> bytes:
    """Turn a Produce response (one topic, one partition) into one that rejects the request with this correlation id.

    The error and the offset follow the topic's name, the number of partitions and the partition. Raises ValueError if
    the response is about another topic.
    """
    name = topic.encode()
    at = response.index(name) + len(name) + (1 if version >= _FLEXIBLE_PRODUCE else 4) + 4
    changed = bytearray(response)
    _CORRELATION.pack_into(changed, 0, correlation)
    _OUTCOME.pack_into(changed, at, NOT_ENOUGH_REPLICAS, -1)
    return bytes(changed)


def end_txn_error(response: bytes, version: int) -> int:
    """Return the error code of an EndTxn response: after correlation id, tags (from version 3 on) and throttle time."""
    flexible = 3
    return int(_ERROR.unpack_from(response, 4 + (1 if version >= flexible else 0) + 4)[0])
