"""A topic of one partition in memory, behind the driver that a member of a group asks."""

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from confluent_kafka import TopicPartition

TOPIC = "alerts"


class Message:
    """As the driver gives it."""

    def __init__(self, partition: int, offset: int, key: str, value: bytes = b"{}") -> None:
        self._place, self._key, self._value = (partition, offset), key, value

    def error(self) -> None:
        return None

    def topic(self) -> str:
        return TOPIC

    def partition(self) -> int:
        return self._place[0]

    def offset(self) -> int:
        return self._place[1]

    def key(self) -> bytes:
        return self._key.encode()

    def value(self) -> bytes:
        return self._value

    def timestamp(self) -> tuple[int, int]:
        return 2, 1_800_000_000_000


class Driver:
    """confluent_kafka's Consumer, over records that are there already."""

    def __init__(self, messages: Sequence[Message]) -> None:
        self.left = deque(messages)
        self.committed: list[tuple[int, int]] = []
        self.paused = self.end = 0
        self.settings: dict[str, Any] = {}
        self.revoke: Callable[[Any, list[TopicPartition]], None] | None = None
        self._is_paused = self.is_closed = False

    def __call__(self, settings: dict[str, Any]) -> "Driver":
        self.settings = settings
        return self

    def subscribe(self, _: list[str], on_revoke: Callable[..., None], on_lost: Callable[..., None]) -> None:
        assert on_lost is on_revoke
        self.revoke = on_revoke

    def consume(self, most: int, _: float) -> list[Message]:
        if self._is_paused:
            return []
        return [self.left.popleft() for _ in range(min(most, len(self.left), 10))]

    def assignment(self) -> list[TopicPartition]:
        return []

    def pause(self, _: list[TopicPartition]) -> None:
        self._is_paused, self.paused = True, self.paused + 1

    def resume(self, _: list[TopicPartition]) -> None:
        self._is_paused = False

    def commit(self, offsets: list[TopicPartition], *, asynchronous: bool) -> None:
        assert not asynchronous
        self.committed += [(each.partition, each.offset) for each in offsets]

    def close(self) -> None:
        self.is_closed = True

    def get_watermark_offsets(self, _: TopicPartition, *, cached: bool) -> tuple[int, int]:
        assert cached
        return 0, self.end
