"""A topic of one partition in memory, behind the driver that a group member polls."""

import threading
from collections.abc import Callable, Sequence
from typing import Any

from confluent_kafka import KafkaError, TopicPartition

TOPIC = "alerts"


class Message:
    """As the driver gives it."""

    def __init__(self, partition: int, offset: int, key: str, value: bytes = b"{}") -> None:
        self._place, self._key, self._value = (partition, offset), key, value

    def error(self) -> KafkaError | None:
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

    def headers(self) -> None:
        return None

    def timestamp(self) -> tuple[int, int]:
        return 2, 1_800_000_000_000


class Driver:
    """confluent_kafka's Consumer, over records that are there. As in librdkafka a pause outlives a rebalance."""

    def __init__(self, messages: Sequence[Message]) -> None:
        self.log = list(messages)
        self.committed: list[tuple[int, int]] = []
        self.paused = self.end = self.sought = 0
        self.settings: dict[str, Any] = {}
        self.revoke: Callable[[Any, list[TopicPartition]], None] | None = None
        self.is_closed = self._is_to_rebalance = False
        self.rebalanced = threading.Event()
        self._assign: Callable[[Any, list[TopicPartition]], None] | None = None
        self._at = dict.fromkeys(sorted({message.partition() for message in messages} or {0}), 0)
        self._assigned: list[int] = []
        self._to_assign = list(self._at)
        self._paused: set[int] = set()

    def __call__(self, settings: dict[str, Any]) -> "Driver":
        self.settings = settings
        return self

    @property
    def left(self) -> int:
        """Messages that were not given yet."""
        return sum(message.offset() >= self._at[message.partition()] for message in self.log)

    def subscribe(
        self, _: list[str], on_assign: Callable[..., None], on_revoke: Callable[..., None], on_lost: Callable[..., None]
    ) -> None:
        assert on_lost is on_revoke
        self._assign, self.revoke = on_assign, on_revoke

    def rebalance(self) -> None:
        """With the next poll: take everything away, and give it back from where it is committed."""
        self._is_to_rebalance = True

    def _rebalanced(self) -> None:
        assert self.revoke is not None
        self.revoke(None, self.assignment())
        self._at = {partition: dict(self.committed).get(partition, 0) for partition in self._at}
        self._assigned, self._to_assign, self._is_to_rebalance = [], list(self._at), False
        self.rebalanced.set()

    def go_back(self, partition: int, offset: int) -> None:
        """The broker has lost its end, and what comes next is numbered from there."""
        self._at[partition] = offset

    def consume(self, most: int, _: float) -> list[Message]:
        if self._is_to_rebalance:
            self._rebalanced()
        if self._to_assign:
            assert self._assign is not None
            self._assign(None, [TopicPartition(TOPIC, partition) for partition in self._to_assign])
            self._assigned, self._to_assign = self._to_assign, []
        given = [message for message in self.log if self._is_next(message)][: min(most, 10)]
        for message in given:
            self._at[message.partition()] = message.offset() + 1
        return given

    def _is_next(self, message: Message) -> bool:
        number = message.partition()
        return number in self._assigned and number not in self._paused and message.offset() >= self._at[number]

    def assignment(self) -> list[TopicPartition]:
        return [TopicPartition(TOPIC, partition) for partition in self._assigned]

    def pause(self, parts: list[TopicPartition]) -> None:
        self._paused |= {each.partition for each in parts}
        self.paused += 1

    def resume(self, parts: list[TopicPartition]) -> None:
        self._paused -= {each.partition for each in parts}

    def seek(self, part: TopicPartition) -> None:
        assert part.partition in self._assigned
        self._at[part.partition] = part.offset
        self.sought += 1

    def commit(self, offsets: list[TopicPartition], *, asynchronous: bool) -> None:
        assert not asynchronous
        self.committed += [(each.partition, each.offset) for each in offsets]

    def close(self) -> None:
        self.is_closed = True

    def get_watermark_offsets(self, _: TopicPartition, *, cached: bool) -> tuple[int, int]:
        assert cached
        return 0, self.end
