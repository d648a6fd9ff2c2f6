"""What a request that brings events says: its body, unfolded and cut into records, each with the bytes it was sent as.

Nothing is parsed here: what a record is, the parser alone decides. A body that is no list of records is one record.
"""

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import msgspec

from serving_layer.api.limits import LIMITS, Limits
from serving_layer.errors import BadQuestionError, BodyTooLargeError, BodyUnreadableError, TooManyEventsError

GZIP = 16 + zlib.MAX_WBITS
UNSET = msgspec.UNSET


@dataclass(frozen=True)
class EventsBody:
    """A body as it arrived. `is_lines`: a record a line, else one record or a JSON array of them."""

    body: bytes
    is_gzip: bool = False
    is_lines: bool = False

    def records(self, limits: Limits = LIMITS) -> Sequence[bytes]:
        """At least one record. BodyTooLargeError, BodyUnreadableError, TooManyEventsError; BadQuestionError if there is none."""
        body = decompress(self.body, limits) if self.is_gzip else self.body
        found = _lines(body) if self.is_lines else _elements(body, limits.request_events)
        if not found:
            raise BadQuestionError("The request brings no event.", do="Send at least one.")
        if len(found) > limits.request_events:
            message = f"The request brings more than {limits.request_events:,} events."
            raise TooManyEventsError(message, do="Send them in several requests, one after the other.")
        return found


def decompress(body: bytes, limits: Limits = LIMITS) -> bytes:
    """Decompress gzip, and never more of it than may come out. BodyTooLargeError, BodyUnreadableError.

    What might have been sent plain may be sent compressed, however well it compresses: tills send the same again and
    again. Only beyond that is a body that becomes very much larger a bomb.
    """
    most = min(limits.unfolded_bytes, max(limits.body_bytes, limits.unfolding * len(body)))
    unfolding = zlib.decompressobj(GZIP)
    try:
        plain = unfolding.decompress(body, most + 1)
    except zlib.error as error:
        raise BodyUnreadableError("The body of the request is broken gzip.", do="Compress it again.") from error
    if len(plain) > most:
        message = f"The body of the request unfolds to more than {most:,} bytes, which is too much for its size."
        raise BodyTooLargeError(message, do="Send fewer events in a request, or do not compress them.")
    if not unfolding.eof or unfolding.unused_data:
        message = "The body of the request is not one whole gzip stream."
        raise BodyUnreadableError(message, do="Compress all events into one stream, and send all of it.")
    return plain


def _lines(body: bytes) -> Sequence[bytes]:
    """Lines that are not blank, as `galatea ingest` reads them."""
    stripped = (line.rstrip(b"\r") for line in body.split(b"\n"))
    return [line for line in stripped if line and not line.isspace()]


def _elements(body: bytes, most: int) -> Sequence[bytes]:
    """The elements of an array. Of what is no array, or a broken one, the parser says what is wrong with it."""
    if not body.lstrip(b" \t\r\n").startswith(b"["):
        return [body]
    try:
        elements = msgspec.structs.astuple(_decoder(most).decode(body))
    except (msgspec.MsgspecError, RecursionError):
        return [body]
    return [bytes(element) for element in elements if element is not UNSET]


@cache
def _decoder(most: int) -> msgspec.json.Decoder[Any]:
    """Reads an array into one field more than a request may have events; what comes after is checked and skipped.

    So a list of millions of numbers makes no millions of objects, as a `list[msgspec.Raw]` would.
    """
    fields = [(f"event_{number}", msgspec.Raw, UNSET) for number in range(most + 1)]
    return msgspec.json.Decoder(msgspec.defstruct("Elements", fields, array_like=True))
