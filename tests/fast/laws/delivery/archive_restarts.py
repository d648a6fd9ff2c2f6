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
from master_dataset.archive.data_writer import DataWriter, WrittenFiles
from master_dataset.delta.tables import BatchId
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
    """`fsynced`: a power cut leaves it there."""

    name: str
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

    def writer(self, *_: object) -> None:
        """Files are rows here."""

    def commit(self, _: object, name: str, files: "Files", batch: BatchId, *, repeats: bool) -> None:
        assert repeats == self.holds(name, batch)
        self._append(name, files, batch.mark)

    def holds(self, name: str, batch: BatchId) -> bool:
        return any((each.name, each.mark) == (name, batch.mark) for each in self.commits)

    def written(self, _: object, name: str, __: str) -> set[tuple[int, int]]:
        return {(0, row) for each in self.commits if each.name == name for row in each.rows}

    def fsync(self, name: str, batch: BatchId) -> None:
        for each in self.commits:
            query, _, number = each.mark.partition(" ")
            if (each.name, query) == (name, batch.query) and int(number) >= batch.number:
                each.fsynced = True

    def lose_power(self) -> None:
        self.commits = [each for each in self.commits if each.fsynced]

    def kept(self) -> Counter[int]:
        """How often each record is kept, as an event or as a dead letter."""
        return Counter(row for each in self.commits for row in each.rows)

    def _append(self, name: str, files: "Files", mark: str) -> None:
        before = [each for each in self.commits if (each.name, each.mark) == (name, mark)]
        assert all(each.fsynced for each in before), "a roll back looks for the newest commit of a mark alone"
        if self.chance.random() < 0.1:
            raise OSError("no room")
        self.commits.append(Commit(name, mark, files.offsets))


@dataclass
class Positions:
    """As in Cassandra: none goes back."""

    at: dict[int, int] = field(default_factory=dict)

    def record(self, _: str, partition: int, position: int, __: datetime) -> None:
        self.at[partition] = max(position, self.at.get(partition, 0))

    def read(self) -> Mapping[str, Mapping[int, int]]:
        return {TOPIC: dict(self.at)} if self.at else {}


@dataclass
class Files:
    """What one pass wrote of a kind."""

    offsets: list[int]

    @property
    def num_rows(self) -> int:
        """How many files."""
        return min(1, len(self.offsets))


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
        text = archive._starting_offsets(POS_TRANSACTIONS, 1)  # noqa: SLF001 - all of it
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

        def write_files(_: object, writer: DataWriter) -> WrittenFiles:
            """Whether a record is an event may be seen otherwise each time, because its store was registered."""
            kinds = [self._parsed(kind) for kind in self.log[start:end]]
            counts = Counter(kinds)
            dead_letters = Counter({"not_json": counts[DEAD_LETTER]} if counts[DEAD_LETTER] else {})
            left = [(kind, at) for at, kind in enumerate(kinds, start) if (0, at) not in writer.written]
            files: Any = {kind: Files([at for own, at in left if own == kind]) for kind in (EVENT, DEAD_LETTER)}
            return WrittenFiles({0: PartitionProgress(end - 1, AT, counts[EVENT], dead_letters, AT)}, files)

        records: Any = None
        try:
            with (
                patch("master_dataset.archive.archive.failpoint", failpoint_hit),
                patch("master_dataset.archive.archive.write_files", write_files),
            ):
                self.archive.write_batch(POS_TRANSACTIONS, records, self.checkpoint.batch)
        except (EndedError, OSError):
            self._process()
            return
        self.checkpoint.batch, self.checkpoint.planned = self.checkpoint.batch + 1, (end, end)

    def _parsed(self, kind: str) -> str:
        return self.chance.choice((EVENT, DEAD_LETTER)) if kind != MARKER and self.chance.random() < 0.1 else kind

    def _ending(self) -> Callable[[object], None]:
        left = [self.chance.randint(1, 4)]

        def failpoint_hit(_: object) -> None:
            left[0] -= 1
            if not left[0]:
                raise EndedError

        return failpoint_hit

    def look(self) -> None:
        """R2: everything before a position is kept. Nothing twice unless a checkpoint was lost."""
        kept = self.tables.kept()
        for offset, kind in enumerate(self.log[: self.positions.at.get(0, 0)]):
            assert kind == MARKER or kept[offset], f"{kind} {offset} is not kept"
        if not self.losses:
            assert set(kept.values()) <= {1}, "something is kept twice"

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
