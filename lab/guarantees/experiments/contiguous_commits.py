"""P19, records that are processed concurrently finish out of order, and so do careless commits.

Eight workers take records as they come, and each takes a different time. (a) Committing a record when it is done also
commits every record before it, because a position is one number: a slower record before it is lost when the process
dies. (b) Committing only up to the first unfinished record loses none, and repeats some. Both process records of one
key out of order. (c) One queue per key also keeps that order, and still processes several records at a time. Galatea's
consumer does this (`master_dataset.kafka.consumer`) and commits every second.
"""

import asyncio
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from random import Random
from typing import IO, Any

from confluent_kafka import Consumer, TopicPartition

from lab.guarantees.child import append, die, processed, run_with_kills
from lab.guarantees.clients import member, resumed, until
from lab.guarantees.experiment import Experiment, ExperimentSetup
from lab.guarantees.results import ANY, Bound, Counts, Result, at_least, count_numbers, exactly, inversions
from master_dataset.kafka.connection import KafkaConnection
from master_dataset.kafka.consumer import ConsumerLimits, ConsumerRecord, Done, Reject

WORKERS, KEYS, LONGEST_MS = 8, 4, 20
COMPLETED, PREFIX, QUEUES, OWN = "completed", "prefix", "queues", "own"


def run(setup: ExperimentSetup) -> Sequence[Result]:
    """Four ways, each killed half-way with work under way."""
    some = at_least(1)
    return [
        _line(setup, COMPLETED, "commit on completion", {"lost": some, "duplicated": ANY, "reordered": some}),
        _line(setup, PREFIX, "commit the contiguous prefix", {"duplicated": some, "reordered": some}),
        _line(setup, QUEUES, "the same, a queue for each key", {"duplicated": ANY}),
        _line(setup, OWN, "the same, `master_dataset.kafka.consumer`", {"duplicated": ANY}),
    ]


def _line(setup: ExperimentSetup, how: str, mode: str, expected: Mapping[str, Bound]) -> Result:
    sent, name = setup.size.records, f"p19-{how}"
    topic = setup.filled(name, ((str(number % KEYS).encode(), str(number).encode()) for number in range(sent)))
    journals = [setup.file(f"{name}-{life}") for life in (0, 1)]
    task = {
        "kafka": setup.kafka,
        "topic": topic,
        "journals": list(map(str, journals)),
        "how": how,
        "seed": setup.seed,
    }
    killed = run_with_kills(__name__, task, [sent // 2])
    done = [processed(journal) for journal in journals]
    found = count_numbers(sent, *done)
    # Of one key and within one life: that a second life does a record again is no disorder.
    reordered = sum(inversions(each for each in life if each % KEYS == key) for life in done for key in range(KEYS))
    counted, bounds = Counts(found.lost, found.duplicated, reordered), {**expected, "faults": exactly(1)}
    return Result(mode, "kill -9 half-way, 8 under way", sent, counted, bounds, {"faults": killed})


class Commits:
    """Which records are under way, and up to where a careless and a careful consumer commit."""

    def __init__(self, reader: Consumer, topic: str, how: str) -> None:
        """`how` is COMPLETED, or any other for the prefix."""
        self._reader, self._topic, self._how = reader, topic, how
        self.under_way: set[int] = set()
        self.reached = self.committed = 0

    def begun(self, number: int) -> None:
        """A record was given to a worker. It has the offset of its number: one partition, no transaction."""
        self.under_way.add(number)
        self.reached = number + 1

    def done(self, number: int) -> None:
        """Commit what this allows."""
        self.under_way.remove(number)
        prefix = min(self.under_way, default=self.reached)
        self._commit(number + 1 if self._how == COMPLETED else prefix)

    def _commit(self, position: int) -> None:
        if position != self.committed:
            self.committed = position
            self._reader.commit(offsets=[TopicPartition(self._topic, 0, position)], asynchronous=False)

    def forgets(self) -> bool:
        """Whether a crash would matter now: a record in progress is before the commit, or a finished one after it."""
        oldest = min(self.under_way, default=self.reached)
        return oldest < self.committed if self._how == COMPLETED else self.reached - oldest > len(self.under_way)


def child_main(  # noqa: PLR0913, PLR0917 - a task
    kafka: KafkaConnection, topic: str, journals: Sequence[str], how: str, seed: int, kill_at: int | None
) -> None:
    """Run a consumer with up to eight records at work, and journal them in the order of completion."""
    if how == OWN:
        asyncio.run(_consume(kafka, topic, Path(journals[0 if kill_at is not None else 1]), seed, kill_at))
        return
    reader, chance = resumed(kafka, topic, topic), Random(seed)  # noqa: S311 - reproducible on purpose
    commits, finished = Commits(reader, topic, how), SimpleQueue[int]()
    queues = [ThreadPoolExecutor(1) for _ in range(KEYS)] if how == QUEUES else [ThreadPoolExecutor(WORKERS)]
    more, done = True, 0
    with Path(journals[0 if kill_at is not None else 1]).open("a") as file:
        while more or commits.under_way:
            if more and len(commits.under_way) < WORKERS:
                message = reader.poll(1)
                if message is None:
                    continue
                if message.error():
                    more = False
                    continue
                number = int(message.value() or b"")
                commits.begun(number)
                queues[number % KEYS % len(queues)].submit(_work, number, chance.randint(1, LONGEST_MS), finished)
                continue
            number = finished.get()
            append(file, number)
            commits.done(number)
            done += 1
            if kill_at is not None and done >= kill_at and commits.forgets():
                die()
    reader.close()


def _work(number: int, milliseconds: int, finished: SimpleQueue[int]) -> None:
    time.sleep(milliseconds / 1000)
    finished.put(number)


class Journalling:
    """Handler of Galatea's consumer; ends with a record done after one that is not."""

    def __init__(self, file: IO[str], seed: int, kill_at: int | None) -> None:
        """`kill_at`: after so many records, and a commit; None: never."""
        self._file, self._dies_at, self._chance = file, kill_at, Random(seed)  # noqa: S311 - reproducible on purpose
        self._under_way, self.done, self.commits = set[int](), 0, 0

    def connect(self, settings: dict[str, Any]) -> "Committing":
        """What is read with."""
        return Committing(settings, self)

    def accepts(self, _record: ConsumerRecord) -> bool:
        """Everything."""
        return True

    async def handle(self, records: Sequence[ConsumerRecord]) -> Done:
        """One at a time."""
        [number] = (int(record.value) for record in records)
        self._under_way.add(number)
        await asyncio.sleep(self._chance.randint(1, LONGEST_MS) / 1000)
        while self._may_die() and not self.commits:  # noqa: ASYNC110 - a commit is reported on another thread
            await asyncio.sleep(LONGEST_MS / 1000)
        append(self._file, number)
        self._under_way.remove(number)
        self.done += 1
        if self._may_die() and min(self._under_way, default=number) < number:
            die()
        return Done()

    async def store_rejected(self, _record: ConsumerRecord, _refused: Reject) -> Done:
        """Nothing is refused here."""
        return Done()

    def _may_die(self) -> bool:
        return self._dies_at is not None and self.done >= self._dies_at


class Committing(Consumer):
    """Reports its commits."""

    def __init__(self, settings: dict[str, Any], journalling: Journalling) -> None:
        """As any consumer."""
        super().__init__(settings)
        self._journalling = journalling

    def commit(self, *said: Any, **more: Any) -> Any:  # noqa: ANN401 - as the driver has it
        """Returns when the broker has it."""
        committed = super().commit(*said, **more)
        self._journalling.commits += 1
        return committed


async def _consume(kafka: KafkaConnection, topic: str, journal: Path, seed: int, kill_at: int | None) -> None:
    """A member of one name: the next life is given its partition at once, as no other member would be."""
    settings = {**kafka.client(), "group.id": topic, "group.instance.id": "the only one"}
    with journal.open("a") as file:
        work = Journalling(file, seed, kill_at)
        async with member(settings, topic, work, ConsumerLimits(WORKERS, batch=1), work.connect) as consuming:
            await until(lambda: work.done > 0 and not consuming.backlog.records, lambda: work.done)


EXPERIMENT = Experiment("P19", "asynchronous work that commits out of order", run)
