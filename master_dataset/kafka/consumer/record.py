"""A record as it lies in a topic."""

from typing import Any, NamedTuple, Self


class Record(NamedTuple):
    """`received_ms`: the broker's stamp, milliseconds since 1970."""

    topic: str
    partition: int
    offset: int
    key: bytes
    value: bytes
    received_ms: int

    @classmethod
    def of(cls, message: Any) -> Self:  # noqa: ANN401 - confluent_kafka ships no types
        """What the driver gives. A missing key or value is an empty one."""
        _, received_ms = message.timestamp()
        place = message.topic(), message.partition(), message.offset()
        return cls(*place, message.key() or b"", message.value() or b"", received_ms)
