"""What a request that brings events says: its body, unfolded and cut into records, each with the bytes it was sent as.

Nothing is parsed here: what a record is, the parser alone decides. A body that is no list of records is one record.
"""

import zlib
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from serving_layer.refusals import BadQuestion, BodyTooLarge, BodyUnreadable, TooManyEvents

MOST_SENT = 1_000_000
"""Bytes of a body as it is sent."""
MOST_UNFOLDED = 4_000_000
MOST_UNFOLDING = 20
"""Bytes of a body when it is decompressed, and how many there may be for each that was sent."""
MOST_EVENTS = 1_000
GZIP = 16 + zlib.MAX_WBITS
UNSET = msgspec.UNSET
# One field more than a request may have events; what comes after is checked and skipped. So a list of millions of
# numbers makes no millions of objects, as a `list[msgspec.Raw]` would.
FIELDS = [(f"event_{number}", msgspec.Raw, UNSET) for number in range(MOST_EVENTS + 1)]
ELEMENTS = msgspec.json.Decoder(msgspec.defstruct("Elements", FIELDS, array_like=True))


@dataclass(frozen=True)
class Posted:
    """A body as it arrived. `is_lines`: a record a line, else one record or a JSON array of them."""

    body: bytes
    is_gzip: bool = False
    is_lines: bool = False

    def records(self) -> Sequence[bytes]:
        """At least one record. BodyTooLarge, BodyUnreadable, TooManyEvents; BadQuestion if there is none."""
        body = unfolded(self.body) if self.is_gzip else self.body
        found = _lines(body) if self.is_lines else _elements(body)
        if not found:
            raise BadQuestion("The request brings no event.", do="Send at least one.")
        if len(found) > MOST_EVENTS:
            message = f"The request brings more than {MOST_EVENTS:,} events."
            raise TooManyEvents(message, do="Send them in several requests, one after the other.")
        return found


def unfolded(body: bytes) -> bytes:
    """Decompress gzip, and never more of it than may come out. BodyTooLarge, BodyUnreadable."""
    most = min(MOST_UNFOLDED, MOST_UNFOLDING * len(body))
    unfolding = zlib.decompressobj(GZIP)
    try:
        plain = unfolding.decompress(body, most + 1)
    except zlib.error as error:
        raise BodyUnreadable("The body of the request is broken gzip.", do="Compress it again.") from error
    if len(plain) > most:
        told = f"{MOST_UNFOLDED:,} bytes, and to no more than {MOST_UNFOLDING} times what is sent"
        message = f"The body of the request may unfold to {told}."
        raise BodyTooLarge(message, do="Send fewer events in a request, or do not compress them.")
    if not unfolding.eof or unfolding.unused_data:
        message = "The body of the request is not one whole gzip stream."
        raise BodyUnreadable(message, do="Compress all events into one stream, and send all of it.")
    return plain


def _lines(body: bytes) -> Sequence[bytes]:
    """Lines that are not blank, as `galatea ingest` reads them."""
    stripped = (line.rstrip(b"\r") for line in body.split(b"\n"))
    return [line for line in stripped if line and not line.isspace()]


def _elements(body: bytes) -> Sequence[bytes]:
    """The elements of an array. Of what is no array, or a broken one, the parser says what is wrong with it."""
    if not body.lstrip(b" \t\r\n").startswith(b"["):
        return [body]
    try:
        elements = msgspec.structs.astuple(ELEMENTS.decode(body))
    except (msgspec.MsgspecError, RecursionError):
        return [body]
    return [bytes(element) for element in elements if element is not UNSET]
