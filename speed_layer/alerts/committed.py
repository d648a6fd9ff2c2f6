"""What is committed of a partition: positions, and beside each, in the same transaction, the ids of what was read."""

from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from typing import NamedTuple

import msgspec
from confluent_kafka import TopicPartition


class Log(NamedTuple):
    """What a topic is. One that is made anew has another id; its partitions decide where a store lies."""

    id: str
    partitions: int


class Committed(NamedTuple):
    """`positions`: of topics that have one. `ids`: of these what each was; none where an operator has set the position.

    `read`: every topic that was read when any of them was committed.
    """

    positions: dict[str, int]
    ids: Mapping[str, str]
    read: Collection[str]


def note_of(logs: Mapping[str, Log]) -> str:
    """What is said beside each position: all topics, as Kafka forgets the position of one that is deleted."""
    return msgspec.json.encode({topic: log.id for topic, log in logs.items()}).decode()


def committed_of(places: Iterable[TopicPartition]) -> Committed:
    """What Kafka answers, of one partition of each topic."""
    found, ids, read = dict[str, int](), dict[str, str](), set[str]()
    for place in places:
        if place.offset >= 0:
            found[place.topic] = place.offset
            with suppress(msgspec.DecodeError):  # somebody else's words
                said = msgspec.json.decode(place.metadata or "{}", type=dict[str, str])
                read |= said.keys()
                ids |= {topic: id_ for topic, id_ in said.items() if topic == place.topic}
    return Committed(found, ids, read)
