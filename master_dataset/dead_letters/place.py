"""Where a record lies: topic/partition/offset. It is the id of a dead letter."""

from typing import NamedTuple, Self

from master_dataset.errors import RequestError

GREATEST_PARTITION = 2**31 - 1
GREATEST_OFFSET = 2**63 - 1


class Place(NamedTuple):
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
