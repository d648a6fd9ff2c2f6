"""Experiments and their setup.

An experiment shows one concept under one fault, and returns a result for each delivery mode. Its setup has a broker,
optionally a fault proxy in front of it, a folder, seeded randomness, and the number of records to send.
"""

import importlib
import pkgutil
import random
import secrets
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Any

import stamina
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, NewTopic, PartitionMetadata

from lab.fault_proxy import FaultProxy
from lab.guarantees import experiments
from lab.guarantees.clients import flush, producer
from lab.guarantees.results import Result
from master_dataset.errors import OperatorError
from master_dataset.kafka.connection import KafkaConnection


class Need(StrEnum):
    """What an experiment needs in order to inject its fault."""

    BROKER = "a broker"
    FAULT_PROXY = "a fault proxy in front of the broker"
    NODES = "three nodes that it may kill"
    LOG = "the log of a broker that it has started"


@dataclass(frozen=True)
class Experiment:
    """A constant of a module in `experiments`. `shows`: the concept, for the table."""

    id: str
    shows: str
    run: Callable[["ExperimentSetup"], Sequence[Result]]
    need: Need = Need.BROKER


@cache
def registered() -> Mapping[str, Experiment]:
    """Return all experiments by id, sorted."""
    names = (each.name for each in pkgutil.iter_modules(experiments.__path__))
    modules = [importlib.import_module(f"{experiments.__name__}.{name}") for name in names]
    found = [each for module in modules for each in vars(module).values() if isinstance(each, Experiment)]
    return {each.id: each for each in sorted(found, key=lambda each: each.id)}


_TIMEOUT_SECONDS = 30
_LOOK_SECONDS = 0.05


@dataclass(frozen=True)
class Size:
    """How many records are sent, and how many faults are spread evenly over them."""

    records: int = 1000
    faults: int = 10

    @property
    def every(self) -> int:
        """Number of records from one fault to the next."""
        return self.records // self.faults


@dataclass(frozen=True)
class ExperimentSetup:
    """`kafka`: the broker; `proxied`: the broker through the fault proxy; `cluster`: starts three nodes to kill.

    `log`: the file that holds a topic of one partition, if the broker is our own. `run` makes the names of this run
    unique; `topics` are those that it created.
    """

    kafka: KafkaConnection
    folder: Path
    seed: int
    size: Size = field(default_factory=Size)
    proxy: FaultProxy | None = None
    proxied: KafkaConnection = field(default_factory=lambda: KafkaConnection(""))
    cluster: Callable[[], Any] | None = None
    log: Callable[[str], Path] | None = None
    run: str = field(default_factory=lambda: secrets.token_hex(3))
    topics: list[str] = field(default_factory=list)

    @property
    def required_proxy(self) -> FaultProxy:
        """The fault proxy. Raises LookupError without one: an experiment declares it with `Need.FAULT_PROXY`."""
        if self.proxy is None:
            raise LookupError("this setup has no fault proxy")
        return self.proxy

    @property
    def required_cluster(self) -> Callable[[], Any]:
        """Starts three nodes. Raises LookupError without: an experiment declares it with `Need.NODES`."""
        if self.cluster is None:
            raise LookupError("this setup has no nodes to kill")
        return self.cluster

    @property
    def required_log(self) -> Callable[[str], Path]:
        """The file that holds a topic. Raises LookupError without: an experiment declares it with `Need.LOG`."""
        if self.log is None:
            raise LookupError("this setup does not know the log of its broker")
        return self.log

    def rng(self, name: str) -> random.Random:
        """Return a random generator of its own for each name, determined by the seed."""
        return random.Random(f"{self.seed} {name}")  # noqa: S311 - reproducible on purpose

    def file(self, name: str) -> Path:
        """Return the path of a new file of this run."""
        place = self.folder / f"{self.run}-{name}"
        place.unlink(missing_ok=True)
        return place

    def name(self, name: str) -> str:
        """Return a name that no other run uses, for a topic, group or transactional id."""
        return f"galatea-prove-{self.run}-{name}"

    def topic(self, name: str, partitions: int = 1) -> str:
        """Create a topic, wait until every partition has a leader, and return its full name."""
        admin, topic = AdminClient({**self.kafka.client(), "log_level": 0}), self.name(name)
        admin.create_topics([NewTopic(topic, partitions)], operation_timeout=_TIMEOUT_SECONDS)[topic].result()
        self.topics.append(topic)
        await_leaders(admin, topic, partitions)
        return topic

    def filled(self, name: str, values: Iterable[tuple[bytes | None, bytes]], partitions: int = 1) -> str:
        """Create a topic with these keys and values in it, each acknowledged."""
        topic = self.topic(name, partitions)
        sender = producer(self.kafka, acks="all", enable_idempotence=True, batch_num_messages=1000)
        for key, value in values:
            sender.produce(topic, value, key)
            sender.poll(0)
        flush(sender)
        return topic

    def numbered(self, name: str, partitions: int = 1, count: int | None = None) -> str:
        """Create a topic with the numbers 0..n-1 as keys and values."""
        texts = (str(number).encode() for number in range(count or self.size.records))
        return self.filled(name, ((text, text) for text in texts), partitions)

    def kills(self, name: str) -> Sequence[int]:
        """Return evenly spread numbers with a random offset, at which a process is killed."""
        offset = self.rng(name).randrange(self.size.every)
        return [offset + fault * self.size.every for fault in range(self.size.faults)]

    def delete_topics(self) -> None:
        """Delete every topic that was created."""
        if self.topics:
            admin = AdminClient({**self.kafka.client(), "log_level": 0})
            for future in admin.delete_topics(self.topics, operation_timeout=_TIMEOUT_SECONDS).values():
                future.exception()


def await_leaders(admin: AdminClient, topic: str, partitions: int) -> None:
    """Wait until all partitions of the topic have a leader. Raises OperatorError on a timeout."""

    def led() -> bool:
        found = admin.list_topics(topic, timeout=_TIMEOUT_SECONDS).topics[topic].partitions
        return len(found) == partitions and all(each.leader >= 0 for each in found.values())

    await_that(led, f"the partitions of `{topic}` have no leader")


@stamina.retry(on=(KafkaException, KeyError), attempts=6, timeout=None, wait_max=1)
def partition_of(admin: AdminClient, topic: str) -> PartitionMetadata:
    """Return what a broker knows of partition 0 of a topic: who leads it, and who is in sync.

    The client asks any broker, also one that has just been killed, and does not turn to another one by itself.
    """
    return admin.list_topics(topic, timeout=5).topics[topic].partitions[0]


def await_that(condition: Callable[[], bool], otherwise: str, seconds: float = 120) -> None:
    """Wait until the condition holds. Raises OperatorError with `otherwise` on a timeout."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise OperatorError(otherwise, do="galatea prove")
        time.sleep(_LOOK_SECONDS)
