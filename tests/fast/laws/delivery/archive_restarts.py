"""The archive, ended at any step, with checkpoints and power that are lost: what its positions say is kept, is kept."""

import json
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from random import Random
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

from master_dataset.archive.archive import Archive
from master_dataset.kafka.connection import KafkaConnection
from master_dataset.kafka.partition_progress import PartitionProgress
from master_dataset.kafka.topics import EARLIEST
from master_dataset.sources.pos_transactions import POS_TRANSACTIONS

TOPIC, AT = POS_TRANSACTIONS.topic, datetime(2026, 3, 7, tzinfo=UTC)
EVENT, DEAD_LETTER, MARKER = "event", "dead_letter", "marker"
STEPS = 40


class EndedError(Exception):
    """The process, or one of its writes."""


@dataclass
class Commit:
    """`synced`: a power cut leaves it there."""

    name: str
    kind: str
    mark: str
    rows: list[int]
    fsynced: bool = False


@dataclass
class Tables:
    """What is kept, commit by commit. A write may fail."""

    chance: Random
    commits: list[Commit] = field(default_factory=list)

    def create(self, *_: object) -> None:
        """They are there."""

    def append_events(self, _: object, events: "Frame", mark: str) -> None:
        self._append(TOPIC, EVENT, events, mark)

    def append_dead_letters(self, dead_letters: "Frame", mark: str) -> None:
        self._append("dead_letters", DEAD_LETTER, dead_letters, mark)

    def holds(self, _: object, name: str, mark: str) -> bool:
        return any((each.name, each.mark) == (name, mark) for each in self.commits)

    def fsync(self, name: str, mark: str) -> None:
        for each in self.commits:
            each.fsynced |= (each.name, each.mark) == (name, mark)

    def lose_power(self) -> None:
        self.commits = [each for each in self.commits if each.fsynced]

    def kept(self, kind: str) -> list[int]:
        return [row for each in self.commits if each.kind == kind for row in each.rows]

    def _append(self, name: str, kind: str, rows: "Frame", mark: str) -> None:
        if self.chance.random() < 0.1:
            raise OSError("no room")
        self.commits.append(Commit(name, kind, mark, rows.computed()))


@dataclass
class Positions:
    """As in Cassandra: none goes back."""

    at: dict[int, int] = field(default_factory=dict)

    def record(self, _: str, partition: int, position: int, __: datetime) -> None:
        self.at[partition] = max(position, self.at.get(partition, 0))

    def read(self) -> Mapping[str, Mapping[int, int]]:
        return {TOPIC: dict(self.at)} if self.at else {}


class Frame:
    """Records of one partition, parsed again whenever they are computed."""

    def __init__(self, rows: list[tuple[int, str]], seen: Any, kind: str = "") -> None:
        self._rows, self._seen, self._kind = rows, seen, kind

    def where(self, condition: str) -> "Frame":
        return Frame(self._rows, self._seen, condition.split("'")[1])

    def computed(self) -> list[int]:
        kinds = Counter(kind for _, kind in self._rows)
        dead_letters = Counter({"not_json": kinds[DEAD_LETTER]} if kinds[DEAD_LETTER] else {})
        self._seen.value = {0: PartitionProgress(self._rows[-1][0], AT, kinds[EVENT], dead_letters, AT)}
        return [offset for offset, kind in self._rows if kind == self._kind]

    def isEmpty(self) -> bool:  # noqa: N802 - Spark's name
        return not self.computed()

    @property
    def write(self) -> Any:
        saved = SimpleNamespace(save=self.computed)
        return SimpleNamespace(format=lambda _: SimpleNamespace(mode=lambda _: saved))


class Checkpoint:
    """Spark's: the query, which micro-batch was planned, and which is done."""

    def __init__(self, number: int, start: int) -> None:
        self.query, self.batch, self.planned = f"query-{number}", 0, (start, start)


class Life:
    """A topic of one partition, and its archive from process to process."""

    def __init__(self, seed: int) -> None:
        self.chance = Random(seed)
        self.log: list[str] = []
        self.tables, self.positions = Tables(self.chance), Positions()
        self.checkpoints = self.losses = 0
        self._begin_anew()
        self._process()

    def _process(self) -> None:
        context = SimpleNamespace(getLocalProperty=lambda _: self.checkpoint.query)
        own: Any = SimpleNamespace(sparkContext=context)
        self.archive = Archive(own, self.tables, self.positions, dict)  # type: ignore[arg-type]

    def _begin_anew(self) -> None:
        """Without a checkpoint: where the archive says that it goes on."""
        self._process_ends = True
        archive = Archive(SimpleNamespace(), self.tables, self.positions, dict)  # type: ignore[arg-type]
        with patch("master_dataset.archive.archive.Topics", lambda _: SimpleNamespace(partitions=lambda _: [0])):
            text = archive._starting_offsets(POS_TRANSACTIONS, KafkaConnection("memory"))  # noqa: SLF001 - all of it
        starting_offset = json.loads(text)[TOPIC]["0"]
        self.checkpoints += 1
        self.checkpoint = Checkpoint(self.checkpoints, 0 if starting_offset == EARLIEST else starting_offset)

    def step(self) -> None:
        """Records come; then a micro-batch, which may end early."""
        self.log += self.chance.choices((EVENT, DEAD_LETTER, MARKER), (5, 2, 1), k=self.chance.randint(0, 4))
        if self.chance.random() < 0.1:
            self.losses += 1
            self._begin_anew()
            self._process()
        if self.chance.random() < 0.1:
            self.tables.lose_power()
            self._process()
        self.micro_batch(self._ending() if self.chance.random() < 0.5 else lambda _: None)

    def micro_batch(self, failpoint_hit: Callable[[object], None]) -> None:
        start, end = self.checkpoint.planned
        if start == end:
            end = self.checkpoint.planned[0] + self.chance.randint(0, len(self.log) - start)
            self.checkpoint.planned = (start, end)
        if start == end:
            return
        seen: Any = SimpleNamespace(value={})
        frame: Any = Frame(list(enumerate(self.log))[start:end], seen)
        try:
            with patch("master_dataset.archive.archive.failpoint", failpoint_hit):
                self.archive.write_batch(POS_TRANSACTIONS, frame, self.checkpoint.batch, seen)
        except (EndedError, OSError):
            self._process()
            return
        self.checkpoint.batch, self.checkpoint.planned = self.checkpoint.batch + 1, (end, end)

    def _ending(self) -> Callable[[object], None]:
        left = [self.chance.randint(1, 4)]

        def failpoint_hit(_: object) -> None:
            left[0] -= 1
            if not left[0]:
                raise EndedError

        return failpoint_hit

    def look(self) -> None:
        """R2: everything before a position is kept. Nothing twice unless a checkpoint was lost."""
        for offset, kind in enumerate(self.log[: self.positions.at.get(0, 0)]):
            assert kind == MARKER or offset in self.tables.kept(kind), f"{kind} {offset} is not kept"
        if not self.losses:
            for kept in (self.tables.kept(kind) for kind in (EVENT, DEAD_LETTER)):
                assert len(kept) == len(set(kept)), "something is kept twice"

    def rest(self) -> None:
        """Nothing ends it any more: everything is kept, and its position says so, or no cut would ever be reached."""
        for _ in range(STEPS):
            self.micro_batch(lambda _: None)
        if self.log:
            assert self.positions.at.get(0) == len(self.log), "a marker is never passed"
        self.look()


def keep_what_positions_say(seeds: int = 60) -> None:
    """I01, I10 and R2, whatever ends the archive."""
    for seed in range(seeds):
        life = Life(seed)
        for _ in range(STEPS):
            life.step()
            life.look()
        life.rest()
