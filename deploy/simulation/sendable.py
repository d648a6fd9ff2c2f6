"""Bytes for a topic, and when they are to be sent."""

from typing import NamedTuple


class Sendable(NamedTuple):
    """`sent_ms`: since 1970, UTC."""

    sent_ms: int
    topic: str
    value: bytes
