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
MOST_HEADERS = 1_000
"""Of a record. One that has more is read as if it had none: librdkafka passes on no more than 100,000."""
UNREADABLE = "\ufffd"
"""What Java puts in the place of bytes that are not UTF-8."""
_NAME = r"substring_index(header.key, '\u0000', 1)"  # librdkafka passes on no more of it
HEADERS_SQL = f"""
    case
        when headers is null or size(headers) > {MOST_HEADERS} then array()
        when exists(headers, header -> contains({_NAME}, '{UNREADABLE}')) then array()
        else transform(headers, header -> struct({_NAME} as key, header.value as value))
    end"""
"""Of the headers of Spark's source; empty instead of NULL: the time of Spark's Arrow writer is quadratic in NULLs."""
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
    """Return the headers of the driver's message, as every reader of records knows them.

    Returns:
        Names and values. Nothing if there are more than MOST_HEADERS, or if the name of one is not UTF-8. A name ends
            where it has a NUL. The same as HEADERS_SQL for Spark.
    """
    try:
        headers: Sequence[tuple[str, bytes | None]] = _HEADERS(message) or ()
    except (SystemError, UnicodeDecodeError):  # the driver's way to say that a name is not UTF-8
        return ()
    if len(headers) > MOST_HEADERS or any(UNREADABLE in name for name, _ in headers):
        return ()
    return headers
