"""Bytes for a topic, and when they are to be sent."""

from typing import NamedTuple

import msgspec

encode = msgspec.json.Encoder().encode
"""Its bytes hold no room to spare, and a day of many shops is held at once."""


class Sendable(NamedTuple):
    """`sent_ms`: since 1970, UTC."""

    sent_ms: int
    topic: str
    value: bytes
