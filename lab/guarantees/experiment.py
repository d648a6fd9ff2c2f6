"""What an experiment is: one concept, the fault that tries it, and the lines that come of it.

What an experiment stands on: a broker, perhaps a tap before it, a folder, chance, and so many records.
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

from confluent_kafka.admin import AdminClient, NewTopic

from lab.fault_proxy import Tap
from lab.guarantees import experiments
from lab.guarantees.clients import flush, producer
from lab.guarantees.results import Line
from master_dataset.errors import OperatorError


class Need(StrEnum):
    """What an experiment does to its broker."""

    BROKER = "a broker"
    TAP = "a tap before the broker, to harm single requests"
    NODES = "three nodes that it may kill"


@dataclass(frozen=True)
class Experiment:
    """One file of `experiments`: what it shows, what it needs, and how it is run."""

    id: str
    shows: str
    run: Callable[["Ground"], Sequence[Line]]
    need: Need = Need.BROKER


@cache
def registered() -> Mapping[str, Experiment]:
    """Id to experiment, in the order of the ids."""
    names = sorted(each.name for each in pkgutil.iter_modules(experiments.__path__))
    found = [importlib.import_module(f"{experiments.__name__}.{name}").EXPERIMENT for name in names]
    return {each.id: each for each in sorted(found, key=lambda each: each.id)}


_TIMEOUT_SECONDS = 30
_LOOK_SECONDS = 0.05


@dataclass(frozen=True)
class Size:
    """How much is sent, and how many faults are evenly spread over it."""

    records: int = 1000
    faults: int = 10

    @property
    def every(self) -> int:
        """Records from one fault to the next."""
        return self.records // self.faults


@dataclass(frozen=True)
class Ground:
    """`bootstrap` reaches the broker, `tapped` through the tap; `cluster` starts three nodes to be killed."""

    bootstrap: str
    folder: Path
    seed: int
    size: Size = field(default_factory=Size)
    tap: Tap | None = None
    tapped: str = ""
    cluster: Callable[[], Any] | None = None
    run: str = field(default_factory=lambda: secrets.token_hex(3))
    made: list[str] = field(default_factory=list)

    @property
    def the_tap(self) -> Tap:
        """The tap. LookupError without one: whoever needs it says so (Need.TAP)."""
        if self.tap is None:
            raise LookupError("this ground has no tap")
        return self.tap

    def chance(self, name: str) -> random.Random:
        """Chance that the seed decides; a source of its own for each name."""
        return random.Random(f"{self.seed} {name}")  # noqa: S311 - reproducible on purpose

    def file(self, name: str) -> Path:
        """A file of this run that does not exist yet."""
        place = self.folder / f"{self.run}-{name}"
        place.unlink(missing_ok=True)
        return place

    def name(self, name: str) -> str:
        """A name that no other run has: of a topic, a group or a transactional id."""
        return f"galatea-prove-{self.run}-{name}"

    def topic(self, name: str, partitions: int = 1) -> str:
        """A new topic, whose partitions all have a leader; its full name. OperatorError if the broker refuses."""
        admin, topic = AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 0}), self.name(name)
        admin.create_topics([NewTopic(topic, partitions)], operation_timeout=_TIMEOUT_SECONDS)[topic].result()
        self.made.append(topic)
        await_leaders(admin, topic, partitions)
        return topic

    def filled(self, name: str, values: Iterable[tuple[bytes | None, bytes]], partitions: int = 1) -> str:
        """A new topic with these keys and values in it, each acknowledged."""
        topic = self.topic(name, partitions)
        sender = producer(self.bootstrap, acks="all", enable_idempotence=True, batch_num_messages=1000)
        for key, value in values:
            sender.produce(topic, value, key)
            sender.poll(0)
        flush(sender)
        return topic

    def numbered(self, name: str, partitions: int = 1, count: int | None = None) -> str:
        """A new topic with the numbers 0..n-1 in it, as keys too."""
        texts = (str(number).encode() for number in range(count or self.size.records))
        return self.filled(name, ((text, text) for text in texts), partitions)

    def deaths(self, name: str) -> Sequence[int]:
        """Numbers, evenly spread and moved by chance, at which a process is killed."""
        moved = self.chance(name).randrange(self.size.every)
        return [moved + fault * self.size.every for fault in range(self.size.faults)]

    def leave(self) -> None:
        """Delete every topic that was made."""
        if self.made:
            admin = AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 0})
            for future in admin.delete_topics(self.made, operation_timeout=_TIMEOUT_SECONDS).values():
                future.exception()


def await_leaders(admin: AdminClient, topic: str, partitions: int) -> None:
    """Wait until so many partitions of the topic have a leader. OperatorError if they do not get one."""

    def led() -> bool:
        found = admin.list_topics(topic, timeout=_TIMEOUT_SECONDS).topics[topic].partitions
        return len(found) == partitions and all(each.leader >= 0 for each in found.values())

    await_that(led, f"the partitions of `{topic}` have no leader")


def await_that(is_so: Callable[[], bool], otherwise: str, seconds: float = 120) -> None:
    """Wait until it is so; how long that takes decides nothing. OperatorError with the words if it never is."""
    deadline = time.monotonic() + seconds
    while not is_so():
        if time.monotonic() > deadline:
            raise OperatorError(otherwise, do="galatea prove")
        time.sleep(_LOOK_SECONDS)
