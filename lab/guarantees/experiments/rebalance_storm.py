"""P26, a rebalance storm: members join a group and leave it again and again, while others work.

Two members share six partitions and commit every 64 records. Ten times, a third one joins, gets its share, and leaves.
(a) Eager assignment takes all partitions from everybody at each change; what was processed since the last commit is
processed again by their new owners. (b) Committing when partitions are taken repeats nothing, but everybody still
stops each time. (c) Cooperative assignment takes only those partitions that another member gets. The rate of each,
beside that of a quiet group, is printed: it is what the storm costs. Galatea's consumer commits what is finished before
it gives partitions back (`master_dataset.kafka.consumer`).
"""

import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass

from confluent_kafka import Consumer, KafkaException, TopicPartition

from lab.guarantees.clients import Options, consumer, flush, producer
from lab.guarantees.experiment import Experiment, ExperimentSetup, await_that
from lab.guarantees.results import ANY, Bound, Result, at_least, at_most, count_numbers, exactly
from master_dataset.kafka.connection import KafkaConnection

PARTITIONS, MEMBERS, PORTION, WORK_SECONDS = 6, 2, 64, 0.002
EAGER, COOPERATIVE = "range", "cooperative-sticky"


@dataclass(frozen=True)
class Group:
    """How the members of a group work. `commits_when_taken`: what they have processed of partitions that they lose."""

    kafka: KafkaConnection
    topic: str
    name: str
    strategy: str
    commits_when_taken: bool


class Member:
    """A member of a group, in a thread: processes records until `leave` is called."""

    def __init__(self, group: Group) -> None:
        """It has not joined yet."""
        self._group = group
        self._leaves = threading.Event()
        self._next: dict[int, int] = {}
        self.held: set[int] = set()
        self.done: list[int] = []
        self.taken = 0

    def run(self) -> None:
        """Join, work, and leave."""
        options: Options = {
            "partition.assignment.strategy": self._group.strategy,
            "session.timeout.ms": 10_000,
            "heartbeat.interval.ms": 100,
        }
        reader = consumer(self._group.kafka, self._group.name, options)
        reader.subscribe([self._group.topic], on_assign=self._assigned, on_revoke=self._revoked)
        try:
            while not self._leaves.is_set():
                self._work(reader)
        finally:
            reader.close()

    def leave(self) -> None:
        """Make `run` return."""
        self._leaves.set()

    def _work(self, reader: Consumer) -> None:
        message = reader.poll(0.1)
        if message is None or message.error():
            return
        time.sleep(WORK_SECONDS)
        self.done.append(int(message.value() or b""))
        self._next[message.partition() or 0] = (message.offset() or 0) + 1
        if len(self.done) % PORTION == 0:
            self._commit(reader, list(self._next))

    def _assigned(self, _reader: Consumer, places: list[TopicPartition]) -> None:
        self.held.update(place.partition for place in places)

    def _revoked(self, reader: Consumer, places: list[TopicPartition]) -> None:
        taken = [place.partition for place in places]
        self.taken += len(taken)
        if self._group.commits_when_taken:
            self._commit(reader, taken)
        for partition in taken:
            self._next.pop(partition, None)
        self.held.difference_update(taken)

    def _commit(self, reader: Consumer, partitions: Sequence[int]) -> None:
        offsets = [
            TopicPartition(self._group.topic, each, self._next[each]) for each in partitions if each in self._next
        ]
        if offsets:
            with suppress(KafkaException):  # during a rebalance; uncommitted records are repeated, and counted
                reader.commit(offsets=offsets, asynchronous=False)


def run(setup: ExperimentSetup) -> Sequence[Result]:
    """A quiet group, and three ways to meet the storm."""
    storms = setup.size.faults
    everybody, some = at_least(PARTITIONS * storms), at_most((PARTITIONS - 1) * storms)
    return [
        _line(setup, "eager, a quiet group", EAGER, {"taken away": exactly(0)}, commits=True, storms=0),
        _line(
            setup,
            "eager, commit every 64",
            EAGER,
            {"duplicated": at_least(1), "taken away": everybody},
            commits=False,
            storms=storms,
        ),
        _line(setup, "eager, commit what is taken", EAGER, {"taken away": everybody}, commits=True, storms=storms),
        _line(setup, "cooperative, the same", COOPERATIVE, {"taken away": some}, commits=True, storms=storms),
    ]


def _line(  # noqa: PLR0913 - the parts of a result
    setup: ExperimentSetup, mode: str, strategy: str, expected: Mapping[str, Bound], *, commits: bool, storms: int
) -> Result:
    name = f"p26-{strategy}-{'taken' if commits else 'portions'}-{storms}"
    topic = setup.topic(name, PARTITIONS)
    group = Group(setup.kafka, topic, topic, strategy, commits)
    members = [Member(group) for _ in range(MEMBERS)]
    guests = [Member(group) for _ in range(storms)]
    with ThreadPoolExecutor(MEMBERS + 1) as pool:
        working = [pool.submit(member.run) for member in members]
        try:
            await_that(lambda: _share_all(members), "the partitions were not shared")
            taken_before, began = sum(each.taken for each in members), time.monotonic()
            for number, guest in enumerate(guests):
                _send(setup, topic, range(number * setup.size.every, (number + 1) * setup.size.every))
                visiting = pool.submit(guest.run)
                await_that(lambda guest=guest: bool(guest.held), "a member that joined got no partition")  # type: ignore[misc]
                guest.leave()
                visiting.result()
                await_that(lambda: _share_all(members), "the partitions of a member that left were not shared")
            _send(setup, topic, range(storms * setup.size.every, setup.size.records))
            await_that(lambda: len(_done([*members, *guests])) == setup.size.records, "records were not processed")
            seconds, taken = time.monotonic() - began, sum(each.taken for each in members) - taken_before
        finally:
            for each in [*members, *guests]:
                each.leave()
        for ended in working:
            ended.result()
    found = count_numbers(setup.size.records, [number for each in [*members, *guests] for number in each.done])
    return Result(
        mode,
        "members join and leave" if storms else "none",
        setup.size.records,
        found,
        {**expected, "reordered": ANY, "joined and left": exactly(storms)},
        {"taken away": taken, "joined and left": sum(not each.held for each in guests)},
        {"records/s": f"{setup.size.records / seconds:,.0f}"},
    )


def _share_all(members: Sequence[Member]) -> bool:
    """Whether each of them has its share, and together they have every partition."""
    held = [len(each.held) for each in members]
    return min(held) > 0 and sum(held) == PARTITIONS


def _done(members: Sequence[Member]) -> set[int]:
    return {number for each in members for number in each.done.copy()}


def _send(setup: ExperimentSetup, topic: str, numbers: range) -> None:
    """The numbers, in turn over all partitions."""
    sender = producer(setup.kafka, acks="all", enable_idempotence=True, batch_num_messages=1000)
    for number in numbers:
        sender.produce(topic, str(number).encode(), partition=number % PARTITIONS)
        sender.poll(0)
    flush(sender)


EXPERIMENT = Experiment("P26", "a rebalance storm", run)
