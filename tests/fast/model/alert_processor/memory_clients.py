"""Clients of the broker in memory with the calls of librdkafka's, in a process that may be killed at any of them."""

import json
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from functools import partial
from random import Random
from types import SimpleNamespace
from typing import Any, NamedTuple

from confluent_kafka import KafkaError, KafkaException, TopicCollection, TopicPartition

from tests.fast.model.alert_processor.memory_kafka import ABORTED, Headers, MemoryKafka, Place

NOBODY: Callable[[], None] = lambda: None  # noqa: E731 - a name for it


class Killed(BaseException):
    """The process is no more: nothing may catch it."""


class Process:
    """Dies at its `calls`-th call. Before each something else may happen: a late end arrives, a twin lives (`other`).

    `blind`: its statistics never show that something was sent again.
    """

    def __init__(self, broker: MemoryKafka, chance: Random, calls: int, other: Callable[[], None] = NOBODY) -> None:
        """Lives."""
        self.broker, self.chance = broker, chance
        self.is_harmed, self.blind = True, False
        self._left, self._other, self.is_dead = calls, other, False

    def call(self, does: Callable[[], Any]) -> Any:
        """Before it or behind it the process may die; a dead one does nothing."""
        if self.is_dead:
            raise Killed
        self._meanwhile()
        self._left -= 1
        dies = self._left <= 0
        if dies and self.chance.random() < 0.5:
            self._die()
        found = does()
        if dies:
            self._die()
        return found

    def _die(self) -> None:
        self.is_dead = True
        raise Killed

    def _meanwhile(self) -> None:
        if self.broker.late and self.chance.random() < 0.2:
            self.broker.arrive(self.chance.randrange(len(self.broker.late)))
        if self.is_harmed and self.chance.random() < 0.02:
            self._other()


class Message(NamedTuple):
    """A record, or the end of a partition."""

    place: Place
    at: int
    bytes_: bytes | None
    stamp_ms: int
    problem: KafkaError | None = None
    said: Headers = ()

    def topic(self) -> str:
        return self.place[0]

    def offset(self) -> int:
        return self.at

    def error(self) -> KafkaError | None:
        return self.problem

    def timestamp(self) -> tuple[int, int]:
        return (2, self.stamp_ms)

    def value(self) -> bytes | None:
        return self.bytes_

    def headers(self) -> Headers:
        return self.said


class MemoryConsumer:
    """Reads few records at a time, so that there are many transactions."""

    MOST = 4

    def __init__(self, process: Process, settings: Mapping[str, Any]) -> None:
        self._process, self._isolation = process, settings["isolation.level"]
        self._at = dict[Place, int]()

    def committed(self, places: Sequence[TopicPartition], _: float) -> list[TopicPartition]:
        def ask() -> list[TopicPartition]:
            broker = self._process.broker
            of = [(each.topic, each.partition) for each in places]
            return [TopicPartition(*each, broker.position(each), broker.notes.get(each, "")) for each in of]

        return list(self._process.call(ask))

    def get_watermark_offsets(self, place: TopicPartition, _: float) -> tuple[int, int]:
        name = (place.topic, place.partition)
        broker = self._process.broker
        committed = self._isolation == "read_committed"
        end = self._process.call(lambda: broker.stable_end(name) if committed else len(broker.logs.get(name, [])))
        return broker.firsts.get(name, 0), end

    def assign(self, places: Sequence[TopicPartition]) -> None:
        self._at = {(each.topic, each.partition): each.offset for each in places}

    def consume(self, most: int, _: float) -> list[Message]:
        return list(self._process.call(lambda: self._taken(min(most, self._process.chance.randint(1, self.MOST)))))

    def consumer_group_metadata(self) -> None:
        return None

    def close(self) -> None:
        self._at = {}

    def _taken(self, most: int) -> list[Message]:
        broker, found = self._process.broker, list[Message]()
        for place, at in self._at.items():
            log = broker.logs.get(place, [])
            if at < broker.firsts.get(place, 0):
                found.append(Message(place, at, None, 0, KafkaError(KafkaError._AUTO_OFFSET_RESET)))  # noqa: SLF001
                continue
            end = broker.stable_end(place) if self._isolation == "read_committed" else len(log)
            goes_on = at
            for offset in range(at, end):
                if len(found) >= most:
                    break
                goes_on = offset + 1
                if log[offset].is_visible(self._isolation):
                    found.append(
                        Message(place, offset, log[offset].value, log[offset].stamp_ms, said=log[offset].headers)
                    )
            self._at[place] = goes_on
            if goes_on >= end:
                found.append(Message(place, end, None, 0, KafkaError(KafkaError._PARTITION_EOF)))  # noqa: SLF001
        return found


class MemoryAdmin:
    """Says what topics are: the same at all times, of one partition."""

    def __init__(self, process: Process) -> None:
        self._process = process

    def describe_topics(self, topics: TopicCollection) -> dict[str, Future[Any]]:
        found = dict[str, Future[Any]]()
        for topic in topics.topic_names:
            found[topic] = Future()
            found[topic].set_result(SimpleNamespace(topic_id=self._process.broker.id_of(topic), partitions=[0]))
        return self._process.call(lambda: found)  # type: ignore[no-any-return]

    def list_offsets(self, specs: Mapping[TopicPartition, Any], **_: object) -> dict[TopicPartition, Future[Any]]:
        found = dict[TopicPartition, Future[Any]]()
        for each in specs:
            found[each] = Future()
            end = len(self._process.broker.logs.get((each.topic, each.partition), []))
            found[each].set_result(SimpleNamespace(offset=end))
        return self._process.call(lambda: found)  # type: ignore[no-any-return]


class MemoryProducer:
    """Records wait here until they are flushed. Ends of transactions get lost, are sent again, and come late."""

    def __init__(self, process: Process, settings: Mapping[str, Any]) -> None:
        self._process, self._name, self._sampled = process, settings["transactional.id"], settings["stats_cb"]
        self._waiting = list[tuple[Place, bytes, Headers]]()
        self._faults = self._epoch = 0
        self._is_open = False

    def init_transactions(self, _: float) -> None:
        self._epoch = self._process.call(lambda: self._process.broker.init(self._name))

    def begin_transaction(self) -> None:
        self._is_open = True

    def produce(self, topic: str, *, value: bytes, partition: int, headers: Headers, **_: object) -> None:
        self._waiting.append(((topic, partition), value, headers))

    def flush(self, _: float) -> int:
        while self._waiting:
            self._process.call(partial(self._broker.write, self._name, self._epoch, *self._waiting[0]))
            self._waiting.pop(0)
        return 0

    def send_offsets_to_transaction(self, places: Sequence[TopicPartition], _: object, __: float) -> None:
        positions = {(each.topic, each.partition): each.offset for each in places}
        notes = {(each.topic, each.partition): each.metadata or "" for each in places}
        self._process.call(lambda: self._broker.send_positions(self._name, self._epoch, positions, notes))

    def commit_transaction(self, timeout: float) -> None:
        self.flush(timeout)
        self._process.call(self._end)
        self._is_open = False

    def poll(self, _: float) -> None:
        faults = 0 if self._process.blind else self._faults
        broker = {"txretries": faults, "disconnects": 0, "req_timeouts": 0}
        self._sampled(json.dumps({"brokers": {"1": broker}}))

    def purge(self) -> None:
        self._waiting = []

    def close(self) -> None:
        """As the client's: ends what is open."""
        if self._is_open and not self._process.is_dead and self._epoch == self._broker.owners[self._name].epoch:
            self._broker.end(self._name, self._epoch, ABORTED)

    @property
    def _broker(self) -> MemoryKafka:
        return self._process.broker

    def _end(self) -> None:
        chance = self._process.chance.random() if self._process.is_harmed else 1.0
        if chance < 0.4:
            self._broker.late.append((self._name, self._epoch))
        if chance < 0.1:
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT))  # noqa: SLF001 - nothing came, or not yet
        self._faults += chance < 0.5
        self._broker.end(self._name, self._epoch)
        if 0.5 < chance < 0.55:
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT))  # noqa: SLF001 - done, and the answer lost
