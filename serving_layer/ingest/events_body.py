"""What a request that brings events says: its body, unfolded and cut into records, each with the bytes it was sent as.

Nothing is parsed here: what a record is, the parser alone decides. A body that is no list of records is one record.
"""

import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import msgspec

from serving_layer.errors import BadQuestionError, BodyTooLargeError, BodyUnreadableError, TooManyEventsError
from serving_layer.limits import LIMITS, Limits

GZIP = 16 + zlib.MAX_WBITS
UNSET = msgspec.UNSET


@dataclass
class EventsBody:
    """A body as it arrived. With `is_lines` it has one record per line, else one record or a JSON array of them.

    `size`: its bytes, decompressed as soon as that is known, whatever then becomes of its records.
    """

    body: bytes
    is_gzip: bool = False
    is_lines: bool = False
    size: int = field(init=False)

    def __post_init__(self) -> None:
        """Until it is decompressed, it has the bytes that were sent."""
        self.size = len(self.body)

    def records(self, limits: Limits = LIMITS) -> Sequence[bytes]:
        """The records of the body, at least one, as the bytes that were sent.

        Raises:
            BadQuestionError: there is no record.
            BodyTooLargeError: the body decompresses to more than its limit.
            BodyUnreadableError: the body is not one complete gzip stream.
            TooManyEventsError: there are more records than a request may have.
        """
        body = decompress(self.body, limits) if self.is_gzip else self.body
        self.size = len(body)
        found = _lines(body) if self.is_lines else _elements(body, limits.request_events)
        if not found:
            raise BadQuestionError("The request has no event.", do="Send at least one.")
        if len(found) > limits.request_events:
            message = f"The request has more than {limits.request_events:,} events."
            raise TooManyEventsError(message, do="Send them in several requests, one after the other.")
        return found


def decompress(body: bytes, limits: Limits = LIMITS) -> bytes:
    """Decompress gzip, but never more of it than the limit.

    What could have been sent uncompressed may be sent compressed, however well it compresses: tills repeat themselves.
    Only above that size does the compression ratio decide whether the body is a decompression bomb.

    Raises:
        BodyTooLargeError: there is more than the limit.
        BodyUnreadableError: it is not one complete gzip stream.
    """
    most = min(limits.decompressed_bytes, max(limits.body_bytes, limits.compression_ratio * len(body)))
    decompressor = zlib.decompressobj(GZIP)
    try:
        plain = decompressor.decompress(body, most + 1)
    except zlib.error as error:
        raise BodyUnreadableError("The body of the request is broken gzip.", do="Compress it again.") from error
    if len(plain) > most:
        message = f"The request body decompresses to more than {most:,} bytes, which is too much for its size."
        raise BodyTooLargeError(message, do="Send fewer events in a request, or do not compress them.")
    if not decompressor.eof or decompressor.unused_data:
        message = "The body of the request is not one whole gzip stream."
        raise BodyUnreadableError(message, do="Compress all events into one stream, and send all of it.")
    return plain


def _lines(body: bytes) -> Sequence[bytes]:
    """Lines that are not blank, as in `galatea ingest`."""
    stripped = (line.rstrip(b"\r") for line in body.split(b"\n"))
    return [line for line in stripped if line and not line.isspace()]


def _elements(body: bytes, most: int) -> Sequence[bytes]:
    """The elements of an array. Anything else is one record: the parser then reports what is wrong with it."""
    if not body.lstrip(b" \t\r\n").startswith(b"["):
        return [body]
    try:
        elements = msgspec.structs.astuple(_decoder(most).decode(body))
    except (msgspec.MsgspecError, RecursionError):
        return [body]
    return [bytes(element) for element in elements if element is not UNSET]


@cache
def _decoder(most: int) -> msgspec.json.Decoder[Any]:
    """A decoder that keeps one element more than a request may have, and checks and skips the rest.

    A `list[msgspec.Raw]` would make an object per element, also for a list of millions of numbers.
    """
    fields = [(f"event_{number}", msgspec.Raw, UNSET) for number in range(most + 1)]
    return msgspec.json.Decoder(msgspec.defstruct("Elements", fields, array_like=True))
