"""P19, records worked off side by side are done out of order, and so are careless commits.

Eight workers take records as they come; each takes a while of its own. (a) Who commits a record when it is done commits
everything before it too, for a position is one number: a slower record before it is forgotten when the process dies.
(b) Who commits only up to the first record that is not done loses none, and does some again. Both do the records of one
key in the wrong order. (c) One lane for each key keeps that order as well, and still works eight records at a time.
"""

import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from random import Random

from confluent_kafka import Consumer, TopicPartition

from deploy.proving.child import die
from deploy.proving.counting import Tally, inversions, tally
from deploy.proving.experiment import Experiment
from deploy.proving.ground import Ground
from deploy.proving.journal import worked, write
from deploy.proving.line import ANY, Bound, Line, at_least, exactly
from deploy.proving.lives import lives
from deploy.proving.reading import resumed

WORKERS, KEYS, LONGEST_MS = 8, 4, 20
COMPLETED, PREFIX, LANES = "completed", "prefix", "lanes"


def run(ground: Ground) -> Sequence[Line]:
    """Three ways, each killed half-way with work under way."""
    some = at_least(1)
    return [
        _line(ground, COMPLETED, "commit on completion", {"lost": some, "duplicated": ANY, "reordered": some}),
        _line(ground, PREFIX, "commit the contiguous prefix", {"duplicated": some, "reordered": some}),
        _line(ground, LANES, "the same, a lane for each key", {"duplicated": ANY}),
    ]


def _line(ground: Ground, how: str, mode: str, expected: Mapping[str, Bound]) -> Line:
    sent, name = ground.size.records, f"p19-{how}"
    journals = [ground.file(f"{name}-{life}") for life in (0, 1)]
    task = {
        "bootstrap": ground.bootstrap, "topic": ground.numbered(name), "journals": list(map(str, journals)), "how": how,
        "seed": ground.seed,
    }  # fmt: skip
    killed = lives(__name__, task, [sent // 2])
    done = [worked(journal) for journal in journals]
    found = tally(sent, *done)
    # Of one key and within one life: that a second life does a record again is no disorder.
    reordered = sum(inversions(each for each in life if each % KEYS == key) for life in done for key in range(KEYS))
    counted, bounds = Tally(found.lost, found.duplicated, reordered), {**expected, "faults": exactly(1)}
    return Line(mode, "kill -9 half-way, 8 under way", sent, counted, bounds, {"faults": killed})


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
        """Whether a death would matter now: a record under way lies before what is committed, or one done behind it."""
        oldest = min(self.under_way, default=self.reached)
        return oldest < self.committed if self._how == COMPLETED else self.reached - oldest > len(self.under_way)


def live(bootstrap: str, topic: str, journals: Sequence[str], how: str, seed: int, dies_at: int | None) -> None:  # noqa: PLR0913, PLR0917 - a task
    """One life: hand out up to eight records, and take back what is done, in the order in which it is done."""
    reader, chance = resumed(bootstrap, topic, topic), Random(seed)  # noqa: S311 - reproducible on purpose
    commits, finished = Commits(reader, topic, how), SimpleQueue[int]()
    lanes = [ThreadPoolExecutor(1) for _ in range(KEYS)] if how == LANES else [ThreadPoolExecutor(WORKERS)]
    more, done = True, 0
    with Path(journals[0 if dies_at is not None else 1]).open("a") as file:
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
                lanes[number % KEYS % len(lanes)].submit(_work, number, chance.randint(1, LONGEST_MS), finished)
                continue
            number = finished.get()
            write(file, number)
            commits.done(number)
            done += 1
            if dies_at is not None and done >= dies_at and commits.forgets():
                die()
    reader.close()


def _work(number: int, milliseconds: int, finished: SimpleQueue[int]) -> None:
    time.sleep(milliseconds / 1000)
    finished.put(number)


EXPERIMENT = Experiment("P19", "asynchronous work that commits out of order", run)
