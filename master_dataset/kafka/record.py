"""A Kafka record as a consumer gets it, and its position: topic, partition and offset."""

from typing import Any, NamedTuple, Self

from master_dataset.errors import RequestError


class ConsumerRecord(NamedTuple):
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


GREATEST_PARTITION = 2**31 - 1
GREATEST_OFFSET = 2**63 - 1


class RecordPosition(NamedTuple):
    """One record of one topic, for ever."""

    topic: str
    partition: int
    offset: int

    @property
    def id(self) -> str:
        """As people and answers write it."""
        return f"{self.topic}/{self.partition}/{self.offset}"

    @classmethod
    def of(cls, text: str) -> Self:
        """RequestError if that is no id."""
        topic, _, rest = text.partition("/")
        numbers = [int(part) for part in rest.split("/") if part.isascii() and part.isdecimal() and len(part) < 20]  # noqa: PLR2004 - digits of the greatest offset
        if topic and rest.count("/") == 1 and len(numbers) == 2:  # noqa: PLR2004 - partition and offset
            partition, offset = numbers
            if partition <= GREATEST_PARTITION and offset <= GREATEST_OFFSET:
                return cls(topic, partition, offset)
        raise RequestError(f"`{text}` is no id of a dead letter.", do="topic/partition/offset, as `list` shows it")
