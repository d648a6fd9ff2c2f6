"""A Kafka record as a consumer gets it, and its position: topic, partition and offset."""

import re
from collections.abc import Sequence
from operator import methodcaller
from typing import Any, NamedTuple, Self

from master_dataset.errors import RequestError

PartitionId = tuple[str, int]
"""Topic and partition number."""

GREATEST_PARTITION = 2**31 - 1
GREATEST_OFFSET = 2**63 - 1
_HEADERS = methodcaller("headers")
"""Of the driver's message. If a name is not UTF-8, the driver returns an incomplete list and has an error set. This
call notices that. Python's own call of a method does not once it is specialized, and then reading the list ends the
process."""
_ID = re.compile(r"([^/]+)/(\d{1,19})/(\d{1,19})", re.ASCII)


class RecordPosition(NamedTuple):
    """The position of a record. It identifies the record permanently, and is the id of a dead letter."""

    topic: str
    partition: int
    offset: int

    @property
    def id(self) -> str:
        """The position as text: `topic/partition/offset`."""
        return f"{self.topic}/{self.partition}/{self.offset}"

    @classmethod
    def of(cls, text: str) -> Self:
        """Parse an `id`.

        Raises:
            RequestError: The text is not a position.
        """
        if found := _ID.fullmatch(text):
            position = cls(found[1], int(found[2]), int(found[3]))
            if position.partition <= GREATEST_PARTITION and position.offset <= GREATEST_OFFSET:
                return position
        raise RequestError(
            f"`{text}` is not the id of a dead letter.", do="use topic/partition/offset, as `list` shows it"
        )


class ConsumerRecord(NamedTuple):
    """A record that was read from a topic. `received_ms`: the broker's timestamp, milliseconds since 1970."""

    topic: str
    partition: int
    offset: int
    key: bytes
    value: bytes
    received_ms: int
    headers: Sequence[tuple[str, bytes | str | None]] = ()

    @classmethod
    def of(cls, message: Any) -> Self:  # noqa: ANN401 - confluent_kafka ships no types
        """Convert the driver's message. A missing key or value becomes an empty one."""
        _, received_ms = message.timestamp()
        position = message.topic(), message.partition(), message.offset()
        return cls(*position, message.key() or b"", message.value() or b"", received_ms, headers_of_message(message))


def headers_of_message(message: Any) -> Sequence[tuple[str, bytes | None]]:  # noqa: ANN401 - likewise
    """Return the headers of the driver's message.

    Returns:
        Names and values; nothing if the driver cannot read them: more than 100,000, or names that are not UTF-8.
    """
    try:
        return _HEADERS(message) or ()
    except (SystemError, UnicodeDecodeError):  # the driver's way to say that a name is not UTF-8
        return ()
